"""Where a cache could stand, what it would save, hold and do to the data.

In: an `Analysis` and a pipeline.  Out: `CachePlace`s. Which of them to advise is a rule's to judge.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.model.recording import INFINITE_CARDINALITY, Call
from advisor.predict.legality import CONTENT, Obstacle, cache_obstacles
from advisor.predict.memory import cache_bytes, element_bytes
from advisor.predict.operational import predict_speedup
from advisor.predict.structure import consumed_call, nested_calls, upstream_calls

_STORES = ("cache", "snapshot")
_POINTLESS = ("cache", "snapshot", "prefetch", "repeat", "with_options", "shuffle")
"""Behind these a cache holds the same elements as before them, more often, or in a frozen order."""


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
    """If nothing but shuffles is in the way, and each could as well stand behind the cache: those."""
    element_bytes: int | None = None

    @property
    def keeps_elements(self) -> bool:
        """Whether the elements stay the same, in whatever order."""
        return not any(obstacle.kind == CONTENT for obstacle in self.obstacles)


def cache_places(analysis: Analysis, pipeline: Pipeline) -> list[CachePlace]:
    """Every place for a cache between the sources and the consumer, that something would be saved by."""
    consumed = consumed_call(analysis, pipeline)
    if consumed is None:
        return []
    chain = upstream_calls(analysis, consumed)
    feeds = {call.id: {each.id for each in upstream_calls(analysis, call)} for call in chain}
    places = []
    for call in chain:
        below = [other for other in chain if other.id != call.id and call.id in feeds[other.id]]
        is_stored = any(other.method in _STORES for other in below)
        if call.method in _POINTLESS or is_stored or not _is_finite(chain, feeds[call.id]):
            continue
        obstacles = cache_obstacles(analysis, call)
        movable = _movable(chain, call, obstacles)
        cached = [each for each in chain if each.id in feeds[call.id] and each not in movable]
        saved = _saved(analysis, pipeline, cached)
        factors = {iterator_id: 1 - share for iterator_id, share in saved.items()}
        prediction = predict_speedup(analysis, pipeline, factors, factors)
        if prediction is None:
            continue
        share = sum(pipeline.iterator(iterator_id).blame_share * part for iterator_id, part in saved.items())
        places.append(
            CachePlace(
                call,
                obstacles,
                cache_bytes(analysis, pipeline, call),
                share,
                prediction,
                any(other.method == "repeat" and other.arguments.get("count") != 1 for other in below),
                movable,
                element_bytes(pipeline, call),
            )
        )
    return places


def _movable(chain: tuple[Call, ...], call: Call, obstacles: tuple[Obstacle, ...]) -> tuple[Call, ...]:
    """The calls of all obstacles, source last, if they are shuffles with nothing but maps between them and `call`.

    A map does the same to each element wherever it stands: shuffling its results gives the orders that shuffling its inputs
    gives. (Not so a `batch`.) The shuffle in `list_files` is a full one; how many files there are must be known.
    """
    in_the_way = {obstacle.call.id for obstacle in obstacles}
    by_id = {each.id: each for each in chain}
    found: list[Call] = []
    node = call
    while len(found) < len(in_the_way):
        if node.id in in_the_way:
            is_sized = node.method == "list_files" and node.cardinality is not None and node.cardinality > 0
            if node.library is not None or not (node.method == "shuffle" or is_sized):
                return ()
            found.append(node)
        elif node.method != "map":
            return ()
        if len(node.inputs) != 1 or node.inputs[0] not in by_id:
            break
        node = by_id[node.inputs[0]]
    return tuple(found) if len(found) == len(in_the_way) else ()


def _is_finite(chain: tuple[Call, ...], feeding: set[str]) -> bool:
    """Whether an epoch ends there; behind a `repeat` a cache would hold every pass."""
    return not any(
        call.method == "repeat" or call.cardinality == INFINITE_CARDINALITY for call in chain if call.id in feeding
    )


def _saved(analysis: Analysis, pipeline: Pipeline, cached: list[Call]) -> dict[str, float]:
    """Iterator id -> share of its work that a cache behind all of `cached` saves. What a cache among them saves already,
    or will once its first epoch is over, is not counted.
    """
    stored = {each.id for call in cached if call.method in _STORES for each in upstream_calls(analysis, call)}
    ids = {inner.id for call in cached if call.id not in stored for inner in (call, *nested_calls(analysis, call))}
    saved: dict[str, float] = {}
    for it in pipeline.iterators:
        mine = [call for call in it.calls if call.id in ids]
        if mine:
            saved[it.id] = 1.0 if len(mine) == len(it.calls) else _function_share(it)
    return saved


def _function_share(iterator: Iterator) -> float:
    """Of a map fused with what follows it: the share of its work that is the function's."""
    return min(1.0, iterator.function_ns / iterator.busy_ns) if iterator.busy_ns > 0 else 0.0
