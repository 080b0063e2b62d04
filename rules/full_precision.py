"""full-precision: matrix products and convolutions run in 32 bit on hardware with 16-bit units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    Analysis,
    DeviceFacts,
    Evidence,
    Finding,
    Iter,
    Note,
    OpRow,
    Rule,
    is_fed,
    measured_ns,
    op_work,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source

PRODUCTS = ("MatMul", "Conv2D", "Conv3D", "Einsum")
"""Substrings of the names of host ops that multiply matrices: `_FusedMatMul`, `BatchMatMulV2`, `Conv2DBackpropFilter`,
..."""


@dataclass(frozen=True)
class FullPrecision(Rule):
    """The step computes in 32 bit on a device that multiplies 16-bit numbers several times faster.

    ## Why it is slow
    GPUs with tensor cores and CPUs with AMX or AVX512-BF16 have units for 16-bit matrix products that 32-bit
    computation does not use. In addition, 16-bit tensors need half the memory bandwidth.

    ## What the fix does
    Call `keras.mixed_precision.set_global_policy("mixed_bfloat16")` before building the model (`"mixed_float16"` on
    GPUs with compute capability below 8.0, which do not support bfloat16). Layers then compute in 16 bit, while
    variables and updates stay in 32 bit. Outside Keras, cast the inputs of the large products. Because this changes the
    arithmetic, check that the loss still converges, and keep the last layer in 32 bit (`dtype="float32"`). The speedup
    depends on the shapes and is not predicted. `advisor compare before.py after.py` measures it.

    ## When not to
    When the training is known to require 32 bit. While steps wait for input, a faster step only waits longer, so
    nothing is reported.

    ## What tf.data already does
    Nothing: this is the training step. On GPUs with compute capability 8.0 and later, TensorFlow uses TF32, whose speed
    lies between 32 and 16 bit. It never changes the type of a tensor on its own.
    """

    needs_input_bound: ClassVar[bool] = False

    max_16bit_share: float = 0.1
    """Share of the device's computation in 16 bit. XProf's threshold (`op_stats_to_overview_page.cc`)."""
    min_compute_capability: float = 7.0
    """Compute capability of the first GPUs with tensor cores (Volta)."""
    min_step_share: float = 0.1
    """Share of the step time in products that could run in 16 bit. At twice the speed, a tenth makes the step 1.05
    times faster, the smallest speedup that can be proved."""
    min_cpu_op_us: float = 200.0
    """CPU only: mean self time of a product, in microseconds. The gain on shorter products is lost to casts and
    scheduling."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if the products of the step run in 32 bit and the hardware has 16-bit units."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis):
            return
        policy = str(analysis.keras.get("dtype_policy", ""))
        if facts.device_type == "GPU":
            yield from self._on_gpu(analysis, facts)
        elif facts.device_type == "CPU" and policy == "float32":
            yield from self._on_cpu(analysis, facts)

    def _on_gpu(self, analysis: Analysis, facts: DeviceFacts) -> Iter[Finding]:
        half, capability = facts.compute_16bit_share, facts.compute_capability
        busy = 1 - (facts.idle_share or 0.0)
        share = facts.tensor_core_eligible_ns / facts.kernel_ns * busy if facts.kernel_ns else 0.0
        if (
            half is None
            or half >= self.max_16bit_share
            or capability is None
            or capability < self.min_compute_capability
            or share < self.min_step_share
        ):
            return
        yield self.finding(
            "Compute in 16 bit (mixed precision)",
            f"{format_share(half)} of the device's computation is 16 bit, {steps_seen(facts)}, and "
            f"{format_share(share)} of the step time is spent in products and convolutions that its tensor cores "
            f"(compute capability {capability:g}) compute faster in 16 bit.",
            site=step_site(analysis),
            evidence=(
                Evidence("compute_16bit_share", half, "share"),
                Evidence("eligible_step_share", share, "share"),
                Evidence("compute_capability", capability),
            ),
        )

    def _on_cpu(self, analysis: Analysis, facts: DeviceFacts) -> Iter[Finding]:
        work, host = op_work(analysis, is_product), analysis.host
        if host is None or not host.has_bfloat16 or host.accelerators or work is None:
            return
        products_ns = work.per_step * work.mean_ns
        # Their share of all ops' time is too large a share of a step in which much happens that is no op.
        share = min(work.step_share, products_ns / facts.step_ns)
        if share < self.min_step_share or work.mean_ns < self.min_cpu_op_us * 1000:
            return
        yield self.finding(
            "Compute in bfloat16 (mixed precision)",
            f"Keras computes in float32, and {format_share(share)} of the step time ({format_ns(share * facts.step_ns)} of "
            f"{format_ns(facts.step_ns)}, {steps_seen(facts)}) is spent in matrix products and convolutions that the "
            "bfloat16 units of this CPU compute faster.",
            site=step_site(analysis),
            evidence=(
                Evidence("product_step_share", share, "share"),
                Evidence("products_per_step", work.per_step, "ops"),
                Evidence("mean_time_of_a_product", work.mean_ns, "ns"),
            ),
        )


def is_product(row: OpRow) -> bool:
    """Whether ops of this type multiply matrices."""
    return any(part in row.type for part in PRODUCTS)


_STAGES = (source(), map_("decode", ms=0.1), batch(32), prefetch())
_KERAS = {"loop": "keras.fit", "dtype_policy": "float32"}

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.0, eligible=0.5))),
    fires(
        pipeline(
            *_STAGES, consumer_ms=100, keras=_KERAS, has_bfloat16=True, device=cpu(op("_FusedMatMul", 12, us=6_000))
        )
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.6, eligible=0.5)),
        because="the step already computes in 16 bit",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(6.1, half=0.0, eligible=0.5)),
        because="the GPU has no tensor cores",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.0, eligible=0.03)),
        because="products take only 3 % of the step",
    ),
    silent(
        pipeline(
            source(),
            map_("augment", ms=50, random=True),
            batch(32),
            consumer_ms=100,
            device=gpu(half=0.0, eligible=0.5),
        ),
        because="the step waits for its input",
    ),
    silent(
        pipeline(
            *_STAGES, consumer_ms=100, keras=_KERAS, has_bfloat16=False, device=cpu(op("_FusedMatMul", 12, us=6_000))
        ),
        because="the CPU has no bfloat16 units",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=2, keras=_KERAS, has_bfloat16=True, device=cpu(op("_FusedMatMul", 12, us=30))),
        because="the products are too small to benefit",
    ),
)
