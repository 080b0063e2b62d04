"""small-reads: a reader's buffer is so small that each record takes many reads."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_bytes, format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rule,
    Safety,
    SetArgument,
    catalog,
    is_cached_downstream,
    is_editable,
    iterators_of_call,
    machine_costs,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, silent, source

READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")
LARGE = 64 * 1024
"""Buffer size in bytes that the fix sets. Measured on local files in memory: from 16 KiB on, larger buffers make no
difference. tf.data's default is 256 KiB."""


@dataclass(frozen=True)
class SmallReads(Rule):
    """A reader has a small `buffer_size`, so every record takes several file-system calls.

    ## Why it is slow
    Whenever the buffer is empty, the reader requests this number of bytes from the file system. A call costs a quarter of
    a microsecond or more for a local file, and a millisecond or more on a network file system or in a bucket. The
    prediction uses the cost of a local file, as measured on this machine (`advisor doctor` shows it).

    ## What the fix does
    It sets a buffer of 64 KiB for each open file. Elements and order stay the same. For files in a bucket (`gs://`,
    `s3://`), a buffer of several megabytes combined with `num_parallel_reads` is better still.

    ## When not to
    When thousands of files are open at once and memory is limited.

    ## What tf.data already does
    Its default buffer is 256 KiB. It never changes a constant.
    """

    min_buffer_bytes: int = 16 * 1024
    """Buffer size in bytes that is large enough. Below it, the number of reads had a measurable effect."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each reader with a small buffer that the consumer waits for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for call in analysis.calls:
            size = call.arguments.get("buffer_size")
            is_small = isinstance(size, int) and not isinstance(size, bool) and 0 < size < self.min_buffer_bytes
            if call.method not in READERS or not is_small or not isinstance(size, int):
                continue
            costs = [
                it for it in iterators_of_call(pipeline, call) if catalog.base_type(it.name) in catalog.FILE_SOURCES
            ]
            if costs and not is_cached_downstream(analysis, pipeline, call):
                yield from self._advice(analysis, pipeline, call, costs, size)

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, call: Call, costs: list[Iterator], size: int
    ) -> Iter[Finding]:
        left, reads, machine = {}, 0.0, machine_costs(analysis)
        for it in costs:
            bytes_ = it.element_bytes or bytes_of_parent(pipeline, it)
            if not bytes_ or not it.elements or not it.busy_ns:
                return
            own = it.elements * bytes_ / size
            reads += own
            left[it.id] = max(0.1, 1 - own * machine.small_read_ns / it.busy_ns)
        share = sum(it.blame_share for it in costs)
        elements = max(1, sum(it.elements or 0 for it in costs))
        prediction = predict_speedup(analysis, pipeline, left, left)
        yield self.finding(
            f"Read {format_bytes(LARGE)} at a time",
            f"{call.method} at {place(call)} reads with a buffer of {format_bytes(size)}, {reads / elements:.1f} "
            f"reads per record, and causes {format_share(share)} of the wait for input.",
            call=call,
            iterator=costs[0],
            prediction=machine.mark(prediction, "small_read_ns") if prediction is not None else None,
            memory_bytes=LARGE,
            fix=Fix((SetArgument(call.id, "buffer_size", LARGE),), Safety.EXACT, is_auto=True)
            if is_editable(call)
            else None,
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("buffer_size", size, "bytes"),
                Evidence("reads_per_record", reads / elements, "reads"),
            ),
        )


def bytes_of_parent(pipeline: Pipeline, iterator: Iterator) -> int | None:
    """Element size in bytes, if tf.data counted it only for the enclosing iterator (a reader of several files)."""
    parent = pipeline.parent(iterator)
    return parent.element_bytes if parent is not None and catalog.base_type(parent.name) == "FlatMap" else None


EXAMPLES = (
    fires(
        pipeline(source(ms=0.05, bytes=12_000, buffer_size=256), batch(64), consumer_ms=1, cores=4),
        fixed="tf.data.TFRecordDataset(files, buffer_size=65536)",
    ),
    fires(
        pipeline(source("TextLine", ms=0.01, bytes=2_000, buffer_size=128), batch(256), consumer_ms=1, cores=4),
        fixed="tf.data.TextLineDataset(files, buffer_size=65536)",
    ),
    silent(
        pipeline(source(ms=0.05, bytes=12_000, buffer_size=1 << 20), batch(64), consumer_ms=1, cores=4),
        because="the buffer is large",
    ),
    silent(
        pipeline(source(ms=0.05, bytes=12_000), batch(64), consumer_ms=1, cores=4),
        because="the buffer has the default size",
    ),
    silent(
        pipeline(source(ms=0.5, bytes=12_000, buffer_size=4096), batch(64), consumer_ms=1, cores=4),
        because="three reads per record do not explain half a millisecond",
    ),
    silent(
        pipeline(
            source(ms=0.01, bytes=12_000, buffer_size=256), map_("augment", ms=1, random=True), batch(64), consumer_ms=1
        ),
        because="the consumer waits for the map",
    ),
)
