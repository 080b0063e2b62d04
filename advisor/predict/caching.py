"""Where a cache could stand, what it would save, hold and do to the data.

In: an `Analysis` and a pipeline.  Out: `CachePlace`s. Which of them to advise is a rule's to judge.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import INFINITE_CARDINALITY, Call
from advisor.model.shared_text import siblings_of, span_of
from advisor.predict.cache_size import cache_bytes, element_bytes, steps_per_epoch
from advisor.predict.call_index import index_of
from advisor.predict.determinism import (
    CONTENT,
    MAX_SIBLINGS,
    Obstacle,
    cache_assumptions,
    cache_obstacles,
    own_obstacles,
)
from advisor.predict.operational import predict_speedup
from advisor.predict.structure import consumed_call, nested_calls, upstream_calls

COPIED_BYTES_PER_NS = 4.0
"""How fast elements are copied into a batch. [Measured: eight images of 48 KiB in 70 us beside two busy cores.]"""
CALLED_NS = 50_000.0
"""What calling the function of a map fused with its batch takes for an element, under the profiler, with copying 48 KiB.
[Measured: 45 and 56 us beside a function of 0.74 ms, 16 us beside one of 0.07 ms.]"""
_STORES = ("cache", "snapshot")
_HANDING_ON = ("shuffle", "repeat", "with_options", "take", "skip", "shard", "prefetch")
"""These give what they get, so that what a cache holds comes to the batch."""
_POINTLESS = (
    "cache", "snapshot", "prefetch", "repeat", "with_options", "shuffle", "from_tensor_slices", "from_tensors", "range"
)  # fmt: skip
"""Behind these a cache holds the same elements as before them, more often, in a frozen order, or from memory as they do."""


@dataclass(frozen=True, slots=True)
class CachePlace:
    """A cache behind one call."""

    call: Call
    obstacles: tuple[Obstacle, ...]
    """Why epochs differ there; empty: the cache is exact."""
    bytes: int | None
    """What it would hold; None: unknown."""
    saved_share: float
    """Share of the consumer's wait that is blamed on what would no longer run."""
    prediction: Prediction
    """From the second epoch on."""
    is_repeated_below: bool
    """A `repeat` takes more than one epoch out of it."""
    movable: tuple[Call, ...] = ()
    """If nothing but shuffles and repeats is in the way, and each could as well stand behind the cache: those, nearest first."""
    element_bytes: int | None = None
    assumptions: tuple[str, ...] = ()
    """What the cache relies on that was not observed (`cache_assumptions`)."""

    @property
    def keeps_elements(self) -> bool:
        """Whether the elements stay the same, in whatever order."""
        return not any(obstacle.kind == CONTENT for obstacle in self.obstacles)


def cache_places(analysis: Analysis, pipeline: Pipeline) -> list[CachePlace]:
    """Every place for a cache between the sources and the consumer, that something would be saved by."""
    consumed = consumed_call(analysis, pipeline)
    if consumed is None or _leaves_early(analysis, pipeline, consumed):
        return []
    chain = upstream_calls(analysis, consumed)
    feeds = {call.id: {each.id for each in upstream_calls(analysis, call)} for call in chain}
    places = []
    for call in chain:
        below = [other for other in chain if other.id != call.id and call.id in feeds[other.id]]
        is_stored = any(other.method in _STORES for other in below)
        feeding = [each for each in chain if each.id in feeds[call.id]]
        obstacles = cache_obstacles(analysis, call)
        repeats = [each for each in feeding if each.method == "repeat"]
        movable = _movable_everywhere(
            analysis, feeding, call, {each.id for each in repeats} | {each.call.id for each in obstacles}
        )
        is_endless = (repeats and not movable) or any(
            each.cardinality == INFINITE_CARDINALITY for each in feeding if not each.inputs
        )
        if call.method in _POINTLESS or is_stored or is_endless or _is_cut(call, below, feeds):
            continue
        saved = _saved(analysis, pipeline, [each for each in feeding if each not in movable])
        factors = {iterator_id: 1 - share for iterator_id, share in saved.items()}
        added_ns = _copied_ns(pipeline, call, below)
        prediction = predict_speedup(analysis, pipeline, factors, factors, added_ns)
        if prediction is None:
            continue
        share = sum(pipeline.iterator(iterator_id).blame_share * part for iterator_id, part in saved.items())
        places.append(
            CachePlace(
                call,
                obstacles,
                cache_bytes(analysis, pipeline, call, _one_pass(chain, call, repeats)),
                share,
                prediction,
                any(each.method == "repeat" and each.arguments.get("count") != 1 for each in (*below, *repeats)),
                movable,
                element_bytes(pipeline, call),
                cache_assumptions(analysis, call),
            )
        )
    return places


def _copied_ns(pipeline: Pipeline, call: Call, below: Sequence[Call]) -> float:
    """What a `batch` behind the cache copies for a step that it need not copy now, as time.

    Strings that nobody else holds are moved into a batch; those of a cache are copied, from memory that no processor cache
    holds. Numbers are copied now already. [Measured: batches of eight records of 110 KB, 50 us for all that is not copying,
    320 us with it.]
    """
    if "tf.string" not in call.element_spec:
        return 0.0
    for other in reversed(below):  # nearest to the cache first
        if other.method == "batch":
            it = next((it for it in pipeline.iterators if it.calls and it.calls[0].id == other.id), None)
            if it is None or not it.elements or not it.element_bytes or pipeline.num_elements <= 0:
                return 0.0
            return it.element_bytes * it.elements / pipeline.num_elements / COPIED_BYTES_PER_NS
        if other.method not in _HANDING_ON:
            return 0.0
    return 0.0


def is_read_again(analysis: Analysis, pipeline: Pipeline) -> bool:
    """Whether the consumer reads the data more than once: seen, or said by Keras."""
    consumer = pipeline.consumer
    if consumer is None:
        return False
    if consumer.kind.startswith("keras"):  # it makes iterators for its own purposes too
        epochs = analysis.keras.get("epochs")
        return isinstance(epochs, int) and epochs > 1
    return consumer.iterators > 1


def is_repeated_behind(analysis: Analysis, pipeline: Pipeline, call: Call) -> bool:
    """Whether a `repeat` between `call` and the consumer takes more than one epoch out of it."""
    return any(
        each.method == "repeat" and each.arguments.get("count") != 1 for each in calls_behind(analysis, pipeline, call)
    )


def calls_behind(analysis: Analysis, pipeline: Pipeline, call: Call) -> tuple[Call, ...]:
    """The calls between `call` (not among them) and the consumer, nearest to the consumer first."""
    consumed = consumed_call(analysis, pipeline)
    chain = upstream_calls(analysis, consumed) if consumed else ()
    return tuple(
        each
        for each in chain
        if each.id != call.id and any(feeding.id == call.id for feeding in upstream_calls(analysis, each))
    )


def is_cached_behind(analysis: Analysis, pipeline: Pipeline, call: Call) -> bool:
    """Whether a cache that is read to its end keeps what comes out of `call`, so that it works in the first epoch only.

    For a call made inside a function, that of the transformation which the function belongs to.
    """
    by_id = {each.id: each for each in analysis.calls}
    while (outer := by_id.get(call.nested_in or call.made_by or "")) is not None:
        call = outer
    behind = calls_behind(analysis, pipeline, call)
    return any(each.method in _STORES for each in behind) and not any(each.method == "take" for each in behind)


def saved_work(analysis: Analysis, pipeline: Pipeline, call: Call) -> dict[str, float]:
    """Iterator id -> share of its work that would no longer be done if what comes out of `call` were kept.

    Whatever caches are upstream: this is for caches that are there and do not work.
    """
    feeding = upstream_calls(analysis, call)
    ids = {inner.id for each in feeding for inner in (each, *nested_calls(analysis, each))}
    return _shares(pipeline, ids)


def movable_shuffles(analysis: Analysis, call: Call) -> tuple[Call, ...]:
    """If nothing but shuffles keeps epochs behind `call` from being alike, and each could stand behind it as well: those."""
    feeding = upstream_calls(analysis, call)
    return _movable_everywhere(analysis, feeding, call, {each.call.id for each in cache_obstacles(analysis, call)})


def _leaves_early(analysis: Analysis, pipeline: Pipeline, consumed: Call) -> bool:
    """Whether the consumer leaves its epochs before their end: an unfinished cache is thrown away each time."""
    steps, whole = steps_per_epoch(analysis, pipeline), consumed.cardinality or 0
    return steps is not None and whole > 0 and steps < 0.9 * whole


def _is_cut(call: Call, below: Sequence[Call], feeds: Mapping[str, set[str]]) -> bool:
    """Whether something downstream takes only a part of what comes out of `call`, so that a cache is never filled."""
    for other in below:
        if other.method in ("take", "take_while") and other.arguments.get("count") != -1:
            return True
        if len(other.inputs) > 1 and other.method != "concatenate":
            is_whole = other.method == "zip" and other.cardinality is not None and other.cardinality == call.cardinality
            if not (
                is_whole
                and (other.cardinality or 0) > 0
                and sum(call.id in feeds.get(i, ()) for i in other.inputs) == 1
            ):
                return True
    return False


def _movable(feeding: Sequence[Call], call: Call, in_the_way: Collection[str]) -> tuple[Call, ...]:
    """The calls in the way, if they are shuffles and repeats with nothing but maps between them and `call`; nearest first.

    A map does the same to each element wherever it stands: shuffling or repeating its results gives what shuffling or
    repeating its inputs gives. (Not so a `batch`.) The shuffle in `list_files` is a full one; how many files there are must
    be known.
    """
    by_id = {each.id: each for each in feeding}
    found: list[Call] = []
    node: Call | None = call
    while node is not None and len(found) < len(in_the_way):
        if node.id in in_the_way:
            is_sized = node.method == "list_files" and node.cardinality is not None and node.cardinality > 0
            if node.library is not None or not (node.method in ("shuffle", "repeat") or is_sized):
                return ()
            found.append(node)
        elif node.method not in ("map", "shuffle"):
            return ()
        node = by_id.get(node.inputs[0]) if len(node.inputs) == 1 else None
    return tuple(found) if len(found) == len(in_the_way) else ()


def _movable_everywhere(
    analysis: Analysis, feeding: Sequence[Call], call: Call, in_the_way: Collection[str]
) -> tuple[Call, ...]:
    """As `_movable`, if in every other dataset of the same text nothing but these calls is in the way, and can move as well."""
    calls = index_of(analysis).by_id
    found = _movable(feeding, call, in_the_way)
    spans = {span_of(each.id, calls) for each in found}
    siblings = siblings_of(call, calls) if found else ()
    if len(siblings) > MAX_SIBLINGS:
        return ()
    for sibling in siblings:
        theirs = upstream_calls(analysis, sibling)
        ids = {each.call.id for each in own_obstacles(analysis, sibling)}
        ids |= {each.id for each in theirs if span_of(each.id, calls) in spans}
        moved = _movable(theirs, sibling, ids)
        if len(moved) != len(ids) or not {span_of(each.id, calls) for each in moved} <= spans:
            return ()
    return found


def _one_pass(chain: Sequence[Call], call: Call, repeats: Sequence[Call]) -> Call:
    """A call with as many elements as `call` gives in one pass: behind moved repeats there are only maps and shuffles."""
    inputs = [i for each in repeats for i in each.inputs]
    return next((each for each in reversed(chain) if each.id in inputs), call)


def _saved(analysis: Analysis, pipeline: Pipeline, cached: list[Call]) -> dict[str, float]:
    """Iterator id -> share of its work that a cache behind all of `cached` saves. What a cache among them saves already,
    or will once its first epoch is over, is not counted.
    """
    stored = {each.id for call in cached if call.method in _STORES for each in upstream_calls(analysis, call)}
    ids = {inner.id for call in cached if call.id not in stored for inner in (call, *nested_calls(analysis, call))}
    return _shares(pipeline, ids)


def _shares(pipeline: Pipeline, ids: Collection[str]) -> dict[str, float]:
    """Iterator id -> share of its work that is done for these calls."""
    saved: dict[str, float] = {}
    for it in pipeline.iterators:
        mine = [call for call in it.calls if call.id in ids]
        if mine:
            saved[it.id] = 1.0 if len(mine) == len(it.calls) else _function_share(it)
    return saved


def _function_share(iterator: Iterator) -> float:
    """Of a map fused with what follows it: the share of its work that goes with the map. What stays is copying the elements into
    a batch; calling the function goes too.
    """
    if iterator.busy_ns <= 0:
        return 0.0
    function = min(1.0, iterator.function_ns / iterator.busy_ns)
    each, size = iterator.calls[0].element_bytes, iterator.calls[-1].arguments.get("batch_size")
    bytes_ = iterator.element_bytes or (each * size if each and isinstance(size, int) else None)
    if not bytes_ or not iterator.elements:
        return function
    copying_ns = iterator.elements * bytes_ / COPIED_BYTES_PER_NS
    calling_ns = iterator.elements * (size if isinstance(size, int) else 1) * CALLED_NS
    stays_ns = max(copying_ns, iterator.busy_ns - iterator.function_ns - calling_ns)
    return max(function, 1 - stays_ns / iterator.busy_ns)
