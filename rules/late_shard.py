"""late-shard: costly work is done on elements that a shard then leaves to other workers."""

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
    is_cached_behind,
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
    """A `shard` throws away most of what a costly `map` before it has made.

    ## Why it is slow
    `shard(n, i)` keeps one element in `n`. What stands before it works on all of them, on every worker: `n` workers do `n` times
    the work of one.

    ## What the fix does
    The maps move behind the shard. A map makes one element of each, so the shard keeps the same ones, in the same order; a map
    that draws random numbers draws others.

    ## When not to
    When the map must see every element (it counts them, say): such a function keeps state, and the rule is silent about those.

    ## What tf.data already does
    Nothing here. (With `tf.distribute`, auto-sharding puts its own shard at the source.)
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each shard with costly maps directly before it."""
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
            costs = [it for each in maps for it in iterators_of_call(pipeline, each)]
            if not costs or is_cached_behind(analysis, pipeline, call):
                continue
            kept = {it.id: 1 / shards for it in costs}
            share = sum(it.blame_share for it in costs)
            names = " and ".join(label(each) for each in reversed(maps))
            safety = max((parallel_safety(each) for each in maps), key=list(Safety).index)
            edits = tuple(
                MoveAfter(each.id, call.id) for each in maps
            )  # nearest first: the later one comes to stand before
            yield self.finding(
                f"Shard before {names}",
                f"shard at {place(call)} keeps one in {shards} of the elements that {names} worked on, which causes "
                f"{format_share(share)} of the wait for input. Before the map, it keeps the same ones.",
                call=call,
                iterator=costs[0],
                prediction=predict_speedup(analysis, pipeline, kept, kept),
                fix=Fix(edits, safety, is_auto=False) if all(is_editable(each) for each in (call, *maps)) else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("num_shards", shards, "shards"),
                ),
            )


def maps_before(chain: tuple[Call, ...]) -> tuple[Call, ...]:
    """The maps directly before the first call of the chain, nearest first, none of which keeps state."""
    found: list[Call] = []
    for each in chain[1:]:
        function = each.function
        if each.method != "map" or function is None or function.python_ops:
            break
        if function.is_stateful and not (function.random_ops or function.captured):
            break
        found.append(each)
    return tuple(found)


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
        because="the shard stands before the map",
    ),
    silent(
        pipeline(source(ms=1), map_("parse", ms=0.01), shard(4), batch(16), consumer_ms=5, cores=4),
        because="reading is what the consumer waits for",
    ),
    silent(
        pipeline(source(), map_("load", ms=1), shuffle(), shard(4), batch(16), consumer_ms=5, cores=4),
        because="behind a shuffle the shard keeps other elements than before it",
    ),
    silent(
        pipeline(source(), map_("count", ms=1, stateful=True), shard(4), batch(16), consumer_ms=5, cores=4),
        because="a function that keeps state must see every element",
    ),
)
