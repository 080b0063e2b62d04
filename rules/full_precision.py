"""full-precision: matrix products and convolutions run in 32 bit on hardware with 16-bit units."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_count, format_ns, format_share
from advisor.rule import (
    Analysis,
    DeviceFacts,
    Evidence,
    Finding,
    Iter,
    Note,
    ProductTimes,
    ProductWork,
    Rejected,
    Rule,
    is_fed,
    measured_ns,
    policy_edit,
    product_work,
    step_fix,
    step_site,
    steps_seen,
)
from advisor.testing import batch, cpu, fires, gpu, map_, op, pipeline, prefetch, silent, source


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
    depends on the shapes and is not predicted. In a Keras script that sets no policy itself, `advisor fix --allow numerics`
    writes the line after the imports, runs the script with and without it, and shows the speedup and how far the loss of
    the first batches moves. A script that fails with it (a custom layer with 32-bit weights) keeps its policy.

    ## When not to
    When the training is known to require 32 bit. While steps wait for input, a faster step only waits longer, so
    nothing is reported. On a CPU, the flags of the processor promise more than it keeps: the model's largest product is
    timed in both types, and unless 16 bit is at least 1.3 times faster, the change is listed as rejected.

    ## What tf.data already does
    Nothing: this is the training step. On GPUs with compute capability 8.0 and later, TensorFlow uses TF32, whose speed
    lies between 32 and 16 bit. It never changes the type of a tensor on its own.
    """

    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

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
    min_cpu_gain: float = 1.3
    """CPU only: how many times faster the model's largest product must be in 16 bit. A step also has other ops, and casts: with
    less, the step would gain less than the factor of 1.05 that can be proved if half of it are products."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
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
        policy = "mixed_bfloat16" if capability >= 8 else "mixed_float16"
        is_keras = analysis.keras.get("dtype_policy") == "float32"
        yield self.finding(
            "Compute in 16 bit (mixed precision)",
            f"{format_share(half)} of the device's computation is 16 bit, {steps_seen(facts)}, and "
            f"{format_share(share)} of the step time is spent in products and convolutions that its tensor cores "
            f"(compute capability {capability:g}) compute faster in 16 bit.",
            site=step_site(analysis),
            fix=step_fix(policy_edit(analysis, policy)) if is_keras else None,
            code=_code(policy) if is_keras else "",
            evidence=(
                Evidence("compute_16bit_share", half, "share"),
                Evidence("eligible_step_share", share, "share"),
                Evidence("compute_capability", capability),
            ),
        )

    def _on_cpu(self, analysis: Analysis, facts: DeviceFacts) -> Iter[Finding | Rejected]:
        work, host, recording = product_work(analysis), analysis.host, analysis.recording
        if host is None or not host.has_bfloat16 or host.accelerators or work is None:
            return
        share = work.share(facts)
        if share < self.min_step_share or work.mean_ns < self.min_cpu_op_us * 1000:
            return
        times = recording.product_times if recording is not None else None
        if times is None:
            return  # the flags of the processor alone say too little
        evidence = (
            Evidence("product_step_share", share, "share"),
            Evidence("products_per_step", work.per_step, "ops"),
            Evidence("mean_time_of_a_product", work.mean_ns, "ns"),
            Evidence("largest_product_in_float32", times.float32_ns, "ns"),
            Evidence("largest_product_in_bfloat16", times.bfloat16_ns, "ns"),
        )
        title = "Compute in bfloat16 (mixed precision)"
        if times.gain < self.min_cpu_gain:
            yield self.rejected(title, f"on this machine {_timed(times)}", evidence=evidence)
            return
        yield self.finding(
            title,
            f"Keras computes in float32, and {format_share(share)} of the step time ({format_ns(work.step_ns)} of "
            f"{format_ns(facts.step_ns)}, {steps_seen(facts)}) is spent in {_products(work)}. Alone, {_timed(times)}.",
            site=step_site(analysis),
            fix=step_fix(policy_edit(analysis, "mixed_bfloat16")),
            code=_code("mixed_bfloat16"),
            evidence=evidence,
        )


def _products(work: ProductWork) -> str:
    """How many products a step computes, and how long one takes: with the sentence's time of all of them."""
    count = format_count(round(work.per_step))
    at_once = ", some of them at the same time" if work.is_overlapping else ""
    return f"{count} matrix products and convolutions with a mean time of {format_ns(work.mean_ns)}{at_once}"


def _timed(times: ProductTimes) -> str:
    """What the measurement of the largest product has shown, as a clause."""
    product = times.product
    shape = "x".join(str(size) for size in (times.rows, *product.inputs))
    return (
        f"the model's largest product ({product.kind} of {product.layer}, {shape}) takes {format_ns(times.float32_ns)} in "
        f"float32 and {format_ns(times.bfloat16_ns)} in bfloat16: {times.gain:.2f}x"
    )


def _code(policy: str) -> str:
    return f'keras.mixed_precision.set_global_policy("{policy}")'


_STAGES = (source(), map_("decode", ms=0.1), batch(32), prefetch())
_KERAS = {"loop": "keras.fit", "dtype_policy": "float32"}

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.0, eligible=0.5))),
    fires(
        pipeline(
            *_STAGES,
            consumer_ms=100,
            keras=_KERAS,
            has_bfloat16=True,
            product_ms=(9, 3),
            compiled=True,
            device=cpu(op("_FusedMatMul", 12, us=6_000)),
        ),
        fixed='tf.keras.mixed_precision.set_global_policy("mixed_bfloat16")',
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
            *_STAGES,
            consumer_ms=100,
            keras=_KERAS,
            has_bfloat16=False,
            product_ms=(9, 3),
            device=cpu(op("_FusedMatMul", 12, us=6_000)),
        ),
        because="the CPU has no bfloat16 units",
    ),
    silent(
        pipeline(
            *_STAGES, consumer_ms=100, keras=_KERAS, has_bfloat16=True, device=cpu(op("_FusedMatMul", 12, us=6_000))
        ),
        because="the gain of the model's largest product in 16 bit was not measured",
    ),
    silent(
        pipeline(
            *_STAGES,
            consumer_ms=100,
            keras=_KERAS,
            has_bfloat16=True,
            product_ms=(9, 8),
            device=cpu(op("_FusedMatMul", 12, us=6_000)),
        ),
        because="the model's largest product is hardly faster in 16 bit on this machine",
    ),
    silent(
        pipeline(
            *_STAGES,
            consumer_ms=2,
            keras=_KERAS,
            has_bfloat16=True,
            product_ms=(9, 3),
            device=cpu(op("_FusedMatMul", 12, us=30)),
        ),
        because="the products are too small to benefit",
    ),
)
