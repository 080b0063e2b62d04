"""The messages between the two halves of a proof: one JSON object per line.

In: edits, trials, call graphs.  Out: JSON values and back; every edit names its kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from advisor.model.call_graph import CallGraph
from advisor.model.finding import Edit, InsertAfter, MoveAfter, Remove, SetArgument, SetOption, Vectorize
from advisor.prove.trial.trial_result import Trial

_KINDS: dict[str, type[Edit]] = {
    kind.__name__: kind for kind in (SetArgument, InsertAfter, Remove, MoveAfter, SetOption, Vectorize)
}


def edits_to_json(edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    """Serialise edits as a list of objects."""
    return [{"edit": type(edit).__name__, **msgspec.to_builtins(edit)} for edit in edits]


def edits_from_json(data: list[dict[str, Any]]) -> tuple[Edit, ...]:
    """Parse the output of `edits_to_json`.

    Raises:
        KeyError: The kind of an edit is missing or unknown.
        msgspec.ValidationError: A field of an edit is missing or has an unsupported type.
    """
    return tuple(msgspec.convert(edit, _KINDS[edit["edit"]]) for edit in data)


def trial_to_json(trial: Trial) -> dict[str, Any]:
    """Serialise a trial as an object."""
    result: dict[str, Any] = msgspec.to_builtins(trial)
    return result


def trial_from_json(data: dict[str, Any]) -> Trial:
    """Parse the output of `trial_to_json`.

    Raises:
        msgspec.ValidationError: The data is anything else.
    """
    return msgspec.convert(data, Trial)


def graph_to_json(graph: CallGraph) -> dict[str, Any]:
    """Serialise a call graph as an object."""
    result: dict[str, Any] = msgspec.to_builtins(graph)
    return result


def graph_from_json(data: dict[str, Any]) -> CallGraph:
    """Parse the output of `graph_to_json`.

    Raises:
        msgspec.ValidationError: The data is anything else.
    """
    return msgspec.convert(data, CallGraph)
