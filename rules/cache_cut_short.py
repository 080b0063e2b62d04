"""cache-cut-short: epochs end before the cache is full, so that it is thrown away each time."""

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
    Pipeline,
    Rule,
    Safety,
    cache_assumptions,
    cache_bytes,
    cache_obstacles,
    calls_behind,
    consumed_call,
    is_editable,
    is_read_again,
    is_repeated_behind,
    place,
    predict_speedup,
    saved_work,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, map_, pipeline, repeat, shuffle, silent, source, take


@dataclass(frozen=True)
class CacheCutShort(Rule):
    """A `take` behind a cache ends every epoch before the cache has seen all its elements, so it is never used.

    ## Why it is slow
    tf.data uses a cache only once it is complete. An epoch that stops before the last element throws it away (TensorFlow logs
    "The calling iterator did not fully read the dataset being cached"), and the next epoch computes everything again.

    ## What the fix does
    The cache moves behind the `take`: it then holds exactly what an epoch uses, is complete after the first one, and is smaller.

    ## When not to
    Where something between the two is random, or shuffles, the `take` chooses other elements in every epoch, and a cache
    behind it would freeze the choice. The rule says so then, and moves nothing.

    ## What tf.data already does
    It warns in its log, once per epoch. It moves nothing.
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each cache that a `take` leaves unfinished in several epochs."""
        pipeline = analysis.main
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            cut = cutting_take(analysis, pipeline, call) if call.method == "cache" else None
            is_again = is_read_again(analysis, pipeline) or is_repeated_behind(analysis, pipeline, cut or call)
            if cut is None or not is_again:
                continue
            obstacles = cache_obstacles(analysis, cut)
            if obstacles:
                between = obstacles[0].call
                yield Note(
                    f"The cache at {place(call)} is never complete, because take at {place(cut)} ends each epoch before; behind "
                    f"the take it would freeze what {between.method} at {place(between)} does. As it is, it only costs memory."
                )
                continue
            saved = saved_work(analysis, pipeline, cut)
            left = {iterator_id: 1 - share for iterator_id, share in saved.items()}
            share = sum(pipeline.iterator(iterator_id).blame_share * part for iterator_id, part in saved.items())
            whole = call.cardinality if call.cardinality is not None and call.cardinality > 0 else None
            of = f" of {whole}" if whole else ""
            yield self.finding(
                "Put the cache behind the take",
                f"take at {place(cut)} ends every epoch after {cut.arguments.get('count')}{of} elements, so the cache at "
                f"{place(call)} is never complete and never used: what it should save causes {format_share(share)} of the wait "
                "for input.",
                call=call,
                prediction=predict_speedup(analysis, pipeline, left, left),
                memory_bytes=cache_bytes(analysis, pipeline, cut),
                fix=Fix(
                    (MoveAfter(call.id, cut.id),),
                    Safety.EXACT,
                    is_auto=not (assumptions := cache_assumptions(analysis, cut)),
                    assumptions=assumptions,
                )
                if is_editable(call) and is_editable(cut)
                else None,
                evidence=(
                    Evidence("saved_blame_share", share, "share"),
                    Evidence("taken", float(str(cut.arguments.get("count"))), "elements"),
                    *((Evidence("cached", whole, "elements"),) if whole else ()),
                ),
            )


def cutting_take(analysis: Analysis, pipeline: Pipeline, call: Call) -> Call | None:
    """The `take` behind the cache that is known to be shorter than what it takes from."""
    by_id = {each.id: each for each in analysis.calls}
    for each in calls_behind(analysis, pipeline, call):
        count, source_call = each.arguments.get("count"), by_id.get(each.inputs[0]) if each.inputs else None
        whole = source_call.cardinality if source_call else None
        is_shorter = isinstance(count, int) and whole is not None and (whole == -1 or 0 <= count < whole)
        repeats = any(up.method == "repeat" for up in upstream_calls(analysis, each) if is_behind(analysis, up, call))
        if each.method == "take" and isinstance(count, int) and count >= 0 and is_shorter and not repeats:
            return each
    return None


def is_behind(analysis: Analysis, call: Call, cache_call: Call) -> bool:
    """Whether `call` takes what the cache gives."""
    return any(each.id == cache_call.id for each in upstream_calls(analysis, call)[1:])


EXAMPLES = (
    fires(
        pipeline(source(), map_("decode", ms=5, bytes=9_000), cache(), take(2_000), batch(32), consumer_ms=5, epochs=3),
        fixed="ds = ds.take(2000)\nds = ds.cache()\nds = ds.batch(32)",
    ),
    fires(
        pipeline(source(), map_("decode", ms=5), cache(), batch(32), take(50), repeat(), consumer_ms=5),
        fixed="ds = ds.take(50)\nds = ds.cache()\nds = ds.repeat()",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), take(2_000), cache(), batch(32), consumer_ms=5, epochs=3),
        because="the cache stands behind the take",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), take(10_000), batch(32), consumer_ms=5, epochs=3),
        because="the take takes all there is",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), shuffle(), take(2_000), batch(32), consumer_ms=5, epochs=3),
        because="every epoch takes other elements",
        note="it would freeze what shuffle",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), repeat(), take(50_000), batch(32), consumer_ms=5, epochs=2),
        because="the repeat before the take reads the cache to its end",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), take(2_000), batch(32), consumer_ms=5, epochs=1),
        because="the data is read once: there is nothing to use again",
    ),
)
