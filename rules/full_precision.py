"""full-precision: matrix products and convolutions in 32 bit where the device has units for 16."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_share
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
"""Parts of the names of host ops that multiply matrices: `_FusedMatMul`, `BatchMatMulV2`, `Conv2DBackpropFilter`, ..."""


@dataclass(frozen=True)
class FullPrecision(Rule):
    """The step computes in 32 bit on a device that multiplies 16-bit numbers several times faster.

    ## Why it is slow
    GPUs with tensor cores and processors with AMX or AVX512-BF16 have units for products of 16-bit matrices that
    32-bit numbers do not use, and 16-bit tensors take half the memory traffic.

    ## What the fix does
    `keras.mixed_precision.set_global_policy("mixed_bfloat16")` before the model is made (`"mixed_float16"` on GPUs
    older than compute capability 8.0, which have no bfloat16): layers compute in 16 bit, variables and updates stay
    in 32. Outside of Keras, cast the inputs of the large products. It changes the arithmetic: check that the loss
    still falls, and keep the last layer in 32 bit (`dtype="float32"`). No gain is predicted: it depends on the
    shapes. `advisor compare before.py after.py` measures it.

    ## When not to
    Where the training is known to need 32 bit. While steps wait for input, a faster step only waits longer: the rule
    is silent.

    ## What tf.data already does
    Nothing here: this is the training step. TensorFlow itself uses TF32 on GPUs of compute capability 8.0 and later,
    which is faster than 32 bit and slower than 16; it never changes the type of a tensor unasked.
    """

    needs_input_bound: ClassVar[bool] = False

    max_16bit_share: float = 0.1
    """Share of the device's computing in 16 bit. XProf's threshold (`op_stats_to_overview_page.cc`)."""
    min_compute_capability: float = 7.0
    """The first GPUs with tensor cores (Volta)."""
    min_step_share: float = 0.1
    """Share of the step time in products that could run in 16 bit. At twice the speed, a tenth is what makes the step
    1.05 times faster, the least that can be proved."""
    min_cpu_op_us: float = 200.0
    """Processor: microseconds of a product's own time, on average. Shorter ones are paid for by the casts around them
    and by scheduling."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where the products of the step are 32 bit and the hardware has units for 16."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis):
            return
        policy = str(analysis.keras.get("dtype_policy", ""))
        if facts.device_type == "GPU":
            yield from self._on_gpu(analysis, facts)
        elif facts.device_type == "CPU" and policy == "float32":
            yield from self._on_cpu(analysis)

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
            f"{format_share(half)} of the device's computing is 16 bit {steps_seen(facts)}, and {format_share(share)} of "
            f"the step time goes into products and convolutions that its tensor cores (compute capability "
            f"{capability:g}) multiply faster so.",
            site=step_site(analysis),
            evidence=(
                Evidence("compute_16bit_share", half, "share"),
                Evidence("eligible_step_share", share, "share"),
                Evidence("compute_capability", capability),
            ),
        )

    def _on_cpu(self, analysis: Analysis) -> Iter[Finding]:
        work, host = op_work(analysis, is_product), analysis.host
        if host is None or not host.has_bfloat16 or host.accelerators or work is None:
            return
        if work.step_share < self.min_step_share or work.mean_ns < self.min_cpu_op_us * 1000:
            return
        yield self.finding(
            "Compute in bfloat16 (mixed precision)",
            f"Keras computes in float32, and {format_share(work.step_share)} of the step time goes into matrix products "
            "and convolutions that this processor's bfloat16 units multiply faster.",
            site=step_site(analysis),
            evidence=(
                Evidence("product_step_share", work.step_share, "share"),
                Evidence("products_per_step", work.per_step, "ops"),
                Evidence("product_time", work.mean_ns, "ns"),
            ),
        )


def is_product(row: OpRow) -> bool:
    """Whether ops of that type multiply matrices."""
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
        pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.6, eligible=0.5)), because="it computes in 16 bit already"
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(6.1, half=0.0, eligible=0.5)),
        because="the GPU has no tensor cores",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.0, eligible=0.03)),
        because="products are 3 % of the step: what else it does would stay",
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
        because="the processor has no units for bfloat16",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=2, keras=_KERAS, has_bfloat16=True, device=cpu(op("_FusedMatMul", 12, us=30))),
        because="the products are too small to gain",
    ),
)
