"""no-xla: many short kernels that a compiler could fuse into a few."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_count, format_ns, format_share
from advisor.rule import (
    HIGH_WAITING,
    Analysis,
    DeviceFacts,
    Evidence,
    Finding,
    Iter,
    Note,
    Rule,
    compile_edit,
    consumed_call,
    graph_step_edit,
    is_fed,
    is_short,
    machine_costs,
    measured_ns,
    op_work,
    step_fix,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class NoXla(Rule):
    """The step consists of hundreds of short kernels or ops, which take less time than their launch, and no compiler fuses them.

    ## Why it is slow
    Each element-wise op is scheduled, reads its input from memory and writes its result back. XLA compiles a function
    into a few loops that keep intermediate results in registers.

    ## What the fix does
    Use `tf.function(..., jit_compile=True)`, or `model.compile(..., jit_compile=True)` in Keras. The first call takes
    seconds to minutes longer. Because ops are fused and reordered, results can differ in the last digits. Not every op
    can be compiled, and speedups vary widely, so none is predicted. `advisor fix --allow numerics` adds the argument, runs
    the script with and without it, and shows the speedup and how far the loss of the first batches moves; a script that
    cannot be compiled stays as it is. It adds it to a Keras model's only call of `compile`, or, in a loop of the script's
    own, to the `tf.function` that was seen to run the step and to take a gradient (`@tf.function`, `tf.function(step)`).
    If there are several such functions, or if a `tf.function` fetches its batches itself, nothing is changed.

    ## When not to
    When shapes change from batch to batch, because each new shape is compiled again (`retracing`). When a few long
    products or ops on large tensors dominate the step: on a CPU, XLA then gains nothing or loses (docs/benchmarks.md).

    On a CPU, the profiler records short ops only in the first few hundred runs of a function (docs/measuring.md). Steps of
    less than about 10 ms have run as often before the usual window: `advisor analyze --warmup 20 --steps 40` looks earlier.

    ## What tf.data already does
    Nothing: this is the training step. Keras 3 compiles with XLA automatically if there is an accelerator and the model
    supports it (`jit_compile="auto"`), but not on a CPU alone or under a distribution strategy.
    """

    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

    min_kernels: float = 100.0
    """Kernels, or short ops on a CPU, per step. With fewer, there is little to fuse."""
    min_launch_share: float = 0.15
    """GPU only: share of the step time in which the host launched kernels while the device was idle. XProf's threshold for a high
    share."""
    max_kernel_us: float = 20.0
    """GPU only: median kernel duration in microseconds. In a profile of a Turing GPU with exposed launches, TensorFlow's host
    side took 59 us per kernel; a much shorter kernel finishes before the next one is launched."""
    max_op_starts: float = 2.0
    """CPU only: median self time up to which the ops of a type are considered short, in multiples of the time that starting an op
    takes on this machine (`op_start_ns` of its calibration). On two cores where that is 1.2 us, such ops took 86 % to 100 % of
    the time of all ops in steps of element-wise ops and optimizer updates on 64 and 128 numbers (XLA gained 1.3x to 3.4x), and at
    most 37 % in the other steps (0.62x to 2.4x; docs/benchmarks.md)."""
    min_op_share: float = 0.5
    """CPU only: share of the step time in short ops."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if short kernels or ops dominate the step, known shapes are static, and XLA is not used."""
        facts, consumed = analysis.device, consumed_call(analysis, analysis.main) if analysis.main else None
        if facts is None or not measured_ns(facts) or facts.has_xla_ops:
            return
        if analysis.keras.get("jit_compile") or analysis.keras.get("run_eagerly"):
            return
        if consumed is not None and "None" in _shapes(consumed.element_spec):
            return
        if facts.device_type == "GPU":
            yield from self._on_gpu(analysis, facts)
        elif facts.device_type == "CPU":
            yield from self._on_cpu(analysis, facts)

    def _on_gpu(self, analysis: Analysis, facts: DeviceFacts) -> Iter[Finding]:
        launch, kernels, kernel_ns = facts.launch_gap_share, facts.kernels_per_step, facts.median_kernel_ns
        if launch is None or kernels is None or kernel_ns is None or not is_fed(analysis):
            return
        if launch < self.min_launch_share or kernels < self.min_kernels or kernel_ns > self.max_kernel_us * 1000:
            return
        yield self._proposal(
            analysis,
            f"A step launches {format_count(round(kernels))} kernels with a median duration of "
            f"{format_ns(kernel_ns)}, and the device waits {format_share(launch)} of the step time for launches, "
            f"{steps_seen(facts)}.",
            (
                Evidence("kernels_per_step", kernels),
                Evidence("median_kernel", kernel_ns, "ns"),
                Evidence("launch_gap_share", launch, "share"),
            ),
        )

    def _on_cpu(self, analysis: Analysis, facts: DeviceFacts) -> Iter[Finding]:
        most_ns = self.max_op_starts * machine_costs(analysis).op_start_ns[0]
        work = op_work(analysis, lambda row: is_short(row, most_ns))
        if work is None or work.per_step < self.min_kernels or not is_fed(analysis, HIGH_WAITING):
            return
        if work.step_share < max(self.min_op_share, facts.other_share or 0.0):
            return
        yield self._proposal(
            analysis,
            f"{format_share(work.step_share)} of the step time is spent in {format_count(round(work.per_step))} ops "
            f"of {format_ns(work.mean_ns)} on average, {steps_seen(facts)}. Scheduling takes a large part of this time.",
            (
                Evidence("ops_per_step", work.per_step, "ops"),
                Evidence("op_time", work.mean_ns, "ns"),
                Evidence("op_step_share", work.step_share, "share"),
            ),
        )

    def _proposal(self, analysis: Analysis, why: str, evidence: tuple[Evidence, ...]) -> Finding:
        is_keras = analysis.keras.get("loop") == "keras.fit"
        compiled = compile_edit(analysis, "jit_compile", True) if is_keras else None
        step, left_out = (None, "") if is_keras else graph_step_edit(analysis, "jit_compile", True)
        return self.finding(
            "Compile the training step with XLA (jit_compile=True)",
            f"{why} Nothing was compiled by XLA.{' ' if left_out else ''}{left_out}",
            site=step_site(analysis),
            fix=step_fix(compiled or step),
            code="model.compile(..., jit_compile=True)" if is_keras else "@tf.function(jit_compile=True)",
            evidence=evidence,
        )


def _shapes(element_spec: str) -> str:
    """An element spec without its names, which are usually None."""
    return element_spec.replace("name=None", "")


_STAGES = (source(), batch(64), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4))),
    fires(
        pipeline(
            *_STAGES,
            consumer_ms=10,
            keras={"loop": "keras.fit", "jit_compile": False},
            compiled=True,
            device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4),
        ),
        fixed='model.compile(optimizer="adam", loss="mse", jit_compile=True)',
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4, is_xla=True)),
        because="XLA is used",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=400, device=gpu(launch=0.01, kernels=1_200, kernel_us=26)),
        because="there are many kernels, but the device never waits for one",
    ),
    fires(pipeline(*_STAGES, consumer_ms=1, device=cpu(op("Tanh", 500, us=0.5), op("Mul", 1500, us=0.4), other=0.1))),
    fires(pipeline(*_STAGES, consumer_ms=2, device=cpu(op("Mul", 1500, us=1.2), other=0.1))),
    silent(
        pipeline(*_STAGES, consumer_ms=2, device=cpu(op("Mul", 1500, us=2.5), other=0.1)),
        because="where ops were this long, XLA gained 0.72x to 1.42x",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=40, device=cpu(op("Tanh", 300, us=12), op("Mul", 600, us=8))),
        because="XLA gained nothing on a CPU with ops that are this long",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=4, device=cpu(op("Tanh", 400, us=0.5), op("MatMul", 10, us=300))),
        because="there is little to fuse beside the products",
    ),
    silent(
        pipeline(
            *_STAGES,
            consumer_ms=10,
            keras={"loop": "keras.fit", "jit_compile": True},
            device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4),
        ),
        because="Keras compiles the step",
    ),
    silent(
        pipeline(
            source(),
            map_("augment", ms=5, random=True),
            batch(64),
            consumer_ms=10,
            device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4),
        ),
        because="the step waits for its input",
    ),
)
