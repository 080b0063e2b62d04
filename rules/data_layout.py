"""data-layout: kernels that only change the order of an image's dimensions."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site, steps_seen
from advisor.testing import batch, fires, gpu, pipeline, prefetch, silent, source

_CHANGES_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|-LayoutOptimizer|Transpose(NCHWToNHWC|NHWCToNCHW)")
"""cuDNN's own conversions, and the transposes that Grappler's layout optimizer writes into the graph."""


@dataclass(frozen=True)
class DataLayout(Rule):
    """Images are turned from channels-last to channels-first and back between convolutions.

    ## Why it is slow
    Convolutions on tensor cores want channels last (NHWC), others channels first (NCHW). Where data comes in the
    other order, or an op in between knows only one, each tensor is copied into the new order and back.

    ## What the fix does
    Keep one order through the whole model: `data_format="channels_last"` in every layer (Keras' default) together
    with mixed precision, which is what tensor cores take. Write reshapes and reductions over named axes in that
    order. It is advice only.

    ## When not to
    When an order is prescribed by weights or an export.

    ## What tf.data already does
    Nothing here. Grappler's layout optimizer chooses the order for the GPU at hand by itself, inserts these
    transposes and cancels the ones that meet; what is left is what it could not cancel.
    """

    needs_input_bound: ClassVar[bool] = False

    min_step_share: float = 0.05
    """Share of the step time in such kernels. Without them the step would be 1.05 times faster, the least that can be
    proved."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where layout kernels take a part of the step."""
        facts = analysis.device
        kernels = analysis.statistics.kernels if analysis.statistics else None
        if facts is None or not measured_ns(facts) or not is_fed(analysis) or not facts.kernel_ns or not kernels:
            return
        found = [row for row in kernels if _CHANGES_LAYOUT.search(row.name) or _CHANGES_LAYOUT.search(row.op)]
        share = sum(row.total_ns for row in found) / facts.kernel_ns * (1 - (facts.idle_share or 0.0))
        if share < self.min_step_share:
            return
        worst = max(found, key=lambda row: row.total_ns)
        yield self.finding(
            "Keep one order of image dimensions",
            f"{format_share(share)} of the step time goes into kernels that only change the order of dimensions, "
            f"{steps_seen(facts)}; most of it is {worst.op or worst.name}.",
            site=step_site(analysis),
            evidence=(
                Evidence("layout_share", share, "share"),
                Evidence("layout_kernels", sum(row.occurrences for row in found)),
            ),
        )


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(transposed=0.15))),
    fires(pipeline(*_STAGES, consumer_ms=20, device=gpu(transposed=0.06))),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(transposed=0.01)),
        because="a transpose at each end of the model is 1 % of the step",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(eligible=0.5, off_tensor_cores=0.4)),
        because="the kernels compute, none only moves",
    ),
)
