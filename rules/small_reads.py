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
    is_cached_behind,
    is_editable,
    iterators_of_call,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, map_, pipeline, silent, source

READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")
LARGE = 64 * 1024
"""Bytes of the buffer that the fix sets. Measured here on local files from memory: from 16 KiB on, larger ones make no
difference; tf.data's own default is 256 KiB."""


@dataclass(frozen=True)
class SmallReads(Rule):
    """A reader was given a small `buffer_size`: every record takes several calls of the file system.

    ## Why it is slow
    Each time the buffer is empty the reader asks the file system for so many bytes. On a local file a call costs about a
    quarter of a microsecond, on a network file system or a bucket a millisecond or more.

    ## What the fix does
    A buffer of 64 KiB for each file that is open. Elements and order stay the same. For files in a bucket (`gs://`, `s3://`) a
    buffer of some megabytes is better still, and `num_parallel_reads` with it.

    ## When not to
    When thousands of files are open at once and memory is short.

    ## What tf.data already does
    Left alone, it takes 256 KiB. A number written by hand it never changes.
    """

    min_buffer_bytes: int = 16 * 1024
    """Bytes of a buffer that is large enough: below, the number of reads could be seen in the measurements."""
    read_ns: float = 260.0
    """Cost of one read beyond the copying, in nanoseconds, measured on local files from memory (records of 12 kB through
    256 bytes: 20.1 us, through 64 KiB: 7.5 us); the prediction rests on it. Elsewhere it is more, and so is the gain."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each reader with a small buffer that is waited for."""
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
            if costs and not is_cached_behind(analysis, pipeline, call):
                yield from self._advice(analysis, pipeline, call, costs, size)

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, call: Call, costs: list[Iterator], size: int
    ) -> Iter[Finding]:
        left, reads = {}, 0.0
        for it in costs:
            bytes_ = it.element_bytes or bytes_behind(pipeline, it)
            if not bytes_ or not it.elements or not it.busy_ns:
                return
            own = it.elements * bytes_ / size
            reads += own
            left[it.id] = max(0.1, 1 - own * self.read_ns / it.busy_ns)
        share = sum(it.blame_share for it in costs)
        elements = max(1, sum(it.elements or 0 for it in costs))
        yield self.finding(
            f"Read {format_bytes(LARGE)} at a time",
            f"{call.method} at {place(call)} reads through a buffer of {format_bytes(size)}, {reads / elements:.1f} "
            f"reads for each record, and causes {format_share(share)} of the wait for input.",
            call=call,
            iterator=costs[0],
            prediction=predict_speedup(analysis, pipeline, left, left),
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


def bytes_behind(pipeline: Pipeline, iterator: Iterator) -> int | None:
    """Bytes of an element where tf.data counted them for the iterator above only (a reader of many files)."""
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
        because="the buffer is tf.data's own",
    ),
    silent(
        pipeline(source(ms=0.5, bytes=12_000, buffer_size=4096), batch(64), consumer_ms=1, cores=4),
        because="three reads a record are not what takes half a millisecond",
    ),
    silent(
        pipeline(
            source(ms=0.01, bytes=12_000, buffer_size=256), map_("augment", ms=1, random=True), batch(64), consumer_ms=1
        ),
        because="the consumer waits for the map",
    ),
)
