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
from advisor.predict.call_index import graph_of
from advisor.predict.structure import consumed_call

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
    path = graph_of(analysis).path(cached, consumed)
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
