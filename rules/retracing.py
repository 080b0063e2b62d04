"""retracing: a tf.function is traced or compiled again and again while training runs."""

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
class Retracing(Rule):
    """Graphs are made anew in steady training: what a `tf.function` is called with keeps changing.

    ## Why it is slow
    A `tf.function` keeps one graph per signature. A Python number or a tensor of a new shape is a new signature: the
    function runs again in Python, the graph is optimised again, and XLA compiles it again where it is used. All
    graphs are kept, so memory grows too.

    ## What the fix does
    Pass numbers as tensors (`tf.constant(rate)`) or keep them in a `tf.Variable`; give the function an
    `input_signature` with `None` for dimensions that change, or `reduce_retracing=True`; make functions once, not
    inside the loop; `drop_remainder=True` where only the last batch is smaller; pad to a few lengths where XLA
    compiles the step.

    ## When not to
    When the window happens to hold the only tracings of the run (a first evaluation): look at a later one with
    `--warmup`.

    ## What tf.data already does
    It traces its own functions once, when a dataset is made. Keras makes its own steps with
    `reduce_retracing=True`: another batch size costs one more tracing.
    """

    needs_input_bound: ClassVar[bool] = False

    min_times: int = 3
    """Tracings and compilations in the window. A function called with and without a last, smaller batch is traced
    twice."""
    min_step_share: float = 0.05
    """Share of the step time. Below that, no more than 1.05 could be gained, and two runs of a script differ by as
    much."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where tracing takes a part of the window that matters."""
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
            "Keep the signatures of tf.functions the same",
            f"Functions were {what} {format_count(times)} times {steps_seen(facts)}{name}; that takes "
            f"{format_share(share)} of the time.",
            site=step_site(analysis),
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
        because="twice is a last, smaller batch or an evaluation",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=50, device=gpu(tracings=5, compiling=0.01, compiled=("log",))),
        because="it takes 1 % of the time",
    ),
)
