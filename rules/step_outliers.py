"""step-outliers: single steps take far longer than the others, and together they cost."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import HIGH_WAITING, Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class StepOutliers(Rule):
    """A few steps take many times as long as the others because of something that runs only in them.

    ## Why it is slow
    Training waits while a checkpoint is written, a summary is made, a validation runs or a function is traced. The
    mean step is what counts, and the median does not show it.

    ## What the fix does
    It depends on what ran then, which the finding names. Checkpoints: rarer, or asynchronous
    (`tf.train.CheckpointOptions(enable_async=True)`, `BackupAndRestore`). Summaries and validation: every few hundred
    steps. Tracing: see `retracing`. It is advice only.

    ## When not to
    When such steps are rarer than the window makes believe: the share of time is that of the window. A single one is
    not told.

    ## What tf.data already does
    A shuffle buffer that fills at the beginning of an epoch also makes a long step; tf.data fills it in the
    background where something is prefetched behind it.
    """

    needs_input_bound: ClassVar[bool] = False

    min_steps: int = 2
    """Steps that something else ran in. A single one may be the only one of an epoch."""
    min_time_share: float = 0.05
    """Share of the window that the long steps take beyond ordinary ones. Below that, ordinary steps all along would
    make training less than 1.05 times faster."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where steps beyond three standard deviations cost, and what ran in them is known."""
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
            "Do what only some steps do less often, or beside the training",
            f"{len(explained)} of {facts.num_steps} steps take up to {format_ns(longest)} instead of "
            f"{format_ns(round(usual_ns))}, {format_share(share)} of the window; {names_text} ran only then.",
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
        because="nothing else ran then: the machine was busy with something",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(outliers=((1.5, ("SaveV2:SaveV2",)),) * 2)),
        because="two steps that take half as long again are 4 % of the window",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(outliers=((8.0, ("SaveV2:SaveV2",)),))),
        because="one step may be the only one of an epoch",
    ),
)
