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
    Rejected,
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
    """The pipeline and its consumer alternate instead of working in parallel.

    ## Why it is slow
    Without a buffer at the end, the last transformations start when the consumer requests an element, and the consumer
    continues when it has received it. A step takes as long as both together.

    ## What the fix does
    It adds `.prefetch(tf.data.AUTOTUNE)` as the last transformation, which prepares the next elements while the
    consumer works on the current one. A step then takes as long as the slower of the two. Elements and order stay the
    same. The buffer holds a few elements of the size that the consumer receives.

    ## When not to
    When one element is so large that a second one does not fit in memory.

    ## What tf.data already does
    It adds a prefetch at the end automatically (`inject_prefetch`), unless this rewrite is disabled (together with
    autotuning or all default optimizations, see `autotune-off`). `MapAndBatch`, `ParallelMap` and `ParallelBatch` at
    the end also work ahead and are not reported.
    """

    min_consumer_share: float = 0.05
    """Share of the step in which the consumer works. With less, there is nothing to overlap with."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding if the last iterator runs in the consumer's thread."""
        pipeline = analysis.main
        if pipeline is None or 1 - pipeline.wait_share < self.min_consumer_share:
            return
        top = top_iterator(pipeline)
        if top is not None and top.is_async:
            held = top.buffered_elements
            fill = (
                f", and steps wait {format_share(pipeline.wait_share)} of their time all the same"
                if held is None
                else f" and holds {held:.1f} elements on average when one is requested"
            )
            figure = Evidence("wait_share", pipeline.wait_share, "share")
            yield self.rejected(
                "Prefetch at the end of the pipeline",
                f"{top.name} at its end already works ahead{fill}",
                call=top.main_call,
                evidence=(figure if held is None else Evidence("buffered", held, "elements"),),
            )
        if top is None or top.is_async or is_rewrite_forbidden(analysis, pipeline):
            return  # if an option disables the automatic prefetch, that option is the cause: see `autotune-off`
        if any(call.method == "prefetch" for it in pipeline.iterators for call in it.calls):
            return  # there is one in the wrong place: see `misplaced-prefetch`
        call = last_editable_call(analysis, pipeline)
        buffered = asynchronous(pipeline)
        share = sum(it.blame_share for it in pipeline.iterators if it.id not in buffered)
        where = f" after {call.method} at {place(call)}" if call else ""
        because = (
            f"The pipeline ends in {top.name} without a buffer{where}: {format_share(share)} of the wait for input is "
            "work that starts only when the consumer requests an element, while the consumer itself works "
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
        because="tf.data has added a prefetch",
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
        because="MapAndBatch works ahead in its own threads",
    ),
    silent(
        pipeline(source(ms=10), batch(8), options(experimental_optimization__inject_prefetch=False), consumer_ms=0.5),
        because="the consumer does almost no work to overlap with",
    ),
)
