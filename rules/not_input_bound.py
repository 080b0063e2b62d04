"""not-input-bound: the verdict that no pipeline can help; a next step, never a finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_ratio, format_share
from advisor.rule import Analysis, Finding, Iter, Note, Rule
from advisor.testing import batch, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class NotInputBound(Rule):
    """The consumer hardly ever waits for its input: the pipeline is fast enough.

    ## Why it is slow
    It is not, or not because of its input. When less than 5 % of the step goes into waiting for the next element, even a pipeline
    that costs nothing makes the step at most 1.05 times faster.

    ## What the fix does
    There is none in the pipeline, and no rule about pipelines is asked. The rule only says where to look instead: the training
    step itself and the device it runs on.

    ## When not to
    The verdict is that of the window. If single steps wait long (a shuffle buffer that fills at the start of each epoch, a
    checkpoint), look at a longer window: `--steps`.

    ## What tf.data already does
    See "already done" in the report: what tf.data parallelised, fused and buffered by itself is often why the input is fast
    enough.
    """

    needs_input_bound: ClassVar[bool] = False

    max_wait_share: float = 0.05
    """Share of the step spent waiting for input; XProf's line between no and moderate input-boundness."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """One note with the next step, where the verdict is that input is no problem."""
        verdict = analysis.verdict
        share = verdict.input_wait_share
        if verdict.is_input_bound or verdict.level == "unknown":
            return
        if share is None or verdict.steps is None or share >= self.max_wait_share:
            return
        yield Note(
            f"A step takes {format_ns(verdict.steps.median_ns)} and waits {format_share(share)} of it for input; a "
            "pipeline that "
            f"costs nothing would make it at most {format_ratio(1 / (1 - share))} as fast. Look at the step itself: what it "
            "computes, its precision and batch size, and how busy the device is."
        )


EXAMPLES = (
    silent(
        pipeline(source(), map_("decode", ms=1), batch(32), prefetch(), consumer_ms=100, cores=8),
        because="a verdict is no finding",
        note="Look at the step itself",
    ),
    silent(
        pipeline(source(), map_("decode", ms=0.1), batch(32), prefetch(), consumer_ms=20, cores=8),
        because="a verdict is no finding",
        note="waits 0 %",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, random=True), batch(32), prefetch(), consumer_ms=20, cores=8),
        because="the pipeline is what the consumer waits for",
    ),
)
