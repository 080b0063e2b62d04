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
    """A `prefetch` with many elements may take a large part of the free memory.

    ## Why it is slow
    A prefetch needs one or two elements to let the pipeline and its consumer work in parallel, and a few more if
    element times vary. Anything beyond that wastes memory: if the pipeline is faster than the consumer, the buffer
    fills to its limit. The size counts elements at the position of the prefetch; after a `batch`, it counts batches.

    ## What the fix does
    It changes the call to `prefetch(tf.data.AUTOTUNE)`: tf.data tunes the size and keeps its buffers within its RAM
    budget. Elements and order stay the same. The benefit is memory rather than a speedup that could be proved, so the
    change is shown but never applied.

    ## When not to
    When the source stalls for long periods and the buffer is meant to bridge them.

    ## What tf.data already does
    It tunes sizes given as `AUTOTUNE`. It never changes a constant.
    """

    needs_input_bound: ClassVar[bool] = False

    max_memory_share: float = 0.1
    """Share of the free memory that the full buffer takes. A tenth is far more than overlapping requires."""
    min_elements: int = 8
    """Elements in the buffer. A smaller number is considered intentional, even for large elements."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each prefetch of constant size whose elements are known to take too much memory."""
        pipeline, host = analysis.main, analysis.host
        if pipeline is None or host is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "prefetch"), None)
            size = call.arguments.get("buffer_size") if call else None
            if catalog.base_type(iterator.name) != "Prefetch" or call is None or not isinstance(size, int):
                continue
            inputs = pipeline.inputs(iterator)
            size_bytes = iterator.element_bytes or (inputs[0].element_bytes if len(inputs) == 1 else None)
            if size < self.min_elements or not size_bytes:
                continue
            whole = call.cardinality if call.cardinality is not None and call.cardinality >= 0 else size
            held, room = (
                size_bytes * min(size, whole),
                host.memory_free_bytes + int((iterator.buffered_elements or 0) * size_bytes),
            )
            if held <= self.max_memory_share * room:
                continue
            yield self.finding(
                "Let tf.data tune the size of the prefetch",
                f"prefetch({size}) at {place(call)} may hold {min(size, whole)} elements of "
                f"{format_bytes(size_bytes)}: {format_bytes(held)}, or {format_share(held / max(1, room))} of the "
                f"{format_bytes(room)} of available memory. One or two elements are enough to overlap.",
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
        because="the buffer is only four batches",
    ),
    silent(
        pipeline(
            source(elements=1_000_000), map_("decode", ms=1, bytes=600_000), batch(32), prefetch(), consumer_ms=50
        ),
        because="tf.data tunes the size",
    ),
    silent(
        pipeline(source(elements=1_000_000, bytes=100), batch(32), prefetch(1_000), consumer_ms=50),
        because="a thousand small batches take only 3 MB",
    ),
)
