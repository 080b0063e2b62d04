"""short-steps: Python code between the steps takes a large part of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    compile_edit,
    is_fed,
    measured_ns,
    step_fix,
    step_site,
    steps_per_epoch,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source

MAX_STEPS = 32
"""Steps of a call: Python then takes a 32nd of its present time per step, and further steps gain little."""
MIN_CALLS = 4
"""Calls of an epoch, if its length is known, so that callbacks still see its progress."""


@dataclass(frozen=True)
class ShortSteps(Rule):
    """Steps are so short that the Python code between them takes a significant part of the time.

    ## Why it is slow
    Keras returns to Python after each step for callbacks, logs and the next call. This takes about as long for a step
    of 1 ms as for one of 100 ms, and the device and tf.data are idle meanwhile.

    ## What the fix does
    With `model.compile(..., steps_per_execution=32)`, one call reads 32 batches and runs 32 steps. The steps are the
    same, but callbacks, logs and checkpoints run only after every 32nd batch, and the number of steps per epoch should
    be a multiple of 32. In a custom training loop, iterate over the dataset inside the `tf.function`. No speedup is
    predicted. `advisor fix --allow numerics` adds the argument to the one call of `compile`, runs the script with and
    without it, and compares the time per batch, because a measured step then contains 32 batches, and the loss of the
    first batches. The data are untouched.

    ## When not to
    When a callback needs every batch, or when the model runs eagerly (apply `eager-step` first).

    ## What tf.data already does
    With a prefetch, it continues to prepare batches while Python is busy.
    """

    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

    min_other_share: float = 0.15
    """Share of the step time in which no traced work ran, which is attributed to Python. Without it, a step would be at
    most 1.18 times faster. XProf's threshold for a high share (`op_stats_to_input_pipeline_analysis.cc`)."""
    max_step_ms: float = 20.0
    """Duration of a step in milliseconds. At 15 % of longer steps, Python takes over 3 ms between two steps, more than
    a whole step of the example (1.1 ms on two cores). The cause is then a callback or the script itself."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if each call runs one step and Python takes the time between calls."""
        facts, keras = analysis.device, analysis.keras
        if facts is None or not measured_ns(facts) or facts.other_share is None or not is_fed(analysis):
            return
        if facts.device_type != "CPU" and not facts.num_devices:
            return  # the device was not traced and may have been busy
        is_keras = keras.get("loop") == "keras.fit" and keras.get("steps_per_execution", 1) == 1
        is_unknown = analysis.recording is None and not keras
        share = facts.other_share
        if not (is_keras or is_unknown) or keras.get("run_eagerly"):
            return
        if share < self.min_other_share or facts.step_ns > self.max_step_ms * 1e6:
            return
        what = "steps_per_execution is 1" if is_keras else "each step appears to be a separate call"
        count = steps_of_a_call(analysis)
        yield self.finding(
            "Run several steps per call (steps_per_execution)",
            f"A step takes {format_ns(facts.step_ns)}, and during {format_share(share)} of it nothing but Python ran, "
            f"{steps_seen(facts)}; {what}.",
            site=step_site(analysis),
            fix=step_fix(compile_edit(analysis, "steps_per_execution", count)) if is_keras and count > 1 else None,
            code=f"model.compile(..., steps_per_execution={count})",
            evidence=(
                Evidence("other_share", share, "share"),
                Evidence("step_time", facts.step_ns, "ns"),
            ),
        )


def steps_of_a_call(analysis: Analysis) -> int:
    """The largest power of two up to `MAX_STEPS` that leaves `MIN_CALLS` calls to an epoch of known length."""
    given = analysis.keras.get("steps_per_epoch")
    steps = given if isinstance(given, int) else steps_per_epoch(analysis, analysis.main) if analysis.main else None
    count = MAX_STEPS
    while steps is not None and count > 1 and count * MIN_CALLS > steps:
        count //= 2
    return count


_STAGES = (source(), batch(32), prefetch())
_FIT: dict[str, str | int] = {"loop": "keras.fit", "steps_per_execution": 1, "run_eagerly": False}

EXAMPLES = (
    fires(
        pipeline(*_STAGES, consumer_ms=2, keras=_FIT, compiled=True, device=cpu(op("MatMul", 12, us=40), other=0.5)),
        fixed='model.compile(optimizer="adam", loss="mse", steps_per_execution=32)',
    ),
    fires(pipeline(*_STAGES, consumer_ms=4, keras=_FIT, device=gpu(other=0.3, idle=0.4))),
    silent(
        pipeline(*_STAGES, consumer_ms=2, keras=_FIT | {"steps_per_execution": 32}, device=cpu(other=0.2)),
        because="a call already runs 32 steps",
    ),
    fires(pipeline(*_STAGES, consumer_ms=11, device=gpu(other=0.25, idle=0.9))),
    silent(
        pipeline(*_STAGES, consumer_ms=15, keras=_FIT, device=gpu(other=0.05)), because="Python takes 5 % of the step"
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=400, keras=_FIT, device=cpu(other=0.3)),
        because="120 ms of Python per step are caused by a callback or the script itself",
    ),
    silent(
        pipeline(
            source(), map_("augment", ms=1, random=True), batch(32), consumer_ms=2, keras=_FIT, device=cpu(other=0.5)
        ),
        because="the step waits for its input",
    ),
)
