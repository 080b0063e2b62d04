"""cache-after-shuffle: a cache stores the shuffled order of the first epoch."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.rule import (
    Analysis,
    Call,
    Edit,
    Evidence,
    Finding,
    Fix,
    InsertAfter,
    Iter,
    MoveAfter,
    Note,
    Rule,
    Safety,
    SetArgument,
    cache_obstacles,
    consumed_call,
    downstream_calls,
    is_editable,
    is_read_again,
    is_repeated_downstream,
    linear_chain,
    movable_shuffles,
    place,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, map_, pipeline, repeat, shuffle, silent, source


@dataclass(frozen=True)
class CacheAfterShuffle(Rule):
    """A cache follows the shuffle, so every epoch repeats the order of the first.

    ## Why it is slow
    This is a correctness problem rather than a performance problem. The data is shuffled only once, and the model sees
    the same batches in every epoch.

    ## What the fix does
    It moves the shuffle after the cache, so that every epoch is shuffled again. The elements stay the same; their order
    changes. The move has no effect on speed that could be proved, so it is shown but never applied.

    ## When not to
    When a single order for all epochs is intended. Set `reshuffle_each_iteration=False` to express this; the cache is
    then not reported.

    ## What tf.data already does
    Nothing.
    """

    needs_input_bound: ClassVar[bool] = False

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each cache of shuffled elements that is read in several epochs and not shuffled again."""
        pipeline = analysis.main
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            if call.method != "cache":
                continue
            obstacles = cache_obstacles(analysis, call)
            shuffles = [obstacle.call for obstacle in obstacles if obstacle.call.method in ("shuffle", "list_files")]
            downstream = downstream_calls(analysis, pipeline, call)
            is_again = is_read_again(analysis, pipeline, call) or is_repeated_downstream(analysis, pipeline, call)
            is_mixed = any(later.method in ("shuffle", "sample_from_datasets") for later in downstream)
            if not shuffles or len(shuffles) < len(obstacles) or not is_again or is_mixed:
                continue
            edits = edits_of(analysis, call)
            is_written = all(is_editable(edited) for edited in (call, *shuffles))
            yield self.finding(
                "Put the cache before the shuffle",
                f"The cache at {place(call)} stores the order produced by {shuffles[0].method} at "
                f"{place(shuffles[0])} in the first epoch, and no later transformation shuffles: every epoch repeats "
                "that order.",
                call=call,
                fix=Fix(edits, Safety.RERANDOMIZED, is_auto=False, is_provable=False) if edits and is_written else None,
                evidence=(Evidence("shuffles", len(shuffles), "calls"),),
            )


def edits_of(analysis: Analysis, cache_call: Call) -> tuple[Edit, ...]:
    """The edits that move the shuffles after the cache; empty if a shuffle cannot be moved, for example across a batch."""
    chain = linear_chain(analysis, cache_call)
    edits: list[Edit] = []
    for call in movable_shuffles(analysis, chain[1]) if len(chain) > 1 else ():
        if call.method != "list_files":
            edits.append(MoveAfter(call.id, cache_call.id))
        else:
            edits.append(SetArgument(call.id, "shuffle", False))
            edits.append(InsertAfter(cache_call.id, "shuffle", (("", call.cardinality),)))
    return tuple(edits)


EXAMPLES = (
    fires(
        pipeline(source(), map_("decode", ms=1), shuffle(500), cache(), batch(32), consumer_ms=5, epochs=3),
        fixed="ds = ds.cache()\nds = ds.shuffle(500)\nds = ds.batch(32)",
    ),
    fires(
        pipeline(source("ListFiles", elements=900), map_("load", ms=1), cache(), batch(32), repeat(), consumer_ms=50),
        fixed='list_files("images/*.jpg", shuffle=False)\nds = ds.map(load)\nds = ds.cache().shuffle(900)',
    ),
    fires(pipeline(source(), shuffle(500), batch(32), cache(), consumer_ms=5, epochs=3)),
    silent(
        pipeline(source(), shuffle(500), cache(), shuffle(500), batch(32), consumer_ms=5, epochs=3),
        because="the cached elements are shuffled again",
    ),
    silent(
        pipeline(source(), shuffle(500, reshuffle_each_iteration=False), cache(), batch(32), consumer_ms=5, epochs=3),
        because="the script requests a single order for all epochs",
    ),
    silent(
        pipeline(source(), shuffle(500), cache(), batch(32), consumer_ms=5, epochs=1),
        because="the data is read once",
    ),
    silent(
        pipeline(source(), cache(), shuffle(500), batch(32), consumer_ms=5, epochs=3),
        because="the shuffle follows the cache",
    ),
)
