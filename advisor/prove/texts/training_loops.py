"""Compares how often the training of two texts passes over its data.

In: the recordings of a run of each.  Out: one sentence on a difference. Elements are compared within a few passes, so that a loop
over twice as many epochs would go unnoticed.
"""

from __future__ import annotations

from advisor.model.recorded_graph import RecordedGraph
from advisor.model.recording import Consumer, Recording

_LATER = "The training makes its dataset again in later epochs, and only that of the first epoch was compared."
_KERAS = ("epochs", "initial_epoch", "steps_per_epoch")


def loop_difference(before: Recording, after: Recording) -> str:
    """Return what differs in the loops around the training, as a sentence; empty if nothing does, or if it is unknown."""
    for name in _KERAS:
        old, new = before.keras.get(name), after.keras.get(name)
        if old != new and isinstance(old, int) and isinstance(new, int):
            return f"Keras' fit has {name}={new} instead of {old}."
    mains = main_consumer(before), main_consumer(after)
    if mains[0] is None or mains[1] is None or mains[0].loops is None or mains[1].loops is None:
        return ""
    counts = [[loop.count for loop in main.loops or ()] for main in mains if main is not None]
    if len(counts[0]) != len(counts[1]):
        return ""
    for old_count, new_count in zip(*counts, strict=True):
        if old_count != new_count and old_count is not None and new_count is not None:
            return f"A loop around the training has {new_count} passes instead of {old_count}."
    return ""


def later_datasets(recording: Recording) -> str:
    """Return a sentence if the training reads several datasets one after the other, which may differ from each other."""
    main = main_consumer(recording)
    if main is None or main.datasets < 2:
        return ""
    graph = RecordedGraph(recording.calls)
    consumed = graph.by_id.get(main.call_id or "")
    if consumed is None:
        return _LATER
    for call in graph.upstream(consumed):
        again = {other.identity for other in recording.calls if (other.method, other.site) == (call.method, call.site)}
        if len(again) > 1 or "" in again:
            return _LATER
    return ""


def main_consumer(recording: Recording) -> Consumer | None:
    """Return the consumer that is the training."""
    return next((consumer for consumer in recording.consumers if consumer.is_main), None)
