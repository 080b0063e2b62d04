"""late-shard: costly work is done on elements that a later shard leaves to other workers."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    MoveAfter,
    Note,
    Rule,
    Safety,
    is_cached_downstream,
    is_editable,
    iterators_of_call,
    label,
    linear_chain,
    parallel_safety,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, shard, shuffle, silent, source


@dataclass(frozen=True)
class LateShard(Rule):
    """A `shard` discards most of the output of a costly `map` before it.

    ## Why it is slow
    `shard(n, i)` keeps one element in `n`. Transformations before it process all elements on every worker, so `n`
    workers do `n` times the work.

    ## What the fix does
    It moves the maps after the shard. A map produces exactly one element per input, so the shard keeps the same
    elements in the same order. A map that draws random numbers draws different ones.

    ## When not to
    When the map must see every element, for example to count them. Such a function is stateful and is not reported.

    ## What tf.data already does
    Nothing. (With `tf.distribute`, auto-sharding inserts its own shard at the source.)
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each shard directly preceded by costly maps."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for call in analysis.calls:
            shards = call.arguments.get("num_shards")
            if (
                call.method != "shard"
                or not isinstance(shards, int)
                or shards < 2
                or not iterators_of_call(pipeline, call)
            ):
                continue
            maps = maps_before(linear_chain(analysis, call))
            costs = [it for map_call in maps for it in iterators_of_call(pipeline, map_call)]
            if not costs or is_cached_downstream(analysis, pipeline, call):
                continue
            kept = {it.id: 1 / shards for it in costs}
            share = sum(it.blame_share for it in costs)
            names = " and ".join(label(map_call) for map_call in reversed(maps))
            safety = max((parallel_safety(map_call) for map_call in maps), key=list(Safety).index)
            edits = tuple(
                MoveAfter(map_call.id, call.id) for map_call in maps
            )  # nearest first: each move inserts before the previous one
            yield self.finding(
                f"Shard before {names}",
                f"shard at {place(call)} keeps one in {shards} of the elements processed by {names}, which causes "
                f"{format_share(share)} of the wait for input. Moved before the map, it keeps the same elements.",
                call=call,
                iterator=costs[0],
                prediction=predict_speedup(analysis, pipeline, kept, kept),
                fix=Fix(edits, safety, is_auto=False) if all(is_editable(edited) for edited in (call, *maps)) else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("num_shards", shards, "shards"),
                ),
            )


def maps_before(chain: tuple[Call, ...]) -> tuple[Call, ...]:
    """The stateless maps directly before the first call of the chain, nearest first."""
    maps: list[Call] = []
    for upstream in chain[1:]:
        function = upstream.function
        if upstream.method != "map" or function is None or function.python_ops:
            break
        if function.is_stateful and not (function.random_ops or function.captured):
            break
        maps.append(upstream)
    return tuple(maps)


EXAMPLES = (
    fires(
        pipeline(source(), map_("load", ms=1), shard(4), batch(16), consumer_ms=5, cores=4),
        fixed="ds = ds.shard(4, index=0)\nds = ds.map(load)\nds = ds.batch(16)",
    ),
    fires(
        pipeline(source(), map_("read", ms=0.1), map_("decode", ms=1), shard(8), batch(16), consumer_ms=5, cores=4),
        fixed="ds = ds.shard(8, index=0)\nds = ds.map(read)\nds = ds.map(decode)\nds = ds.batch(16)",
    ),
    silent(
        pipeline(source(), shard(4), map_("load", ms=1), batch(16), consumer_ms=2, cores=4),
        because="the shard precedes the map",
    ),
    silent(
        pipeline(source(ms=1), map_("parse", ms=0.01), shard(4), batch(16), consumer_ms=5, cores=4),
        because="the consumer waits for the reader",
    ),
    silent(
        pipeline(source(), map_("load", ms=1), shuffle(), shard(4), batch(16), consumer_ms=5, cores=4),
        because="moving the shard before a shuffle would change its elements",
    ),
    silent(
        pipeline(source(), map_("count", ms=1, stateful=True), shard(4), batch(16), consumer_ms=5, cores=4),
        because="a stateful function must see every element",
    ),
)
