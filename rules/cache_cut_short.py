"""cache-cut-short: epochs end before the cache is complete, so it is discarded each time."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    consumed_call,
    downstream_calls,
    is_editable,
    is_read_again,
    is_repeated_downstream,
    place,
    predict_speedup,
    saved_work,
    upstream_calls,
)
from advisor.testing import batch, cache, fires, map_, pipeline, repeat, shuffle, silent, source, take


@dataclass(frozen=True)
class CacheCutShort(Rule):
    """A `take` after a cache ends every epoch before the cache is complete, so the cache is never used.

    ## Why it is slow
    tf.data reads from a cache only once it is complete. If an epoch stops before the last element, the cache is
    discarded (TensorFlow logs "The calling iterator did not fully read the dataset being cached"), and the next epoch
    computes everything again.

    ## What the fix does
    It moves the cache after the `take`. The cache then holds exactly the elements that an epoch uses, is complete after
    the first epoch, and takes less memory.

    ## When not to
    When a transformation between the two is random or shuffles. The `take` then selects different elements in every
    epoch, and a cache after it would freeze the selection. In this case the report contains a note and no fix.

    ## What tf.data already does
    It logs a warning once per epoch.
    """

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each cache that a `take` leaves incomplete in several epochs."""
        pipeline = analysis.main
        consumed = consumed_call(analysis, pipeline) if pipeline else None
        if pipeline is None or consumed is None:
            return
        for call in upstream_calls(analysis, consumed):
            cut = cutting_take(analysis, pipeline, call) if call.method == "cache" else None
            is_again = is_read_again(analysis, pipeline, call) or is_repeated_downstream(
                analysis, pipeline, cut or call
            )
            if cut is None or not is_again:
                continue
            obstacles = cache_obstacles(analysis, cut)
            if obstacles:
                between = obstacles[0].call
                yield Note(
                    f"The cache at {place(call)} is never complete, because take at {place(cut)} ends every epoch "
                    f"first. After the take it would freeze the effect of {between.method} at {place(between)}; where "
                    "it is, it only costs memory."
                )
                continue
            saved = saved_work(analysis, pipeline, cut)
            left = {iterator_id: 1 - share for iterator_id, share in saved.items()}
            share = sum(pipeline.iterator(iterator_id).blame_share * part for iterator_id, part in saved.items())
            whole = call.cardinality if call.cardinality is not None and call.cardinality > 0 else None
            of = f" of {whole}" if whole else ""
            prediction = predict_speedup(analysis, pipeline, left, left)
            yield self.finding(
                "Move the cache after the take",
                f"take at {place(cut)} ends every epoch after {cut.arguments.get('count')}{of} elements, so the cache "
                f"at {place(call)} is never complete and never used. The work it would save causes "
                f"{format_share(share)} of the wait for input.",
                call=call,
                prediction=replace(prediction, first_pass=1.0) if prediction is not None else None,
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
    """The `take` after the cache that is known to be shorter than its input; None if there is none.

    Args:
        analysis: The run.
        pipeline: The executed pipeline.
        call: The cache.
    """
    by_id = {other.id: other for other in analysis.calls}
    for later in downstream_calls(analysis, pipeline, call):
        count, source_call = later.arguments.get("count"), by_id.get(later.inputs[0]) if later.inputs else None
        whole = source_call.cardinality if source_call else None
        is_shorter = isinstance(count, int) and whole is not None and (whole == -1 or 0 <= count < whole)
        repeats = any(
            up.method == "repeat" for up in upstream_calls(analysis, later) if is_downstream(analysis, up, call)
        )
        if later.method == "take" and isinstance(count, int) and count >= 0 and is_shorter and not repeats:
            return later
    return None


def is_downstream(analysis: Analysis, call: Call, cache_call: Call) -> bool:
    """Whether `call` is downstream of the cache.

    Args:
        analysis: The run.
        call: Any call.
        cache_call: The cache; it is not downstream of itself.
    """
    return any(upstream.id == cache_call.id for upstream in upstream_calls(analysis, call)[1:])


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
        because="the cache follows the take",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), take(10_000), batch(32), consumer_ms=5, epochs=3),
        because="the take covers the whole dataset",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), shuffle(), take(2_000), batch(32), consumer_ms=5, epochs=3),
        because="every epoch takes different elements",
        note="it would freeze the effect of shuffle",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), repeat(), take(50_000), batch(32), consumer_ms=5, epochs=2),
        because="the repeat before the take reads the whole cache",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), cache(), take(2_000), batch(32), consumer_ms=5, epochs=1),
        because="the data is read only once",
    ),
)
