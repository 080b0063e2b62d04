"""padding-waste: most of what a padded batch holds is padding."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_bytes, format_share
from advisor.rule import Analysis, Evidence, Finding, Iter, Note, Rule, catalog, place
from advisor.testing import batch, fires, map_, padded_batch, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class PaddingWaste(Rule):
    """A `padded_batch` holds more padding than data.

    ## Why it is slow
    `padded_batch` makes every element as long as the longest of its batch. Where lengths differ much, most of what is copied,
    sent to the device and computed there is padding.

    ## What the fix does
    The rule advises, it changes nothing, since the batches become others: `bucket_by_sequence_length` puts elements of like
    length into one batch, and each batch is only as long as it must be. The gain is mostly in the training step, which the
    profile of the input pipeline does not show, so none is predicted.

    ## When not to
    When all batches must have one shape (TPUs, XLA): then a few fixed lengths are a compromise, or several short elements packed
    into one row.

    ## What tf.data already does
    Nothing here.
    """

    needs_input_bound: ClassVar[bool] = False

    max_padding_share: float = 0.5
    """Share of a batch's bytes that may be padding. Above a half, the step handles more padding than data."""
    min_batches: int = 10
    """Batches seen. With fewer, one long element decides."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each padded batch whose bytes are known before and behind the padding."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "padded_batch"), None)
            inputs = pipeline.inputs(iterator)
            if catalog.base_type(iterator.name) != "PaddedBatch" or call is None or len(inputs) != 1:
                continue
            size, before, behind = call.arguments.get("batch_size"), inputs[0].element_bytes, iterator.element_bytes
            if not isinstance(size, int) or not before or not behind or (iterator.elements or 0) < self.min_batches:
                continue
            padding = 1 - size * before / behind
            if padding <= self.max_padding_share:
                continue
            yield self.finding(
                "Put elements of like length into one batch",
                f"{format_share(padding)} of each batch of padded_batch at {place(call)} is padding: {size} elements "
                f"of {format_bytes(before)} on average become {format_bytes(behind)}. bucket_by_sequence_length pads "
                "each batch to the length of its own bucket.",
                call=call,
                iterator=iterator,
                memory_bytes=None,
                evidence=(
                    Evidence("padding_share", padding, "share"),
                    Evidence("element_bytes", before, "bytes"),
                    Evidence("batch_bytes", behind, "bytes"),
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
        because="a third is padding",
    ),
    silent(
        pipeline(source("TextLine", bytes=200), shuffle(), batch(64), prefetch(), consumer_ms=5),
        because="nothing is padded",
    ),
)
