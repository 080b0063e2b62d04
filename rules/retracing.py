"""retracing: a tf.function is repeatedly traced or compiled during training."""

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
    function_edit,
    is_fed,
    measured_ns,
    step_fix,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class Retracing(Rule):
    """Functions are retraced during steady training, because the arguments of a `tf.function` keep changing.

    ## Why it is slow
    A `tf.function` keeps one graph per signature. A different Python number or a tensor of a new shape is a new
    signature: the function runs in Python again, its graph is optimised again, and XLA, if used, compiles it again. All
    graphs are kept, so memory use grows as well.

    ## What the fix does
    Pass numbers as tensors (`tf.constant(rate)`) or keep them in a `tf.Variable`; give the function an
    `input_signature` with `None` for dimensions that vary, or set `reduce_retracing=True`; create functions once,
    outside the loop; use `drop_remainder=True` if only the last batch is smaller; pad to a few fixed lengths if XLA
    compiles the step. If shapes vary and the traced function is decorated with `@tf.function` in the script, `advisor fix
    --allow numerics` adds `reduce_retracing=True` and runs the script with and without it. Python numbers are not
    generalised by that: pass them as tensors.

    ## When not to
    When the window happens to contain the only traces of the run, such as a first evaluation. Measure a later window
    with `--warmup`.

    ## What tf.data already does
    It traces its own functions once, when the dataset is created. Keras creates its training step with
    `reduce_retracing=True`, so a different batch size costs one additional trace.
    """

    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

    min_times: int = 3
    """Traces and compilations in the window. A function called both with and without a smaller last batch is traced
    twice."""
    min_step_share: float = 0.05
    """Share of the step time. Below that, the gain is less than a factor of 1.05, which is within the difference
    between two runs of the same script."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if tracing takes a significant share of the window."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis, HIGH_WAITING):
            return
        times = max(facts.num_tracings, facts.num_compilations)
        share = min(1.0, facts.compile_ns / measured_ns(facts))
        if times < self.min_times or share < self.min_step_share:
            return
        what = "traced" if facts.num_tracings >= facts.num_compilations else "compiled"
        name = f", {facts.compiled_names[0]} most often" if facts.compiled_names else ""
        yield self.finding(
            "Keep the signatures of tf.functions constant",
            f"Functions were {what} {format_count(times)} times, {steps_seen(facts)}{name}. This takes "
            f"{format_share(share)} of the time.",
            site=step_site(analysis),
            fix=step_fix(function_edit(analysis, "reduce_retracing", True)),
            code="@tf.function(reduce_retracing=True), and numbers as tensors",
            evidence=(
                Evidence("tracings", facts.num_tracings),
                Evidence("compilations", facts.num_compilations),
                Evidence("compile_share", share, "share"),
            ),
        )


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=50, device=cpu(tracings=25, compiling=0.8, compiled=("train_step",)))),
    fires(pipeline(*_STAGES, consumer_ms=50, device=gpu(tracings=6, compiling=0.2, compiled=("train_step",)))),
    silent(
        pipeline(*_STAGES, consumer_ms=50, device=cpu(tracings=2, compiling=0.3, compiled=("train_step",))),
        because="two traces are explained by a smaller last batch or an evaluation",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=50, device=gpu(tracings=5, compiling=0.01, compiled=("log",))),
        because="tracing takes 1 % of the time",
    ),
)
