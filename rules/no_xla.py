"""no-xla: many short ops that a compiler would make a few loops of."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.rule import (
    Analysis,
    DeviceFacts,
    Evidence,
    Finding,
    Iter,
    Note,
    OpRow,
    Rule,
    consumed_call,
    is_fed,
    measured_ns,
    op_work,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source
from advisor.units import format_count, format_ns, format_share

PRODUCTS = ("MatMul", "Conv2D", "Conv3D", "Einsum")
"""Parts of the names of ops that libraries compute and a compiler does not fuse away."""


@dataclass(frozen=True)
class NoXla(Rule):
    """The step is made of hundreds of short ops, and no compiler fuses them.

    ## Why it is slow
    Each element-wise op is scheduled, reads its input from memory and writes its result back. XLA compiles a function
    into few loops that keep intermediate results in registers.

    ## What the fix does
    `tf.function(..., jit_compile=True)`, in Keras `model.compile(..., jit_compile=True)`. The first call takes
    seconds to minutes longer. Results differ in the last digits, since ops are fused and reordered. It is advice
    only: not every op can be compiled, and gains differ a lot; `advisor compare` measures yours.

    ## When not to
    When shapes change from batch to batch: each new one is compiled anew (`retracing`). When few long products take
    the time. On a processor do not expect it: this rule's own example gained nothing on two cores (0.95x, 0.55 to
    1.14, docs/benchmarks.md), so measure before you keep it.

    ## What tf.data already does
    Nothing here. Keras 3 compiles with XLA by itself where there is an accelerator and the model allows it
    (`jit_compile="auto"`), not on a CPU alone and not under a distribution strategy.
    """

    needs_input_bound: ClassVar[bool] = False

    min_kernels: float = 100.0
    """GPU: kernels per step. With fewer there is little to fuse."""
    min_launch_share: float = 0.15
    """GPU: share of the step time in which the host launched and no device did anything. XProf's line for a high
    share."""
    max_kernel_us: float = 20.0
    """GPU: microseconds of the median kernel. TensorFlow's host side took 59 per kernel in a profile of a Turing GPU
    whose launches were exposed; a kernel much shorter than that is over before the next one comes."""
    min_ops: float = 100.0
    """Processor: short ops per step that are no products."""
    max_op_us: float = 100.0
    """Processor: microseconds of own time up to which an op is short, on average over those of its type."""
    min_op_share: float = 0.3
    """Processor: share of the step time in them; with less there is little to gain."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where short ops take the step, shapes are fixed as far as known, and XLA is not used."""
        facts, consumed = analysis.device, consumed_call(analysis, analysis.main) if analysis.main else None
        if facts is None or not measured_ns(facts) or facts.has_xla_ops or not is_fed(analysis):
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
        if launch is None or kernels is None or kernel_ns is None:
            return
        if launch < self.min_launch_share or kernels < self.min_kernels or kernel_ns > self.max_kernel_us * 1000:
            return
        yield self.finding(
            "Compile the training step with XLA (jit_compile=True)",
            f"A step launches {format_count(round(kernels))} kernels of {format_ns(kernel_ns)} in the median, and the device "
            f"waits {format_share(launch)} of the step time for launches, {steps_seen(facts)}; nothing was compiled by XLA.",
            site=step_site(analysis),
            evidence=(
                Evidence("kernels_per_step", kernels),
                Evidence("median_kernel", kernel_ns, "ns"),
                Evidence("launch_gap_share", launch, "share"),
            ),
        )

    def _on_cpu(self, analysis: Analysis, facts: DeviceFacts) -> Iter[Finding]:
        work = op_work(analysis, lambda row: is_fusible(row) and row.self_ns <= self.max_op_us * 1000 * row.occurrences)
        if work is None or work.per_step < self.min_ops:
            return
        if work.step_share < max(self.min_op_share, facts.other_share or 0.0):
            return
        yield self.finding(
            "Compile the training step with XLA (jit_compile=True)",
            f"{format_share(work.step_share)} of the step time goes into {format_count(round(work.per_step))} short "
            f"ops of {format_ns(work.mean_ns)} on average, {steps_seen(facts)}; nothing was compiled by XLA.",
            site=step_site(analysis),
            evidence=(
                Evidence("ops_per_step", work.per_step, "ops"),
                Evidence("op_time", work.mean_ns, "ns"),
                Evidence("op_step_share", work.step_share, "share"),
            ),
        )


def is_fusible(row: OpRow) -> bool:
    """Whether ops of that type are no products, and part of a graph."""
    return not row.is_eager and not any(part in row.type for part in PRODUCTS)


def _shapes(element_spec: str) -> str:
    """An element spec without its names, which are None as a rule."""
    return element_spec.replace("name=None", "")


_STAGES = (source(), batch(64), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4))),
    fires(pipeline(*_STAGES, consumer_ms=10, device=cpu(op("Tanh", 300, us=12), op("Mul", 600, us=8)))),
    silent(
        pipeline(*_STAGES, consumer_ms=10, device=gpu(launch=0.6, idle=0.8, kernels=400, kernel_us=4, is_xla=True)),
        because="XLA is used",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=400, device=gpu(launch=0.01, kernels=1_200, kernel_us=26)),
        because="the kernels are many, but the device never waits for one",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=cpu(op("_FusedMatMul", 150, us=600), op("Relu", 150, us=20))),
        because="products take the time, and XLA computes those no faster",
    ),
    silent(
        pipeline(
            *_STAGES,
            consumer_ms=10,
            keras={"loop": "keras.fit", "jit_compile": True},
            device=cpu(op("Tanh", 300, us=12), op("Mul", 600, us=8)),
        ),
        because="Keras compiles the step",
    ),
    silent(
        pipeline(
            source(),
            map_("augment", ms=5, random=True),
            batch(64),
            consumer_ms=10,
            device=cpu(op("Tanh", 300, us=12), op("Mul", 600, us=8)),
        ),
        because="the step waits for its input",
    ),
)
