"""transfer-bound: the device waits for copies from the host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_ns, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, is_fed, measured_ns, step_site, steps_seen
from advisor.testing import batch, cpu, fires, gpu, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class TransferBound(Rule):
    """Copies from the host to the device take a part of the step in which the device computes nothing.

    ## Why it is slow
    A batch is copied when the step asks for it, and the device has nothing to do until it is there. XProf's own pages
    take such copies for computing.

    ## What the fix does
    `dataset.apply(tf.data.experimental.prefetch_to_device("/gpu:0"))` as the very last transformation copies the next
    batch while this one is trained on. Send less: images as `uint8`, cast and scaled on the device, are a quarter of
    the bytes of `float32`. With a `tf.distribute` strategy the strategy does the copying. It is advice only, with no
    gain predicted.

    ## When not to
    When the device's memory is full: prefetched batches lie there.

    ## What tf.data already does
    It never copies to a device by itself: its prefetch fills memory of the host. `tf.distribute` strategies and
    `prefetch_to_device` do.
    """

    needs_input_bound: ClassVar[bool] = False

    min_exposed_share: float = 0.05
    """Share of the step time in which a copy ran and nothing computed. XProf's line for input, which such a copy is."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding where copies are exposed."""
        facts = analysis.device
        if facts is None or not measured_ns(facts) or not is_fed(analysis):
            return
        share = facts.exposed_to_device_share
        if share is None or share < self.min_exposed_share:
            return
        takes = f" ({format_ns(facts.to_device_ns_per_step)} per step)" if facts.to_device_ns_per_step else ""
        yield self.finding(
            "Copy batches to the device ahead, and as smaller types",
            f"{format_share(share)} of the step time is copying from the host to the device{takes} while nothing "
            f"computes there, {steps_seen(facts)}.",
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
