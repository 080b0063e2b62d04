"""Determines when a changed pipeline reaches its steady state: a new cache takes effect after the epoch that fills it.

In: the analysis of the unchanged script and the edits.  Out: the number of steps before the window may start.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress

from advisor.host.calibration.proof import MARGIN_STEPS
from advisor.model.calls import Call
from advisor.model.edits import Edit, InsertAfter, MoveAfter, Remove
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.recorded_graph import RecordedGraph
from advisor.predict.cache_size import elements_per_epoch, iterator_of
from advisor.predict.call_index import graph_of
from advisor.predict.remade_calls import calls_with_lost_caches
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
        "cache", "enumerate", "filter", "ignore_errors", "map", "prefetch", "repeat", "scan", "shard", "shuffle",
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


def steps_until_own_are_full(analysis: Analysis, edits: Sequence[Edit]) -> int | None:
    """Return the number of steps until every cache of the unchanged script is full.

    Args:
        analysis: The analysis of the unchanged script.
        edits: The edits.

    Returns:
        The steps; None if there is no such cache, if the edits remove or move one, if one starts empty in every epoch, or if the
        number of steps per epoch is unknown.
    """
    pipeline = analysis.main
    consumed = consumed_call(analysis, pipeline) if pipeline else None
    if pipeline is None or consumed is None:
        return None
    caches = {call.id for call in upstream_calls(analysis, consumed) if call.method in _FILLED_BY_AN_EPOCH}
    elsewhere = {edit.call_id for edit in edits if isinstance(edit, Remove | MoveAfter)}
    if caches & (elsewhere | calls_with_lost_caches(analysis, pipeline)):
        return None
    known = elements_per_epoch(analysis, pipeline, consumed)
    with suppress(UnknownEpoch):
        return steps_to_fill_caches(analysis.calls, consumed, known, analysis.keras.get("steps_per_execution"))
    return None


def steps_to_fill_caches(
    calls: Sequence[Call], consumed: Call, epoch_elements: int | None, steps_per_execution: object = None
) -> int | None:
    """Return the number of steps until every cache of a recorded dataset is full; None if it has none.

    Args:
        calls: The recorded calls.
        consumed: The call whose dataset the training consumes.
        epoch_elements: Elements of an epoch of that dataset, if they are known.
        steps_per_execution: That of Keras.

    Raises:
        UnknownEpoch: The number of steps per epoch is unknown.
    """
    graph = RecordedGraph(tuple(calls))
    caches = [call for call in graph.upstream(consumed) if call.method in _FILLED_BY_AN_EPOCH]
    chains = [(cache, *(graph.path(cache, consumed) or ())) for cache in caches]
    if not chains:
        return None
    if consumed.cardinality is not None and consumed.cardinality > 0:
        epoch_elements = consumed.cardinality
    elements = epoch_elements or max(_elements_after(chain) for chain in chains)
    divisor = steps_per_execution if isinstance(steps_per_execution, int) and steps_per_execution > 0 else 1
    return math.ceil(elements / divisor) + MARGIN_STEPS.value


def _elements_after(chain: Sequence[Call]) -> int:
    """Return how many elements at the end of the chain one epoch of its first call makes."""
    elements = chain[0].cardinality
    if elements is None or elements <= 0:
        raise UnknownEpoch
    for call in chain[1:]:
        size = call.arguments.get(_BATCHES.get(call.method, ""), 1)
        if (call.method not in _ONE_FOR_ONE and call.method not in _BATCHES) or not isinstance(size, int) or size < 1:
            raise UnknownEpoch
        elements = math.ceil(elements / size)
    return elements


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
