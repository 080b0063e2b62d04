"""padding-waste: a padded batch consists mostly of padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_bytes, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, catalog, place
from advisor.testing import batch, fires, map_, padded_batch, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class PaddingWaste(Rule):
    """A `padded_batch` contains more padding than data.

    ## Why it is slow
    `padded_batch` pads every element to the length of the longest element in its batch. If lengths vary widely, most of
    the data that is copied, sent to the device and computed on is padding.

    ## What the fix does
    Use `bucket_by_sequence_length`, which batches elements of similar length, so that each batch needs little padding.
    Because this changes the batches, it is advice only. The gain is mostly in the training step, which a profile of the
    input pipeline does not show, so no speedup is predicted.

    ## When not to
    When all batches must have the same shape (TPUs, XLA). In that case use a few fixed lengths, or pack several short
    elements into one row.

    ## What tf.data already does
    Nothing.
    """

    needs_input_bound: ClassVar[bool] = False

    max_padding_share: float = 0.5
    """Share of a batch's bytes that is padding. Above a half, the step processes more padding than data."""
    min_batches: int = 10
    """Batches observed. With fewer, a single long element dominates the result."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each padded batch whose size is known before and after padding."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "padded_batch"), None)
            inputs = pipeline.inputs(iterator)
            if catalog.base_type(iterator.name) != "PaddedBatch" or call is None or len(inputs) != 1:
                continue
            size, before, after = call.arguments.get("batch_size"), inputs[0].element_bytes, iterator.element_bytes
            if not isinstance(size, int) or not before or not after or (iterator.elements or 0) < self.min_batches:
                continue
            padding = 1 - size * before / after
            if padding <= self.max_padding_share:
                continue
            yield self.finding(
                "Batch elements of similar length",
                f"{format_share(padding)} of each batch of padded_batch at {place(call)} is padding: {size} elements "
                f"of {format_bytes(before)} on average become {format_bytes(after)}. bucket_by_sequence_length pads "
                "each batch to the length of its own bucket.",
                call=call,
                iterator=iterator,
                memory_bytes=None,
                evidence=(
                    Evidence("padding_share", padding, "share"),
                    Evidence("element_bytes", before, "bytes"),
                    Evidence("batch_bytes", after, "bytes"),
                ),
            )


EXAMPLES = (
    fires(
        pipeline(source("TextLine", bytes=200), shuffle(), padded_batch(64, bytes=64 * 900), prefetch(), consumer_ms=5)
    ),
    fires(
        pipeline(
            source("TextLine"),
            map_("to_ids", ms=0.01, bytes=400),
            padded_batch(32, bytes=32 * 1_200, ms=2),
            consumer_ms=1,
        )
    ),
    silent(
        pipeline(source("TextLine", bytes=200), shuffle(), padded_batch(64, bytes=64 * 300), prefetch(), consumer_ms=5),
        because="only a third is padding",
    ),
    silent(
        pipeline(source("TextLine", bytes=200), shuffle(), batch(64), prefetch(), consumer_ms=5),
        because="nothing is padded",
    ),
)
