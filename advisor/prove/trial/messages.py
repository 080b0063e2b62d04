"""The messages between the two halves of a proof: one JSON object per line.

In: edits, trials, call graphs.  Out: JSON values and back; every edit names its kind.
"""

from __future__ import annotations

from typing import Any

import msgspec

from advisor.model.call_graph import CallGraph
from advisor.model.finding import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument, SetOption, Value
from advisor.prove.trial.trial_result import Trial

_KINDS: dict[str, type[Edit]] = {
    kind.__name__: kind for kind in (SetArgument, InsertAfter, Remove, MoveAfter, SetOption)
}


def edits_to_json(edits: tuple[Edit, ...]) -> list[dict[str, Any]]:
    """Serialise edits as a list of objects."""
    return [_edit_to_json(edit) for edit in edits]


def edits_from_json(data: list[dict[str, Any]]) -> tuple[Edit, ...]:
    """Parse the output of `edits_to_json`.

    Raises:
        KeyError: An edit is incomplete, or its kind is unknown.
        TypeError: An edit has other fields, or a value of an unsupported type.
    """
    return tuple(_edit_from_json(edit) for edit in data)


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


def _edit_to_json(edit: Edit) -> dict[str, Any]:
    fields = {name: getattr(edit, name) for name in type(edit).__slots__}
    if "value" in fields:
        fields["value"] = _value_to_json(fields["value"])
    if "arguments" in fields:
        fields["arguments"] = [[name, _value_to_json(value)] for name, value in fields["arguments"]]
    return {"edit": type(edit).__name__, **fields}


def _edit_from_json(data: dict[str, Any]) -> Edit:
    fields = dict(data)
    kind = _KINDS[fields.pop("edit")]
    if "value" in fields:
        fields["value"] = _value_from_json(fields["value"])
    if "arguments" in fields:
        fields["arguments"] = tuple((str(name), _value_from_json(value)) for name, value in fields["arguments"])
    return kind(**fields)


def _value_to_json(value: Value) -> Any:  # noqa: ANN401
    return {"code": value.text} if isinstance(value, Code) else value


def _value_from_json(value: Any) -> Value:  # noqa: ANN401
    if isinstance(value, dict):
        return Code(value["code"])
    if value is None or isinstance(value, (bool, int, float, str)):
        return value
    raise TypeError(f"not a value of an edit: {value!r}")
