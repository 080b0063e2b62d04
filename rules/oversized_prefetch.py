"""oversized-prefetch: a prefetch buffer takes a large part of the memory."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    AUTOTUNE,
    Analysis,
    Evidence,
    Finding,
    Fix,
    Iter,
    Note,
    Rule,
    Safety,
    SetArgument,
    catalog,
    is_editable,
    place,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class OversizedPrefetch(Rule):
    """A `prefetch` of many elements may take a large part of the free memory.

    ## Why it is slow
    A prefetch needs one or two elements to let the pipeline and its consumer work at the same time, and a few more where element
    times vary. What is held beyond that is memory without use; when the pipeline is faster than the consumer, the buffer fills to
    its limit. The number counts elements of the place where the prefetch stands: behind a `batch`, batches.

    ## What the fix does
    `prefetch(tf.data.AUTOTUNE)`: tf.data chooses a number and keeps its buffers within its RAM budget. Elements and order
    stay the same. What is gained is memory and nothing that could be proved as speed, so the change is shown and never applied.

    ## When not to
    When the source stalls for long and the buffer is there to bridge it.

    ## What tf.data already does
    It tunes what was given as `AUTOTUNE`. A number written by hand it never changes.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 0.1
    """Share of the free memory that the buffer may come to hold. A tenth is far more than overlapping takes."""
    min_elements: int = 8
    """Elements in the buffer. So few are an author's choice even where they are large."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each constant prefetch whose elements are known to take too much."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "prefetch"), None)
            size = call.arguments.get("buffer_size") if call else None
            if catalog.base_type(iterator.name) != "Prefetch" or call is None or not isinstance(size, int):
                continue
            inputs = pipeline.inputs(iterator)
            each = iterator.element_bytes or (inputs[0].element_bytes if len(inputs) == 1 else None)
            if size < self.min_elements or not each:
                continue
            whole = call.cardinality if call.cardinality is not None and call.cardinality >= 0 else size
            held, room = each * min(size, whole), host.memory_free_bytes + int((iterator.buffered_elements or 0) * each)
            if held <= self.max_memory_share * room:
                continue
            yield self.finding(
                "Let tf.data choose the size of the prefetch",
                f"prefetch({size}) at {place(call)} may hold {min(size, whole)} elements of {format_bytes(each)}: "
                f"{format_bytes(held)}, {format_share(held / max(1, room))} of the {format_bytes(room)} that are "
                "there for it. One or two are enough to overlap.",
                call=call,
                iterator=iterator,
                fix=Fix(
                    (SetArgument(call.id, "buffer_size", AUTOTUNE),), Safety.EXACT, is_auto=False, is_provable=False
                )
                if is_editable(call)
                else None,
                evidence=(
                    Evidence("buffer_bytes", held, "bytes"),
                    Evidence("free_memory", room, "bytes"),
                    Evidence("buffer_size", size, "elements"),
                ),
            )


EXAMPLES = (
    fires(
        pipeline(
            source(elements=1_000_000), map_("decode", ms=1, bytes=600_000), batch(32), prefetch(1_000), consumer_ms=50
        ),
        fixed="ds.prefetch(tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(elements=1_000_000, bytes=3_000_000, ms=2), prefetch(5_000), batch(8), consumer_ms=5),
        fixed="ds.prefetch(tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(
            source(elements=1_000_000), map_("decode", ms=1, bytes=600_000), batch(32), prefetch(4), consumer_ms=50
        ),
        because="four batches are not many",
    ),
    silent(
        pipeline(
            source(elements=1_000_000), map_("decode", ms=1, bytes=600_000), batch(32), prefetch(), consumer_ms=50
        ),
        because="tf.data chooses",
    ),
    silent(
        pipeline(source(elements=1_000_000, bytes=100), batch(32), prefetch(1_000), consumer_ms=50),
        because="a thousand small batches are 3 MB",
    ),
)
