"""step-outliers: individual steps take far longer than the others, with a significant total cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import HIGH_WAITING, Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class StepOutliers(Rule):
    """A few steps take many times as long as the others because of work that runs only in them.

    ## Why it is slow
    Training waits while a checkpoint is written, a summary is created, a validation runs or a function is traced. These
    steps raise the mean step time, which determines the training time, but are not visible in the median.

    ## What the fix does
    The fix depends on the work that ran in these steps, which the finding names. Write checkpoints less often or
    asynchronously (`tf.train.CheckpointOptions(enable_async=True)`, `BackupAndRestore`). Create summaries and run
    validations only every few hundred steps. For tracing, see `retracing`. This is advice only.

    ## When not to
    When such steps are rarer in the full run than in the window: the share of time refers to the window. A single such
    step is not reported.

    ## What tf.data already does
    Filling a shuffle buffer at the start of an epoch also causes a long step. tf.data fills it in the background if a
    prefetch follows it.
    """

    needs_input_bound: ClassVar[bool] = False

    min_steps: int = 2
    """Steps with additional work. A single one may be the only one of an epoch."""
    min_time_share: float = 0.05
    """Share of the window that the long steps take in addition to ordinary ones. Below that, the gain is less than a
    factor of 1.05."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if steps far longer than the median one are costly and the work that ran in them is known."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis, HIGH_WAITING):
            return
        explained = [step for step in facts.outliers if step.ran_then]
        if len(explained) < self.min_steps:
            return
        all_ns = measured_ns(facts)
        ordinary = facts.num_steps - len(facts.outliers)
        usual_ns = (all_ns - sum(step.duration_ns for step in facts.outliers)) / max(1, ordinary)
        share = sum(step.duration_ns - usual_ns for step in explained) / all_ns
        if ordinary <= 0 or share < self.min_time_share:
            return
        names = Counter(step.ran_then[0] for step in explained)
        longest = max(step.duration_ns for step in explained)
        names_text = " and ".join(name for name, _ in names.most_common(2))
        yield self.finding(
            "Run the work of the slow steps less often or in the background",
            f"{len(explained)} of {facts.num_steps} steps take up to {format_ns(longest)} instead of "
            f"{format_ns(round(usual_ns))}, {format_share(share)} of the window; {names_text} ran only in these steps.",
            site=step_site(analysis),
            evidence=(
                Evidence("outlier_steps", len(explained), "steps"),
                Evidence("longest_step", longest, "ns"),
                Evidence("ordinary_step", round(usual_ns), "ns"),
                Evidence("outlier_time_share", share, "share"),
            ),
        )


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=cpu(outliers=((8.0, ("SaveV2:SaveV2",)),) * 2))),
    fires(
        pipeline(*_STAGES, consumer_ms=40, device=gpu(outliers=((5.0, ("WriteSummary",)), (6.0, ("WriteSummary",)))))
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(outliers=((8.0, ()),) * 2)),
        because="no additional work ran in them: something else kept the machine busy",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(outliers=((1.5, ("SaveV2:SaveV2",)),) * 2)),
        because="two steps that take 1.5 times as long account for 4 % of the window",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(outliers=((8.0, ("SaveV2:SaveV2",)),))),
        because="one step may be the only one of an epoch",
    ),
)
