"""odd-dimensions: 16-bit products that do not use tensor cores."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    KernelRow,
    Note,
    Rule,
    is_fed,
    measured_ns,
    step_site,
    steps_seen,
)
from advisor.testing import batch, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class OddDimensions(Rule):
    """The step computes in 16 bit, but many of its products run on kernels that do not use tensor cores.

    ## Why it is slow
    Tensor cores multiply blocks. If a dimension of a product (the units of a layer, channels, the vocabulary, the
    batch) is not a multiple of 8, libraries choose ordinary kernels, or pad and copy.

    ## What the fix does
    Round these dimensions up to a multiple of 8: units, filters, embedding and vocabulary sizes, and the batch size;
    pad sequences to such a length (`padded_batch(..., padded_shapes=...)`). Because this changes the shape of the
    model, it is advice only.

    ## When not to
    When the named ops are depthwise or very small, because tensor cores do little for those. Kernels that use tensor
    cores are recognised by name, using XProf's lists. The lists are incomplete: newer libraries have kernel names that
    they do not contain.

    ## What tf.data already does
    Nothing: this is the model.
    """

    needs_input_bound: ClassVar[bool] = False

    min_16bit_share: float = 0.1
    """Share of the device's computation in 16 bit. With less, `full-precision` applies first. XProf's threshold."""
    min_step_share: float = 0.1
    """Share of the step time in products that could use tensor cores but do not. At twice the speed, a tenth makes the
    step 1.05 times faster, the smallest speedup that can be proved."""
    min_compute_capability: float = 7.0
    """Compute capability of the first GPUs with tensor cores (Volta)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if products in a 16-bit model do not use tensor cores."""
        facts = analysis.device
        if (
            facts is None
            or not measured_ns(facts)
            or not is_fed(analysis)
            or not facts.kernel_ns
            or facts.compute_capability is None
        ):
            return
        half = facts.compute_16bit_share
        busy = 1 - (facts.idle_share or 0.0)
        share = facts.eligible_off_tensor_core_ns / facts.kernel_ns * busy
        if (
            half is None
            or half < self.min_16bit_share
            or facts.compute_capability < self.min_compute_capability
            or share < self.min_step_share
        ):
            return
        worst = max(_missed(analysis), key=lambda row: row.total_ns, default=None)
        name = f"; the most expensive is {worst.op or worst.name}" if worst else ""
        yield self.finding(
            "Make the dimensions of products multiples of 8",
            f"{format_share(share)} of the step time is spent in products that could use tensor cores but do not, "
            f"{steps_seen(facts)}, although {format_share(half)} of the computation is 16 bit{name}.",
            site=step_site(analysis),
            evidence=(
                Evidence("off_tensor_core_share", share, "share"),
                Evidence("compute_16bit_share", half, "share"),
            ),
        )


def _missed(analysis: Analysis) -> list[KernelRow]:
    kernels = analysis.statistics.kernels if analysis.statistics else None
    return [row for row in kernels or () if row.is_op_tensor_core_eligible and not row.is_using_tensor_core]


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.7, eligible=0.5, off_tensor_cores=0.3))),
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(9.0, half=0.3, eligible=0.2, off_tensor_cores=0.2))),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.7, eligible=0.5, off_tensor_cores=0.02)),
        because="nearly all products run on tensor cores",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(half=0.0, eligible=0.5, off_tensor_cores=0.5)),
        because="the step computes in 32 bit: see full-precision",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(6.1, half=0.7, eligible=0.5, off_tensor_cores=0.5)),
        because="the GPU has no tensor cores",
    ),
)
