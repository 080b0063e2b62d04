"""missing-prefetch: the pipeline works only while the consumer waits."""

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
class MissingPrefetch(Rule):
    """The pipeline and its consumer take turns instead of working at the same time.

    ## Why it is slow
    Without a buffer at the end, the work of the last transformations begins when the consumer asks for an element and the
    consumer's work begins when it has it. A step takes as long as both together.

    ## What the fix does
    `.prefetch(tf.data.AUTOTUNE)` as the last transformation makes the next elements while the consumer works on this one: a step
    takes as long as the slower of the two. Elements and order stay the same. The buffer holds a few elements of the size that
    the consumer takes.

    ## When not to
    When one element is so large that a second one does not fit in memory.

    ## What tf.data already does
    It puts a prefetch at the end by itself (`inject_prefetch`), unless that rewrite is switched off (if autotuning or all
    default optimizations are, see `autotune-off`).
    `MapAndBatch`, `ParallelMap` and `ParallelBatch` at the end work ahead too; the rule is silent about those.
    """

    min_consumer_share: float = 0.05
    """Share of the step in which the consumer works. Where it does less there is nothing to overlap with."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding if what the consumer calls is made in its own thread."""
        pipeline = analysis.main
        if pipeline is None or 1 - pipeline.wait_share < self.min_consumer_share:
            return
        top = top_iterator(pipeline)
        if top is None or top.is_async or is_rewrite_forbidden(analysis, pipeline):
            return  # where an option forbids tf.data to put one there, that option is the cause: `autotune-off`
        if any(call.method == "prefetch" for it in pipeline.iterators for call in it.calls):
            return  # there is one, in the wrong place: `misplaced-prefetch`
        call = last_editable_call(analysis, pipeline)
        behind = asynchronous(pipeline)
        share = sum(it.blame_share for it in pipeline.iterators if it.id not in behind)
        where = f" behind {call.method} at {place(call)}" if call else ""
        because = (
            f"The pipeline ends in {top.name} without a buffer{where}: {format_share(share)} of the wait for input is work "
            "that is only begun when the consumer asks for it, while the consumer itself works "
            f"{format_share(1 - pipeline.wait_share)} of the step."
        )
        yield self.finding(
            "Prefetch at the end of the pipeline",
            because,
            call=call,
            iterator=top,
            prediction=predict_speedup(analysis, pipeline, overlap_factors(pipeline)),
            memory_bytes=top.element_bytes,
            fix=Fix((InsertAfter(call.id, "prefetch", (("", AUTOTUNE),)),), Safety.EXACT, is_auto=True)
            if call
            else None,
            evidence=(
                Evidence("consumer_share", 1 - pipeline.wait_share, "share"),
                Evidence("synchronous_blame_share", share, "share"),
            ),
        )


EXAMPLES = (
    fires(
        pipeline(
            source(ms=1),
            options(experimental_optimization__inject_prefetch=False),
            shuffle(),
            batch(8),
            consumer_ms=10,
            cores=4,
        ),
        fixed="ds.batch(8).prefetch(tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(
            source(),
            map_("decode", ms=1),
            batch(8),
            options(experimental_optimization__inject_prefetch=False),
            map_("normalize", ms=8, random=True),
            consumer_ms=10,
        ),
        fixed="ds.map(normalize).prefetch(tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(source(ms=1), shuffle(), batch(8), consumer_ms=4, cores=4),
        because="tf.data has injected a prefetch",
    ),
    silent(
        pipeline(
            source(ms=1),
            batch(8),
            options(experimental_optimization__inject_prefetch=False),
            prefetch(1),
            consumer_ms=4,
        ),
        because="the script prefetches",
    ),
    silent(
        pipeline(
            source(),
            options(experimental_optimization__inject_prefetch=False),
            map_("decode", ms=1),
            batch(8),
            consumer_ms=4,
        ),
        because="MapAndBatch works ahead on its own threads",
    ),
    silent(
        pipeline(source(ms=10), batch(8), options(experimental_optimization__inject_prefetch=False), consumer_ms=0.5),
        because="the consumer does next to nothing, so that there is nothing to overlap with",
    ),
)
