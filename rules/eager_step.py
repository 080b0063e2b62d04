"""eager-step: Python dispatches the ops of the training step one by one."""

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
    compile_edit,
    decorated_edit,
    is_fed,
    measured_ns,
    step_fix,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class EagerStep(Rule):
    """Python dispatches the ops of the training step one by one instead of running the step as a graph.

    ## Why it is slow
    Python prepares each op and starts the next one when the call returns. A graph is built once. Its ops run without
    Python, in parallel where they are independent, and fused where possible.

    ## What the fix does
    Decorate the function that computes loss, gradients and update with `@tf.function`. In Keras, remove
    `run_eagerly=True` and `tf.config.run_functions_eagerly(True)`. Because ops are fused, results can differ in the
    last digits. Python side effects inside a `tf.function` (prints, list updates, NumPy calls) happen only once, during
    tracing. `advisor fix --allow numerics` sets `run_eagerly` to False in the one call of `compile` that passes it, or
    decorates the function that was seen to open a `GradientTape` eagerly, and runs the script with and without the change.
    A function is decorated only if its text uses nothing but TensorFlow, Keras and what the script makes of them, changes
    nothing else, and reads no name that is assigned in a loop.

    ## When not to
    While debugging.

    ## What tf.data already does
    Functions passed to tf.data (`map`, `filter`) always run as graphs. Keras also compiles its training step by
    default.
    """

    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

    min_ops: float = 10.0
    """Eager ops per step. A step that is a single `tf.function` has about one, for example to read its loss."""
    min_step_share: float = 0.1
    """Share of the step time in which such ops ran. XProf's threshold for eager time (`op_stats_to_overview_page.cc`)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if many eager ops take a significant share of the step."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis, HIGH_WAITING):
            return
        per_step, share = facts.eager_ops_per_step, facts.eager_step_share
        if per_step is None or share is None or per_step < self.min_ops or share < self.min_step_share:
            return
        is_keras = bool(analysis.keras.get("run_eagerly"))
        yield self.finding(
            "Remove run_eagerly=True" if is_keras else "Make the training step a tf.function",
            f"Python dispatches {format_count(round(per_step))} ops per step one by one, {steps_seen(facts)}; they "
            f"run during {format_share(share)} of the step time.",
            site=step_site(analysis),
            fix=step_fix(
                compile_edit(analysis, "run_eagerly", False, is_given=True) if is_keras else decorated_edit(analysis)
            ),
            code="model.compile(..., run_eagerly=False)" if is_keras else _code(analysis),
            evidence=(
                Evidence("eager_ops_per_step", per_step, "ops"),
                Evidence("eager_step_share", share, "share"),
            ),
        )


def _code(analysis: Analysis) -> str:
    """The decorator, with the function that was seen to run the step."""
    main = analysis.main
    step = main.consumer.eager_step if main is not None and main.consumer is not None else None
    return "@tf.function" if step is None else f"@tf.function on {step.function} (line {step.line})"


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=cpu(eager_ops=120, eager=0.6))),
    fires(pipeline(*_STAGES, consumer_ms=10, device=gpu(eager_ops=400, eager=0.3), keras={"run_eagerly": True})),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=cpu(eager_ops=1, eager=0.2)),
        because="one op outside the function starts the step or reads its loss",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=500, device=gpu(eager_ops=30, eager=0.01)),
        because="metrics updated in Python take 1 % of the step",
    ),
)
