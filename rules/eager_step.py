"""eager-step: the training step runs op by op from Python."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_count, format_share
from advisor.rule import (
    HIGH_WAITING,
    Analysis,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    is_fed,
    measured_ns,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class EagerStep(Rule):
    """The step's ops are dispatched one by one from Python instead of running as a graph.

    ## Why it is slow
    Python prepares each op, and the next one starts when it comes back. A graph is made once; its ops run without
    Python, beside one another where they do not depend on each other, and fused where that is possible.

    ## What the fix does
    `@tf.function` above the function that computes loss, gradients and update. In Keras: leave out `run_eagerly=True`
    and `tf.config.run_functions_eagerly(True)`. Results can differ in the last digits, since ops are fused. It is
    advice only: what a function does besides TensorFlow (prints, lists, NumPy) happens once in a `tf.function`, while
    it is traced.

    ## When not to
    While debugging.

    ## What tf.data already does
    Its own functions (`map`, `filter`) are always graphs. Keras compiles its step too, unless told otherwise.
    """

    needs_input_bound: ClassVar[bool] = False

    min_ops: float = 10.0
    """Eager ops per step. A step that is one `tf.function` has about one: to look at its loss, say."""
    min_step_share: float = 0.1
    """Share of the step time in which such an op ran. XProf's threshold for eager time
    (`op_stats_to_overview_page.cc`)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where many eager ops take a part of the step."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis, HIGH_WAITING):
            return
        per_step, share = facts.eager_ops_per_step, facts.eager_step_share
        if per_step is None or share is None or per_step < self.min_ops or share < self.min_step_share:
            return
        is_keras = bool(analysis.keras.get("run_eagerly"))
        yield self.finding(
            "Leave out run_eagerly=True" if is_keras else "Make the training step a tf.function",
            f"Python dispatches {format_count(round(per_step))} ops per step one by one {steps_seen(facts)}; "
            f"they run during {format_share(share)} of it.",
            site=step_site(analysis),
            evidence=(
                Evidence("eager_ops_per_step", per_step, "ops"),
                Evidence("eager_step_share", share, "share"),
            ),
        )


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=cpu(eager_ops=120, eager=0.6))),
    fires(pipeline(*_STAGES, consumer_ms=10, device=gpu(eager_ops=400, eager=0.3), keras={"run_eagerly": True})),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(eager_ops=1, eager=0.2)),
        because="one op outside of the function is how a step is started or its loss is looked at",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=500, device=gpu(eager_ops=30, eager=0.01)),
        because="metrics that are kept in Python are 1 % of the step",
    ),
)
