"""Determines when a changed pipeline reaches its steady state: a new cache takes effect after the epoch that fills it.

In: the analysis of the unchanged script and the edits.  Out: the number of steps before the window may start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.host.calibration.proof import MARGIN_STEPS
from advisor.model.finding import Edit, InsertAfter
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.recording import Call
from advisor.predict.cache_size import elements_per_epoch, iterator_of
from advisor.predict.structure import consumed_call, upstream_calls

_FILLED_BY_AN_EPOCH = frozenset({"cache", "snapshot"})
_BATCHES = {
    "batch": "batch_size",
    "padded_batch": "batch_size",
    "ragged_batch": "batch_size",
    "sparse_batch": "batch_size",
}
_ONE_FOR_ONE = frozenset(
    {
        "apply", "cache", "enumerate", "filter", "ignore_errors", "map", "prefetch", "repeat", "scan", "shard", "shuffle",
        "skip", "snapshot", "take", "take_while", "unique", "with_options", "zip",
    }
)  # fmt: skip
"""Methods that emit at most one element per input element, so that the number of steps per epoch is bounded."""


class UnknownEpoch(Exception):
    """The number of steps per epoch is unknown, and so is when the cache is full."""


def steps_until_steady(analysis: Analysis, edits: Sequence[Edit]) -> int | None:
    """Return the number of steps until every cache added by the edits is full; None if they add none.

    Raises:
        UnknownEpoch: The number of steps per epoch is unknown.
    """
    caches = [edit for edit in edits if isinstance(edit, InsertAfter) and edit.method in _FILLED_BY_AN_EPOCH]
    if not caches:
        return None
    pipeline = analysis.main
    consumed = consumed_call(analysis, pipeline) if pipeline else None
    if pipeline is None or consumed is None:
        raise UnknownEpoch
    per_call = analysis.keras.get("steps_per_execution")
    divisor = per_call if isinstance(per_call, int) and per_call > 0 else 1
    steps = max(_steps_of_epoch(analysis, pipeline, consumed, analysis.call(edit.call_id)) for edit in caches)
    return math.ceil(steps / divisor) + MARGIN_STEPS.value


def _steps_of_epoch(analysis: Analysis, pipeline: Pipeline, consumed: Call, cached: Call) -> int:
    elements = elements_per_epoch(analysis, pipeline, cached)
    if elements is None:
        raise UnknownEpoch
    path = _path(analysis, consumed, cached)
    if path is not None and all(call.method in _ONE_FOR_ONE or call.method in _BATCHES for call in path):
        for call in path:
            size = call.arguments.get(_BATCHES.get(call.method, ""), 1)
            if not isinstance(size, int) or size < 1:
                raise UnknownEpoch
            elements = math.ceil(elements / size)
        return elements
    iterator = iterator_of(pipeline, cached)
    if iterator is None or not iterator.elements or not pipeline.num_elements:
        raise UnknownEpoch
    return math.ceil(elements * pipeline.num_elements / iterator.elements)


def _path(analysis: Analysis, consumed: Call, cached: Call) -> list[Call] | None:
    """The calls after `cached` down to the consumed one, in that order; None if they are not connected."""
    by_id = {call.id: call for call in analysis.calls}
    feeds = {call.id for call in upstream_calls(analysis, consumed)}
    if cached.id not in feeds:
        return None
    path, current = [], consumed
    while current.id != cached.id:
        path.append(current)
        ahead = [by_id[i] for i in current.inputs if i in by_id]
        following = [call for call in ahead if cached.id in {up.id for up in upstream_calls(analysis, call)}]
        if not following:
            return None
        current = following[0]
    return path[::-1]
