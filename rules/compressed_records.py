"""compressed-records: the consumer waits for the decompression of record files."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    Analysis,
    Call,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Prediction,
    Rule,
    catalog,
    is_cached_downstream,
    iterators_of_call,
    place,
    predict_speedup,
)
from advisor.testing import AUTOTUNE, batch, cache, fires, interleave, map_, pipeline, silent, source

READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset", "CsvDataset")


@dataclass(frozen=True)
class CompressedRecords(Rule):
    """Record files are compressed with GZIP or ZLIB, and the consumer waits for their decompression.

    ## Why it is slow
    A compressed file can only be decompressed from its beginning, by a single thread, at a few hundred megabytes per
    second. Every epoch repeats this work.

    ## What the fix does
    This is advice only, because the fix writes files. Stored without compression, the records are read several times
    faster but take more disk space:

        with tf.io.TFRecordWriter("new.tfrecord") as writer:
            for record in tf.data.TFRecordDataset("old.tfrecord.gz", compression_type="GZIP"):
                writer.write(record.numpy())

    Where possible, compress the contents of the records instead (JPEG, PNG, uint8 instead of float32). If the data is
    the same in every epoch and fits in memory, a cache has the same effect: see `repeated-work`.

    ## When not to
    When the files are read over a slow network or from a slow disk. Compression then saves more time than it costs.

    ## What tf.data already does
    With a prefetch, it decompresses ahead of the consumer, using one reading thread per file.
    """

    uncompressed_cost: float = 0.4
    """Cost of reading a record without compression, relative to the cost with compression. Measured with raw images at
    GZIP's default level, read from memory: 2.5 times faster. Other data and reads from disk may gain less or more."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each compressed source that the consumer waits for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for call in analysis.calls:
            kind = call.arguments.get("compression_type")
            sources = reading_iterators(pipeline, call)
            if (
                call.method in READERS
                and kind in ("GZIP", "ZLIB")
                and sources
                and not is_cached_downstream(analysis, pipeline, call)
            ):
                yield self._advice(analysis, pipeline, call, sources, str(kind))

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, call: Call, sources: tuple[Iterator, ...], kind: str
    ) -> Finding:
        share = sum(it.blame_share for it in sources)
        records = max(1, sum(it.elements or 0 for it in sources))
        left = {it.id: self.uncompressed_cost for it in sources}
        likely = predict_speedup(analysis, pipeline, left, left)
        free = dict.fromkeys(left, 0.0)
        most = predict_speedup(analysis, pipeline, free, free)
        record_ns = sum(it.busy_ns for it in sources) / records
        return self.finding(
            "Store the records without compression",
            f"{call.method} at {place(call)} decompresses {kind} files, {format_ns(record_ns)} per record, which "
            f"causes {format_share(share)} of the wait for input. Uncompressed records are read several times faster; "
            "rewrite them with a loop over this dataset and tf.io.TFRecordWriter.",
            call=call,
            iterator=sources[0],
            prediction=Prediction(likely.value, 1.0, most.high) if likely and most else None,
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("time_per_record", record_ns, "ns"),
            ),
        )


def reading_iterators(pipeline: Pipeline, call: Call) -> tuple[Iterator, ...]:
    """The iterators of a reader that read records, excluding the one that lists the files."""
    return tuple(it for it in iterators_of_call(pipeline, call) if catalog.base_type(it.name) in catalog.FILE_SOURCES)


EXAMPLES = (
    fires(pipeline(source(ms=1, compression_type="GZIP"), batch(16), consumer_ms=4, cores=4)),
    fires(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=1, compression_type="ZLIB"), calls=AUTOTUNE),
            batch(32),
            consumer_ms=2,
            cores=4,
        )
    ),
    silent(pipeline(source(ms=1), batch(16), consumer_ms=4, cores=4), because="nothing is compressed"),
    silent(
        pipeline(
            source(ms=0.05, compression_type="GZIP"),
            map_("augment", ms=2, random=True),
            batch(16),
            consumer_ms=4,
            cores=4,
        ),
        because="the consumer waits for the map",
    ),
    silent(
        pipeline(source(ms=0.05, compression_type="GZIP"), batch(16), consumer_ms=4, cores=4),
        because="the consumer is slower than the reading",
    ),
    silent(
        pipeline(source(ms=1, compression_type="GZIP"), cache(), batch(16), consumer_ms=4, cores=4, epochs=3),
        because="the files are followed by a cache and read only once",
    ),
)
