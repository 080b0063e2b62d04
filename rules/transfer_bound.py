"""transfer-bound: the device waits for copies from the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site, steps_seen
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class TransferBound(Rule):
    """Copies from the host to the device take part of the step while the device computes nothing.

    ## Why it is slow
    A batch is copied when the step requests it, and the device is idle until the copy is complete. XProf's own pages
    count such copies as computation.

    ## What the fix does
    `dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))` as the very last transformation copies the next
    batch while the current one is being processed. Transfer less data: images as `uint8`, cast and scaled on the
    device, take a quarter of the bytes of `float32`. With a `tf.distribute` strategy, the strategy copies the data.
    This is advice only, and no speedup is predicted.

    ## When not to
    When the device memory is full, because prefetched batches are stored there.

    ## What tf.data already does
    It never copies to a device automatically: its prefetch fills host memory. `tf.distribute` strategies and
    `prefetch_to_device` copy to the device.
    """

    needs_input_bound: ClassVar[bool] = False

    min_exposed_share: float = 0.05
    """Share of the step time in which a copy ran and the device computed nothing. XProf's threshold for input, which
    includes such copies."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding if copies are exposed."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis):
            return
        share = facts.exposed_to_device_share
        if share is None or share < self.min_exposed_share:
            return
        takes = f" ({format_ns(facts.to_device_ns_per_step)} per step)" if facts.to_device_ns_per_step else ""
        yield self.finding(
            "Copy batches to the device ahead of time, and as smaller types",
            f"{format_share(share)} of the step time is spent copying from the host to the device{takes} while the "
            f"device computes nothing, {steps_seen(facts)}.",
            site=step_site(analysis),
            evidence=(
                Evidence("exposed_to_device_share", share, "share"),
                Evidence("to_device_time", facts.to_device_ns_per_step or 0, "ns"),
            ),
        )


_STAGES = (source(bytes=600_000), batch(32), prefetch())

EXAMPLES = (
    fires(pipeline(*_STAGES, consumer_ms=100, device=gpu(copied=0.14))),
    fires(pipeline(*_STAGES, consumer_ms=20, device=gpu(copied=0.06))),
    silent(
        pipeline(*_STAGES, consumer_ms=100, device=gpu(copied=0.004)),
        because="copies run while the device computes",
    ),
    silent(pipeline(*_STAGES, consumer_ms=100, device=cpu()), because="there is no device to copy to"),
)
