"""misplaced-prefetch: the only prefetch precedes the costly work."""

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
    """There is a prefetch, but costly work follows it.

    ## Why it is slow
    A prefetch lets the transformations before it run ahead. Transformations after it start only when the consumer
    requests an element, and the consumer continues only when they are done.

    ## What the fix does
    It adds `.prefetch(tf.data.AUTOTUNE)` as the last transformation. The existing prefetch may stay: it costs the
    memory of a few elements. Elements and order stay the same.

    ## When not to
    When the final elements are so large that a second one does not fit in memory.

    ## What tf.data already does
    It adds a prefetch at the end automatically (`inject_prefetch`), regardless of others, unless this rewrite is
    disabled (together with autotuning or all default optimizations, see `autotune-off`).
    """

    min_consumer_share: float = 0.05
    """Share of the step in which the consumer works. With less, there is nothing to overlap with."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if the last iterator runs in the consumer's thread although the script prefetches elsewhere."""
        pipeline = analysis.main
        if pipeline is None or 1 - pipeline.wait_share < self.min_consumer_share:
            return
        top = top_iterator(pipeline)
        early = next((call for it in pipeline.iterators for call in it.calls if call.method == "prefetch"), None)
        if top is None or top.is_async or early is None or is_rewrite_forbidden(analysis, pipeline):
            return
        call = last_editable_call(analysis, pipeline)
        buffered = asynchronous(pipeline)
        share = sum(it.blame_share for it in pipeline.iterators if it.id not in buffered)
        yield self.finding(
            "Prefetch at the end of the pipeline",
            f"The prefetch at {place(early)} precedes work that causes {format_share(share)} of the wait for input "
            "and starts only when the consumer requests an element, while the consumer itself works "
            f"{format_share(1 - pipeline.wait_share)} of the step.",
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
        because="tf.data has added a prefetch at the end",
    ),
    silent(
        pipeline(source(ms=2), prefetch(), _NO_INJECTION, shuffle(), batch(8, ms=0.1), consumer_ms=10, cores=4),
        because="the work after the prefetch costs nothing",
    ),
    silent(
        pipeline(source(ms=0.1), _NO_INJECTION, shuffle(), batch(8, ms=8), consumer_ms=10, cores=4),
        because="there is no prefetch at all: see missing-prefetch",
    ),
)
