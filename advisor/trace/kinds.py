"""Which kind of event a name stands for: decided once per event name, not once per event.

In: the names of an event's metadata.  Out: its `EventKind` and label, or None where the analysis has no use for it.

Names are those of TF 2.3 to 2.21; `docs/profile-format.md` lists them with what was seen.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from advisor.model.trace import EventKind
from advisor.trace.long_names import is_iterator_name

_HAND_OVER = re.compile(r"([A-Z][A-Za-z0-9]*)(Produce|Consume)")
_FUNCTION = re.compile(r"FunctionRun|InstantiatedCapturedFunction::.+")
_EXECUTOR = frozenset({"ExecutorState::Process", "ExecutorDoneCallback"})
_GET_NEXT = re.compile(r"(IteratorGetNext|MultiDeviceIteratorGetNext|OneShotIterator)\w*::DoCompute|GetNextFromShard.*")
_TRACING = re.compile(
    r"tf\.function-graph_building|Grappler.*|MetaOptimizer.*|TFG?_?Optimiz.*|XlaCompil.*"
    r"|(Cpu|Gpu|Amdgpu|NVPTX)Compiler::.*|JitCompiler::.*|FusionCompiler::.*"
)
_ROOT_EVENTS = frozenset({"SessionRun", "RunGraph", "RunGraphDone"})
"""Unclassified events that TensorFlow itself marks with `_r` = 1: not the user's steps."""

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


def classify(name: str, display_name: str) -> tuple[EventKind, str] | None:
    """The kind and label of the events called `name`.

    STEP events and calls of a `tf.function` have names of the user's choice: their stats tell (`classify_marked`).
    """
    if is_iterator_name(name):
        return EventKind.ITERATOR, name
    if display_name and name.endswith(":" + display_name):
        return EventKind.OP, display_name
    if hand_over := _HAND_OVER.fullmatch(name):
        kind = EventKind.PRODUCE if hand_over[2] == "Produce" else EventKind.CONSUME
        return kind, hand_over[1]
    if name in _EXECUTOR:
        return EventKind.EXECUTOR, name
    if _FUNCTION.fullmatch(name):
        return EventKind.FUNCTION, name
    if _GET_NEXT.fullmatch(name):
        return EventKind.GET_NEXT, name
    if _TRACING.fullmatch(name):
        return EventKind.TRACING, name
    return None


def classify_marked(name: str, stats: Mapping[str, object]) -> tuple[EventKind | None, bool]:
    """The kind of an event whose name says nothing, by its stats, and whether other events of that name may differ.

    A user's `Trace` and a `tf.function` can share a name, and a `tf.function` is traced in some calls only.
    """
    if "tf_function_call" in stats:
        return (EventKind.TRACING if str(stats["tf_function_call"]).startswith("traced") else None), True
    if "step_num" in stats or (stats.get("_r") == 1 and name not in _ROOT_EVENTS):
        return EventKind.STEP, True
    return None, False
