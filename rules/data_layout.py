"""data-layout: kernels that only permute the dimensions of images."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site, steps_seen
from advisor.testing import batch, fires, gpu, pipeline, prefetch, silent, source

_CHANGES_LAYOUT = re.compile(r"nchwToNhwc|nhwcToNchw|-LayoutOptimizer|Transpose(NCHWToNHWC|NHWCToNCHW)")
"""cuDNN's own conversions, and the transposes that Grappler's layout optimizer inserts into the graph."""


@dataclass(frozen=True)
class DataLayout(Rule):
    """Images are converted between channels-last and channels-first around convolutions.

    ## Why it is slow
    Convolutions on tensor cores require channels last (NHWC), other convolutions channels first (NCHW). If the data has
    the other layout, or an op in between supports only one, each tensor is copied to the new layout and back.

    ## What the fix does
    Use one layout throughout the model: `data_format="channels_last"` in every layer (Keras' default) together with
    mixed precision, which is the layout that tensor cores use. Write reshapes and reductions over named axes for the
    same layout. This is advice only.

    ## When not to
    When pretrained weights or an export format prescribe the layout.

    ## What tf.data already does
    Nothing: this is the training step. Grappler's layout optimizer selects the layout for the GPU, inserts these
    transposes, and cancels adjacent pairs. The remaining transposes are those that it could not cancel.
    """

    needs_input_bound: ClassVar[bool] = False

    min_step_share: float = 0.05
    """Share of the step time in such kernels. Without them the step would be 1.05 times faster, the smallest speedup
    that can be proved."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if layout conversions take a significant share of the step."""
        facts = analysis.device
        kernels = analysis.statistics.kernels if analysis.statistics else None
        if facts is None or not measured_ns(facts) or not is_fed(analysis) or not facts.kernel_ns or not kernels:
            return
        conversions = [row for row in kernels if _CHANGES_LAYOUT.search(row.name) or _CHANGES_LAYOUT.search(row.op)]
        share = sum(row.total_ns for row in conversions) / facts.kernel_ns * (1 - (facts.idle_share or 0.0))
        if share < self.min_step_share:
            return
        worst = max(conversions, key=lambda row: row.total_ns)
        yield self.finding(
            "Use one data layout for images",
            f"{format_share(share)} of the step time is spent in kernels that only permute dimensions, "
            f"{steps_seen(facts)}; the most expensive is {worst.op or worst.name}.",
            site=step_site(analysis),
            evidence=(
                Evidence("layout_share", share, "share"),
                Evidence("layout_kernels", sum(row.occurrences for row in conversions)),
            ),
        )


_STAGES = (source(), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(transposed=0.15))),
    fires(pipeline(*_STAGES, consumer_ms=20, device=gpu(transposed=0.06))),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(transposed=0.01)),
        because="the transposes at the ends of the model take 1 % of the step",
    ),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(eligible=0.5, off_tensor_cores=0.4)),
        because="no kernel only moves data",
    ),
)
