"""single-file: all records are in one file, so a single thread reads them."""

from __future__ import annotations

from dataclasses import dataclass, replace

from advisor.model.units import format_share
from advisor.rule import (
    NEAR_SHARE,
    Analysis,
    Call,
    CoreUse,
    Evidence,
    Finding,
    Iter,
    Note,
    Pipeline,
    Rejected,
    Rule,
    core_use,
    file_count,
    is_cached_downstream,
    iterators_of_call,
    place,
    predict_parallel,
)
from advisor.testing import batch, cache, fires, map_, pipeline, shuffle, silent, source

READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")


@dataclass(frozen=True)
class SingleFile(Rule):
    """All records are in one file, which a single thread reads while cores are idle.

    ## Why it is slow
    A file is read from beginning to end by one reader. Reading, decompressing and checking its records uses a single
    core, however many there are.

    ## What the fix does
    This is advice only, because the fix writes files. Split into several files, the same records can be read in
    parallel:

        for i in range(16):
            with tf.io.TFRecordWriter(f"part-{i}.tfrecord") as writer:
                for record in tf.data.TFRecordDataset("all.tfrecord").shard(16, i):
                    writer.write(record.numpy())

    Then use `tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)`, which interleaves the records of the
    files. If the data is the same in every epoch and fits in memory, a cache has the same effect: see `repeated-work`.

    ## When not to
    When the order of the records matters, or when the disk rather than the thread is the limit.

    ## What tf.data already does
    With a prefetch, it reads ahead of the consumer, in a single thread.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further readers have no core to run on. The prediction decides whether they are worthwhile."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each reader of a single file that the consumer waits for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None or analysis.verdict.limit == "disk":
            return
        for call in analysis.calls:
            if call.method in READERS and call.nested_in is None and file_count(analysis, call) == 1:
                yield from self._advice(analysis, pipeline, call, use)

    def _advice(self, analysis: Analysis, pipeline: Pipeline, call: Call, use: CoreUse) -> Iter[Finding | Rejected]:
        costs = iterators_of_call(pipeline, call)
        if not costs or is_cached_downstream(analysis, pipeline, call):
            return
        share = sum(it.blame_share for it in costs)
        title = "Split the file into several"
        if use.free < self.min_free_cores:
            if share >= NEAR_SHARE:
                cores = Evidence("free_cores", use.free, "cores")
                yield self.rejected(title, f"no core is free: {use.sentence}", call=call, evidence=(cores,))
            return
        prediction = predict_parallel(analysis, pipeline, costs, 1, max(1.0, use.usable))
        yield self.finding(
            title,
            f"{call.method} at {place(call)} reads a single file in one thread, which causes {format_share(share)} of "
            f"the wait for input, while {use.sentence}. Several files can be read in parallel.",
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
        because="there are eight files: see serial-files",
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
        because="the file is followed by a cache and read only once",
    ),
)
