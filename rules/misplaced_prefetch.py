"""misplaced-prefetch: the only prefetch stands before the costly work."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    AUTOTUNE,
    Analysis,
    Evidence,
    Finding,
    Fix,
    InsertAfter,
    Iter,
    Note,
    Rule,
    Safety,
    asynchronous,
    is_rewrite_forbidden,
    last_editable_call,
    overlap_factors,
    place,
    predict_speedup,
    top_iterator,
)
from advisor.testing import batch, fires, map_, options, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class MisplacedPrefetch(Rule):
    """There is a prefetch, but costly work stands between it and the consumer.

    ## Why it is slow
    A prefetch lets what is before it run ahead. What is behind it still begins only when the consumer asks, and the consumer's
    work begins only when that is done.

    ## What the fix does
    `.prefetch(tf.data.AUTOTUNE)` as the last transformation. The other one may stay: it costs a few elements of memory. Elements
    and order stay the same.

    ## When not to
    When one element at the end is so large that a second one does not fit in memory.

    ## What tf.data already does
    It puts a prefetch at the end by itself (`inject_prefetch`), wherever others stand, unless that rewrite is switched off (if
    autotuning or all default optimizations are, see `autotune-off`).
    """

    min_consumer_share: float = 0.05
    """Share of the step in which the consumer works. Where it does less there is nothing to overlap with."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding if what the consumer calls is made in its own thread, although the script prefetches somewhere."""
        pipeline = analysis.main
        if pipeline is None or 1 - pipeline.wait_share < self.min_consumer_share:
            return
        top = top_iterator(pipeline)
        early = next((each for it in pipeline.iterators for each in it.calls if each.method == "prefetch"), None)
        if top is None or top.is_async or early is None or is_rewrite_forbidden(analysis, pipeline):
            return
        call = last_editable_call(analysis, pipeline)
        behind = asynchronous(pipeline)
        share = sum(it.blame_share for it in pipeline.iterators if it.id not in behind)
        yield self.finding(
            "Prefetch at the end of the pipeline",
            f"The prefetch at {place(early)} stands before work that causes {format_share(share)} of the wait for input "
            "and is only "
            f"begun when the consumer asks for it, while the consumer itself works {format_share(1 - pipeline.wait_share)} of "
            "the step.",
            call=early,
            iterator=top,
            prediction=predict_speedup(analysis, pipeline, overlap_factors(pipeline)),
            memory_bytes=top.element_bytes,
            fix=Fix((InsertAfter(call.id, "prefetch", (("", AUTOTUNE),)),), Safety.EXACT, is_auto=True)
            if call and call.id != early.id
            else None,
            evidence=(
                Evidence("consumer_share", 1 - pipeline.wait_share, "share"),
                Evidence("synchronous_blame_share", share, "share"),
            ),
        )


_NO_INJECTION = options(experimental_optimization__inject_prefetch=False)

EXAMPLES = (
    fires(
        pipeline(source(ms=0.1), prefetch(), _NO_INJECTION, shuffle(), batch(8, ms=8), consumer_ms=10, cores=4),
        fixed="ds.batch(8).prefetch(tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(
            source(), prefetch(8), _NO_INJECTION, batch(8), map_("distort", ms=6, random=True), consumer_ms=8, cores=4
        ),
        fixed="ds.map(distort).prefetch(tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(source(ms=0.1), prefetch(), shuffle(), batch(8, ms=8), consumer_ms=10, cores=4),
        because="tf.data has put another one at the end",
    ),
    silent(
        pipeline(source(ms=2), prefetch(), _NO_INJECTION, shuffle(), batch(8, ms=0.1), consumer_ms=10, cores=4),
        because="what is behind the prefetch costs nothing",
    ),
    silent(
        pipeline(source(ms=0.1), _NO_INJECTION, shuffle(), batch(8, ms=8), consumer_ms=10, cores=4),
        because="there is none at all: that is missing-prefetch",
    ),
)
