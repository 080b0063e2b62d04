"""short-steps: Python between the steps takes a large part of the time."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site, steps_seen
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class ShortSteps(Rule):
    """Steps are so short that the Python between them costs as much as a good part of them.

    ## Why it is slow
    Keras comes back to Python after each step: callbacks, logs, the next call. That takes about as long for a step of
    1 ms as for one of 100 ms, and device and tf.data wait meanwhile.

    ## What the fix does
    `model.compile(..., steps_per_execution=32)`: one call takes 32 batches and does 32 steps. The steps are the same,
    but callbacks, logs and checkpoints come after every 32nd batch only, and an epoch should be a multiple of it. In
    a loop of your own: loop over the dataset inside the `tf.function`. It is advice only, with no gain predicted:
    time an epoch before and after, since a measured step then holds 32.

    ## When not to
    When a callback needs every batch, or the model runs eagerly (then `eager-step` comes first).

    ## What tf.data already does
    It goes on preparing batches while Python is busy, as far as something is prefetched.
    """

    needs_input_bound: ClassVar[bool] = False

    min_other_share: float = 0.15
    """Share of the step time in which nothing that is traced ran: Python. Without it a step would be at most 1.18 times
    faster. XProf's line for a high share (`op_stats_to_input_pipeline_analysis.cc`)."""
    max_step_ms: float = 20.0
    """Milliseconds of a step. At 15 % of more, Python takes over 3 ms between two steps: more than a whole step of the
    example, 1.1 ms on two cores, so a callback or the script does."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where one step is done per call and Python takes the time between."""
        facts, keras = analysis.device, analysis.keras
        if facts is None or not measured_ns(facts) or facts.other_share is None or not is_fed(analysis):
            return
        if facts.device_type != "CPU" and not facts.num_devices:
            return  # what the device did was not traced: it may well have been busy
        is_keras = keras.get("loop") == "keras.fit" and keras.get("steps_per_execution", 1) == 1
        is_unknown = analysis.recording is None and not keras
        share = facts.other_share
        if not (is_keras or is_unknown) or keras.get("run_eagerly"):
            return
        if share < self.min_other_share or facts.step_ns > self.max_step_ms * 1e6:
            return
        what = "steps_per_execution is 1" if is_keras else "each step seems to be a call of its own"
        yield self.finding(
            "Do several steps per call (steps_per_execution)",
            f"A step takes {format_ns(facts.step_ns)}, and {format_share(share)} of that nothing was traced but "
            f"Python, {steps_seen(facts)}; {what}.",
            site=step_site(analysis),
            evidence=(
                Evidence("other_share", share, "share"),
                Evidence("step_time", facts.step_ns, "ns"),
            ),
        )


_STAGES = (source(), batch(32), prefetch())
_FIT = {"loop": "keras.fit", "steps_per_execution": 1, "run_eagerly": False}

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=2, keras=_FIT, device=cpu(op("MatMul", 12, us=40), other=0.5))),
    fires(pipeline(*_STAGES, consumer_ms=4, keras=_FIT, device=gpu(other=0.3, idle=0.4))),
    silent(
        pipeline(*_STAGES, consumer_ms=2, keras=_FIT | {"steps_per_execution": 32}, device=cpu(other=0.2)),
        because="a call does 32 steps already",
    ),
    fires(pipeline(*_STAGES, consumer_ms=11, device=gpu(other=0.25, idle=0.9))),
    silent(pipeline(*_STAGES, consumer_ms=15, keras=_FIT, device=gpu(other=0.05)), because="Python is 5 % of the step"),
    silent(
        pipeline(*_STAGES, consumer_ms=400, keras=_FIT, device=cpu(other=0.3)),
        because="120 ms of Python per step are a callback's or the script's own, which would take as long",
    ),
    silent(
        pipeline(
            source(), map_("augment", ms=1, random=True), batch(32), consumer_ms=2, keras=_FIT, device=cpu(other=0.5)
        ),
        because="the step waits for its input",
    ),
)
