"""Finds places for a cache and predicts its savings, its size and its effect on the data.

In: an `Analysis` and a pipeline.  Out: `CachePlace`s. Rules decide which of them to recommend.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace

from advisor.host.calibration.prediction import CALLED_NS
from advisor.model.calls import INFINITE_CARDINALITY, Call
from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.shared_text import siblings_of, span_of
from advisor.predict.cache_completion import is_cut, leaves_early
from advisor.predict.cache_moves import is_held_twice, movable_cache
from advisor.predict.cache_size import cache_bytes, element_bytes
from advisor.predict.call_index import graph_of
from advisor.predict.determinism import (
    CONTENT,
    MAX_SIBLINGS,
    Obstacle,
    cache_assumptions,
    cache_obstacles,
    own_obstacles,
)
from advisor.predict.machine_costs import machine_costs
from advisor.predict.operational import predict_speedup
from advisor.predict.remade_calls import remade_calls
from advisor.predict.structure import consumed_call, nested_calls, upstream_calls

_STORES = ("cache", "snapshot")
_HANDING_ON = ("shuffle", "repeat", "with_options", "take", "skip", "shard", "prefetch")
"""Methods that pass elements on unchanged, so that the elements of a cache reach the batch."""
_POINTLESS = (
    "cache", "snapshot", "prefetch", "repeat", "with_options", "shuffle", "from_tensor_slices", "from_tensors", "range"
)  # fmt: skip
"""Methods after which a cache is pointless: it would hold the same elements as before them, hold them repeatedly or in a fixed
order, or replace one read from memory by another."""


@dataclass(frozen=True, slots=True)
class CachePlace:
    """A possible cache after one call."""

    call: Call
    obstacles: tuple[Obstacle, ...]
    """Why epochs differ there; empty if the cache is exact."""
    bytes: int | None
    """Size of the cache; None if unknown."""
    saved_share: float
    """Share of the consumer's wait that is attributed to work the cache saves."""
    prediction: Prediction
    """Predicted speedup from the second epoch on."""
    is_repeated_below: bool
    """Whether a `repeat` reads it for more than one epoch."""
    movable: tuple[Call, ...] = ()
    """The shuffles and repeats to move after the cache, nearest first, if they are the only obstacles and can be moved."""
    element_bytes: int | None = None
    assumptions: tuple[str, ...] = ()
    """Conditions of the cache that were not observed (`cache_assumptions`)."""
    replaced: Call | None = None
    """The existing cache that moves to this place; None if there is none, or if it has to stay."""
    replaced_bytes: int | None = None
    """Size of the existing cache; None if there is none or if it is unknown."""

    @property
    def added_bytes(self) -> int | None:
        """Memory that the cache takes in addition to the one it replaces; None if unknown."""
        return None if self.bytes is None else max(0, self.bytes - (self.replaced_bytes or 0))

    @property
    def keeps_elements(self) -> bool:
        """Whether the elements stay the same, possibly in a different order."""
        return not any(obstacle.kind == CONTENT for obstacle in self.obstacles)


def cache_places(analysis: Analysis, pipeline: Pipeline, is_made_once: bool = False) -> list[CachePlace]:
    """Return every place between the sources and the consumer where a cache would save work.

    Args:
        analysis: The analysis.
        pipeline: The executed pipeline.
        is_made_once: Judge a dataset that the script makes again in every epoch as if it were made once.
    """
    consumed = consumed_call(analysis, pipeline)
    if consumed is None or leaves_early(analysis, pipeline, consumed):
        return []
    graph, chain = graph_of(analysis), upstream_calls(analysis, consumed)
    costs = machine_costs(analysis)
    remade = remade_calls(analysis, pipeline)
    places = []
    for call in chain:
        downstream = graph.downstream(call)
        below = [other for other in chain if other.id in downstream]
        is_stored = any(other.method in _STORES for other in below)
        feeding_ids = {other.id for other in upstream_calls(analysis, call)}
        feeding = [other for other in chain if other.id in feeding_ids]
        obstacles = cache_obstacles(analysis, call)
        repeats = [other for other in feeding if other.method == "repeat"]
        movable = _movable_everywhere(
            analysis, feeding, call, {repeat.id for repeat in repeats} | {obstacle.call.id for obstacle in obstacles}
        )
        is_endless = (repeats and not movable) or any(
            other.cardinality == INFINITE_CARDINALITY for other in feeding if not other.inputs
        )
        is_repeated = any(
            other.method == "repeat" and other.arguments.get("count") != 1 for other in (*below, *repeats)
        )
        is_lost = call.id in remade and not is_repeated and not is_made_once
        if call.method in _POINTLESS or is_stored or is_endless or is_lost or is_cut(call, below):
            continue
        replaced = movable_cache(analysis, chain, call)
        if replaced is None and is_held_twice(analysis, call):
            continue
        saved = _saved(analysis, pipeline, [other for other in feeding if other not in movable])
        factors = {iterator_id: 1 - share for iterator_id, share in saved.items()}
        added_ns = _copied_ns(pipeline, call, below, costs.copied_bytes_per_ns)
        prediction = predict_speedup(analysis, pipeline, factors, factors, added_ns)
        if prediction is None:
            continue
        prediction = replace(prediction, first_pass=1.0)
        if added_ns or any(0 < factor < 1 for factor in factors.values()):
            prediction = costs.mark(prediction, "copied_bytes_per_ns")
        share = sum(pipeline.iterator(iterator_id).blame_share * part for iterator_id, part in saved.items())
        places.append(
            CachePlace(
                call,
                obstacles,
                cache_bytes(analysis, pipeline, call, _one_pass(chain, call, repeats)),
                share,
                prediction,
                is_repeated,
                movable,
                element_bytes(pipeline, call),
                cache_assumptions(analysis, call),
                replaced,
                None if replaced is None else cache_bytes(analysis, pipeline, replaced),
            )
        )
    return places


def _copied_ns(pipeline: Pipeline, call: Call, below: Sequence[Call], bytes_per_ns: float) -> float:
    """Time per step for the copies that a `batch` after the cache makes in addition, in nanoseconds.

    Strings without another owner are moved into a batch; strings of a cache are copied, from memory that is in no processor
    cache. Numbers are copied in either case. Measured: a batch of eight records of 110 KB takes 50 us without and 320 us with
    copying.
    """
    if "tf.string" not in call.element_spec:
        return 0.0
    for other in reversed(below):  # nearest to the cache first
        if other.method == "batch":
            it = next((it for it in pipeline.iterators if it.calls and it.calls[0].id == other.id), None)
            if it is None or not it.elements or not it.element_bytes or pipeline.num_elements <= 0:
                return 0.0
            return it.element_bytes * it.elements / pipeline.num_elements / bytes_per_ns
        if other.method not in _HANDING_ON:
            return 0.0
    return 0.0


def is_read_again(analysis: Analysis, pipeline: Pipeline, call: Call | None = None) -> bool:
    """Return whether the consumer reads the data more than once, as recorded or according to Keras.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        call: One of its calls, whose dataset has to be the same each time; None: it may have been made again.
    """
    consumer, recording = pipeline.consumer, analysis.recording
    if consumer is None or (recording is not None and recording.is_read_once):
        return False
    if consumer.kind.startswith("keras"):  # Keras also creates iterators that are no epochs
        epochs = analysis.keras.get("epochs")
        return isinstance(epochs, int) and epochs > 1
    is_same = call is None or call.id not in remade_calls(analysis, pipeline)
    return consumer.iterators > 1 and is_same


def is_repeated_downstream(analysis: Analysis, pipeline: Pipeline, call: Call) -> bool:
    """Return whether a `repeat` between `call` and the consumer reads it for more than one epoch.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: One of its calls.
    """
    return any(
        other.method == "repeat" and other.arguments.get("count") != 1
        for other in downstream_calls(analysis, pipeline, call)
    )


def downstream_calls(analysis: Analysis, pipeline: Pipeline, call: Call) -> tuple[Call, ...]:
    """Return the calls between `call` (exclusive) and the consumer, nearest to the consumer first.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, which tells what the consumer reads.
        call: A call upstream of the consumer.

    Returns:
        The calls; none if it cannot be determined what the consumer reads.
    """
    consumed = consumed_call(analysis, pipeline)
    chain = upstream_calls(analysis, consumed) if consumed else ()
    downstream = graph_of(analysis).downstream(call)
    return tuple(other for other in chain if other.id in downstream)


def is_in_memory(call: Call) -> bool:
    """Whether a call of the script is a cache in memory."""
    return call.method == "cache" and call.arguments.get("filename") in ("", None)


def is_cached_downstream(analysis: Analysis, pipeline: Pipeline, call: Call) -> bool:
    """Return whether a complete cache stores the elements of `call`, so that the call works in the first epoch only.

    A cache in a dataset that is made again for every epoch starts empty each time and does not count.

    Where the elements reach the consumer on several ways (the branches of a `zip`), each of them must lead through a cache. For a
    call made inside a function, the transformation with that function is checked.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: A call of it, possibly one inside a function.
    """
    by_id = {other.id: other for other in analysis.calls}
    while (outer := by_id.get(call.nested_in or call.made_by or "")) is not None:
        call = outer
    after = downstream_calls(analysis, pipeline, call)
    if any(other.method == "take" for other in after):
        return False
    lost = frozenset() if is_repeated_downstream(analysis, pipeline, call) else remade_calls(analysis, pipeline)
    stores = frozenset(other.id for other in after if other.method in _STORES and other.id not in lost)
    consumed = consumed_call(analysis, pipeline)
    return consumed is not None and bool(stores) and graph_of(analysis).always_through(call, consumed, stores)


def saved_work(analysis: Analysis, pipeline: Pipeline, call: Call) -> dict[str, float]:
    """Return the share of each iterator's work that storing the elements of `call` would save, by iterator id.

    Caches upstream are ignored, because this is used for existing caches that have no effect.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, whose iterators the result names.
        call: The call after which the cache is.

    Returns:
        Iterator id -> share, 0 to 1.
    """
    feeding = upstream_calls(analysis, call)
    ids = {inner.id for other in feeding for inner in (other, *nested_calls(analysis, other))}
    return _shares(analysis, pipeline, ids)


def newly_saved_work(analysis: Analysis, pipeline: Pipeline, call: Call) -> dict[str, float]:
    """Return what `saved_work` does, without the work that caches upstream of `call` save already.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, whose iterators the result names.
        call: The call after which a cache would be.

    Returns:
        Iterator id -> share, 0 to 1.
    """
    return _saved(analysis, pipeline, list(upstream_calls(analysis, call)))


def movable_shuffles(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """Return the shuffles upstream of `call` if they are the only reason why epochs differ and can be moved after it."""
    feeding = upstream_calls(analysis, call)
    return _movable_everywhere(
        analysis, feeding, call, {obstacle.call.id for obstacle in cache_obstacles(analysis, call)}
    )


def _movable(feeding: Sequence[Call], call: Call, in_the_way: Collection[str]) -> tuple[Call, ...]:
    """The calls in the way, nearest first, if they are shuffles and repeats with only maps between them and `call`.

    Shuffling or repeating the results of a map is equivalent to shuffling or repeating its inputs. (This does not hold for a
    `batch`.) `list_files` shuffles all files; their number must be known.
    """
    by_id = {other.id: other for other in feeding}
    movable: list[Call] = []
    node: Call | None = call
    while node is not None and len(movable) < len(in_the_way):
        if node.id in in_the_way:
            is_sized = node.method == "list_files" and node.cardinality is not None and node.cardinality > 0
            if node.library is not None or not (node.method in ("shuffle", "repeat") or is_sized):
                return ()
            movable.append(node)
        elif node.method not in ("map", "shuffle"):
            return ()
        node = by_id.get(node.inputs[0]) if len(node.inputs) == 1 else None
    return tuple(movable) if len(movable) == len(in_the_way) else ()


def _movable_everywhere(
    analysis: Analysis, feeding: Sequence[Call], call: Call, in_the_way: Collection[str]
) -> tuple[Call, ...]:
    """As `_movable`, if in every other dataset of the same text nothing but these calls is in the way, and can move as well."""
    calls = graph_of(analysis).by_id
    movable = _movable(feeding, call, in_the_way)
    spans = {span_of(other.id, calls) for other in movable}
    siblings = siblings_of(call, calls) if movable else ()
    if len(siblings) > MAX_SIBLINGS:
        return ()
    for sibling in siblings:
        theirs = upstream_calls(analysis, sibling)
        ids = {obstacle.call.id for obstacle in own_obstacles(analysis, sibling)}
        ids |= {other.id for other in theirs if span_of(other.id, calls) in spans}
        moved = _movable(theirs, sibling, ids)
        if len(moved) != len(ids) or not {span_of(other.id, calls) for other in moved} <= spans:
            return ()
    return movable


def _one_pass(chain: Sequence[Call], call: Call, repeats: Sequence[Call]) -> Call:
    """A call with as many elements as one pass of `call`; after moved repeats there are only maps and shuffles."""
    inputs = [i for other in repeats for i in other.inputs]
    return next((other for other in reversed(chain) if other.id in inputs), call)


def _saved(analysis: Analysis, pipeline: Pipeline, cached: list[Call]) -> dict[str, float]:
    """Iterator id -> share of its work that a cache after all of `cached` saves, without the savings of caches among them."""
    stored = {other.id for call in cached if call.method in _STORES for other in upstream_calls(analysis, call)}
    ids = {inner.id for call in cached if call.id not in stored for inner in (call, *nested_calls(analysis, call))}
    return _shares(analysis, pipeline, ids)


def _shares(analysis: Analysis, pipeline: Pipeline, ids: Collection[str]) -> dict[str, float]:
    """Iterator id -> share of its work that is done for these calls."""
    saved: dict[str, float] = {}
    bytes_per_ns = machine_costs(analysis).copied_bytes_per_ns
    for it in pipeline.iterators:
        mine = [call for call in it.calls if call.id in ids]
        if mine:
            saved[it.id] = 1.0 if len(mine) == len(it.calls) else _function_share(it, bytes_per_ns)
    return saved


def _function_share(iterator: Iterator, bytes_per_ns: float) -> float:
    """Share of the work of a map fused with a batch that belongs to the map. Copying the elements into the batch remains."""
    if iterator.busy_ns <= 0:
        return 0.0
    function = min(1.0, iterator.function_ns / iterator.busy_ns)
    row_bytes, size = iterator.calls[0].element_bytes, iterator.calls[-1].arguments.get("batch_size")
    bytes_ = iterator.element_bytes or (row_bytes * size if row_bytes and isinstance(size, int) else None)
    if not bytes_ or not iterator.elements:
        return function
    copying_ns = iterator.elements * bytes_ / bytes_per_ns
    calling_ns = iterator.elements * (size if isinstance(size, int) else 1) * CALLED_NS.value
    stays_ns = max(copying_ns, iterator.busy_ns - iterator.function_ns - calling_ns)
    return max(function, 1 - stays_ns / iterator.busy_ns)
