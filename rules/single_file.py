"""single-file: all records are in one file, so one thread reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Call,
    CoreUse,
    Evidence,
    Finding,
    Iter,
    Note,
    Pipeline,
    Rule,
    core_use,
    file_count,
    is_cached_behind,
    iterators_of_call,
    place,
    predict_parallel,
)
from advisor.testing import batch, cache, fires, map_, pipeline, shuffle, silent, source

READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")


@dataclass(frozen=True)
class SingleFile(Rule):
    """All records are in one file; one thread reads it, and cores are idle.

    ## Why it is slow
    A file is read from its beginning to its end by one reader: reading, inflating and checking its records is the work of one
    core, however many there are.

    ## What the fix does
    The rule advises, it changes nothing, since it would have to write files. Written once into several files, the same records
    can be read at once:

        for i in range(16):
            with tf.io.TFRecordWriter(f"part-{i}.tfrecord") as writer:
                for record in tf.data.TFRecordDataset("all.tfrecord").shard(16, i):
                    writer.write(record.numpy())

    and then `tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)`, which takes a record of each file in turn. If
    every epoch is the same and fits in memory, a cache does as well: see `repeated-work`.

    ## When not to
    When the order of the records matters, or when the disk is the limit and not the thread.

    ## What tf.data already does
    It reads ahead of the consumer if there is a prefetch, in one thread.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition, on average over the window: what is idle and a half of what other
    processes use. With less, more readers have nowhere to run; how much more is worth is for the prediction to say."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each reader of one file that the consumer waits for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None or use.free < self.min_free_cores or analysis.verdict.limit == "disk":
            return
        for call in analysis.calls:
            if call.method in READERS and call.nested_in is None and file_count(analysis, call) == 1:
                yield from self._advice(analysis, pipeline, call, use)

    def _advice(self, analysis: Analysis, pipeline: Pipeline, call: Call, use: CoreUse) -> Iter[Finding]:
        costs = iterators_of_call(pipeline, call)
        if not costs or is_cached_behind(analysis, pipeline, call):
            return
        share = sum(it.blame_share for it in costs)
        prediction = predict_parallel(analysis, pipeline, costs, 1, max(1.0, use.usable))
        yield self.finding(
            "Split the file into several",
            f"{call.method} at {place(call)} reads one file, in one thread, which causes {format_share(share)} of the "
            f"wait for input, while {use.sentence}. Several files can be read at once.",
            call=call,
            iterator=costs[0],
            prediction=replace(prediction, low=1.0) if prediction else None,
            memory_bytes=None,
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("files", 1, "files"),
                Evidence("free_cores", use.free, "cores"),
            ),
        )


EXAMPLES = (
    fires(pipeline(source(ms=1, files=1), shuffle(), batch(16), consumer_ms=4, cores=4)),
    fires(pipeline(source("TextLine", ms=0.2, files=1), batch(64), consumer_ms=2, cores=2)),
    silent(
        pipeline(source(ms=1, files=8), shuffle(), batch(16), consumer_ms=4, cores=4),
        because="there are eight: that is serial-files",
    ),
    silent(
        pipeline(source(ms=0.01, files=1), map_("augment", ms=2, random=True), batch(16), consumer_ms=4, cores=4),
        because="the consumer waits for the map",
    ),
    silent(
        pipeline(source(ms=1, files=1), shuffle(), batch(16), consumer_ms=4, cores=4, busy_cores=3),
        because="the cores are busy",
    ),
    silent(
        pipeline(source("TensorSlice", ms=1), shuffle(), batch(16), consumer_ms=4, cores=4),
        because="no file is read",
    ),
    silent(
        pipeline(source(ms=1, files=1), cache(), batch(16), consumer_ms=4, cores=4, epochs=3),
        because="behind a cache the file is read once",
    ),
)
