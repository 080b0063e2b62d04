"""odd-dimensions: 16-bit products that do not run on tensor cores."""

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
    """The step computes in 16 bit, but many of its products run on kernels without tensor cores.

    ## Why it is slow
    Tensor cores multiply blocks. Where a dimension of a product (units of a layer, channels, the vocabulary, the
    batch) is no multiple of 8, libraries choose ordinary kernels, or pad and copy.

    ## What the fix does
    Round those dimensions up to a multiple of 8: units, filters, embedding and vocabulary sizes, the batch size; pad
    sequences to such a length (`padded_batch(..., padded_shapes=...)`). It changes the model's shape, so it is advice
    only.

    ## When not to
    When the ops named are depthwise or tiny: tensor cores do little for those. Which kernels use them is told by
    their names, after XProf's lists, which are not complete: newer libraries have names that no list knows.

    ## What tf.data already does
    Nothing here: this is the model.
    """

    needs_input_bound: ClassVar[bool] = False

    min_16bit_share: float = 0.1
    """Share of the device's computing in 16 bit. With less the first step is `full-precision`. XProf's threshold."""
    min_step_share: float = 0.1
    """Share of the step time in products that could use tensor cores and do not. At twice the speed, a tenth is what
    makes the step 1.05 times faster, the least that can be proved."""
    min_compute_capability: float = 7.0
    """The first GPUs with tensor cores (Volta)."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where products in a 16-bit model miss the tensor cores."""
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
        name = f"; most of it is {worst.op or worst.name}" if worst else ""
        yield self.finding(
            "Make the dimensions of products multiples of 8",
            f"{format_share(share)} of the step time goes into products that tensor cores could run and other kernels did, "
            f"{steps_seen(facts)}, although {format_share(half)} of the computing is 16 bit{name}.",
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
        because="it computes in 32 bit: that is full-precision's",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(6.1, half=0.7, eligible=0.5, off_tensor_cores=0.5)),
        because="the GPU has no tensor cores",
    ),
)
