"""not-input-bound: faster input would not help; a note with the next step, never a finding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_ratio, format_share
from advisor.rule import Analysis, Finding, Iter, Note, Rule, has_consumer_elsewhere
from advisor.testing import batch, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class NotInputBound(Rule):
    """The consumer hardly ever waits for its input: the pipeline is fast enough.

    ## Why it is slow
    If it is slow, the input is not the cause. When less than 5 % of the step is spent waiting for the next element,
    even a pipeline that is always ready makes the step at most 1.05 times faster. On a machine whose cores run the model
    too, the work of the pipeline can cost more than the wait: the report says how much CPU time it takes.

    ## What the fix does
    There is no fix in the pipeline, and rules about pipelines are not evaluated. The report contains a note on where to
    look instead: the training step itself and the device it runs on.

    ## When not to
    The verdict covers only the measured window. If individual steps wait long (a shuffle buffer that fills at the start
    of each epoch, a checkpoint), measure a longer window with `--steps`.

    ## What tf.data already does
    See "already done" in the report: the parallelism, fusion and buffering applied automatically by tf.data are often
    why the input is fast enough.
    """

    needs_input_bound: ClassVar[bool] = False

    max_wait_share: float = 0.05
    """Share of the step spent waiting for input; XProf's boundary between not and moderately input-bound."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield one note with the next step if the program is not input-bound."""
        verdict = analysis.verdict
        share = verdict.input_wait_share
        if verdict.is_input_bound or verdict.level == "unknown":
            return
        if share is None or verdict.steps is None or share >= self.max_wait_share:
            return
        yield Note(
            f"A step takes {format_ns(verdict.steps.median_ns)} and waits {format_share(share)} of it for input. "
            f"{_without(analysis, share)} Look at the step itself: what it computes, its precision and batch size, and how busy "
            "the device is."
        )


def _without(analysis: Analysis, share: float) -> str:
    """What a pipeline without any cost would gain."""
    verdict = analysis.verdict
    if verdict.is_ceiling_measured and verdict.max_speedup is not None:
        measured = format_ratio(verdict.max_speedup)
        return f"Without any input work it is {measured} as fast (measured with one batch repeated)."
    if analysis.host is None or has_consumer_elsewhere(analysis):
        return f"A pipeline without any cost would make it at most {format_ratio(1 / (1 - share))} as fast."
    return (
        f"Without that wait it would be {format_ratio(1 / (1 - share))} as fast, and faster if the pipeline takes cores from the "
        "model: --ceiling measures it."
    )


EXAMPLES = (
    silent(
        pipeline(source(), map_("decode", ms=1), batch(32), prefetch(), consumer_ms=100, cores=8),
        because="the result is a note",
        note="Look at the step itself",
    ),
    silent(
        pipeline(source(), map_("decode", ms=0.1), batch(32), prefetch(), consumer_ms=20, cores=8),
        because="the result is a note",
        note="waits 0 %",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, random=True), batch(32), prefetch(), consumer_ms=20, cores=8),
        because="the consumer waits for the pipeline",
    ),
)
