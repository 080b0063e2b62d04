"""Classifies events by name, once per name if the name is sufficient.

In: the names of an event's metadata, and its stats.  Out: its `EventKind` and label; the kind is None if the analysis does not
use the event.

The names are those of TF 2.3 to 2.21; `docs/profile-format.md` lists them with observations.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.model.trace import EventKind
from advisor.profile.long_names import is_iterator_name

_HAND_OVER = re.compile(r"([A-Z][A-Za-z0-9]*)(Produce|Consume)")
_PATTERNS: Mapping[EventKind, re.Pattern[str]] = {
    EventKind.FUNCTION: re.compile(r"FunctionRun|InstantiatedCapturedFunction::.+"),
    EventKind.EXECUTOR: re.compile(r"ExecutorState::Process|ExecutorDoneCallback"),
    EventKind.GET_NEXT: re.compile(r"(MultiDevice)?IteratorGetNext\w*::DoCompute|GetNextFromShard\d*"),
    EventKind.TRACING: re.compile(r"tf\.function-graph_building|\w*Compiler::.+|(Grappler|MetaOptimizer).*"),
}
OPENS_INPUT = "ParallelInterleaveInitializeInput"
"""A worker of a parallel interleave fetches its next input element and creates the iterator over it. This counts as producing
although it ends without an element (its key is 0, and its label is its whole name)."""
_ROOT_EVENTS = frozenset({"SessionRun", "RunGraph", "RunGraphDone"})
"""Unclassified events that TensorFlow marks with `_r` = 1; they are not the user's steps."""

STATS: Mapping[EventKind, tuple[str, str]] = {
    EventKind.ITERATOR: ("id", "parent_id"),
    EventKind.PRODUCE: ("element_id", "input_element_id"),
    EventKind.CONSUME: ("element_id", "input_element_id"),
    EventKind.FUNCTION: ("_p", "id"),
    EventKind.EXECUTOR: ("_c", "id"),
    EventKind.OP: ("", ""),
    EventKind.GET_NEXT: ("", "id"),
    EventKind.STEP: ("step_num", ""),
    EventKind.TRACING: ("", ""),
}
"""The stats that become an event's `key` and `link`. `id` of FUNCTION, EXECUTOR and GET_NEXT is the step id of the run."""


def classify(name: str, display_name: str, stats: Mapping[str, object]) -> tuple[EventKind | None, str, bool]:
    """Return the kind and label of an event, and whether they apply to all events with that name.

    Steps and calls of a `tf.function` have names chosen by the user, so they are recognised by their stats. A user's `Trace` and
    a `tf.function` can have the same name, and only some calls of a `tf.function` trace it, so each of these events is classified
    separately.

    Args:
        name: Name of the event's metadata.
        display_name: Its display name; empty if it has none.
        stats: Stats of this event.

    Returns:
        The kind, None if the analysis does not use the event; the label; whether both apply to all events with that name.
    """
    kind, label = _classify_name(name)
    if kind is not None:
        return kind, label, True
    if "tf_function_call" in stats:
        return (EventKind.TRACING if str(stats["tf_function_call"]).startswith("traced") else None), name, False
    if "step_num" in stats or (stats.get("_r") == 1 and name not in _ROOT_EVENTS):
        return EventKind.STEP, name, False
    if display_name and name.endswith(":" + display_name):
        return EventKind.OP, display_name, True
    return None, name, True


def _classify_name(name: str) -> tuple[EventKind | None, str]:
    if is_iterator_name(name):
        return EventKind.ITERATOR, name
    if hand_over := _HAND_OVER.fullmatch(name):
        return (EventKind.PRODUCE if hand_over[2] == "Produce" else EventKind.CONSUME), hand_over[1]
    if name == OPENS_INPUT:
        return EventKind.PRODUCE, name
    for kind, pattern in _PATTERNS.items():
        if pattern.fullmatch(name):
            return kind, name
    return None, name
