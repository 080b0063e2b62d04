"""serial-files: several files are read one after the other while cores are idle."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    AUTOTUNE,
    NEAR_SHARE,
    Analysis,
    Call,
    Code,
    CoreUse,
    Evidence,
    Finding,
    Fix,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rejected,
    Rule,
    Safety,
    SetArgument,
    catalog,
    core_use,
    file_count,
    is_cached_downstream,
    is_editable,
    iterators_inside,
    iterators_of_call,
    label,
    place,
    predict_parallel,
    python_share,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, flat_map, interleave, map_, pipeline, shuffle, silent, source

READERS = ("TFRecordDataset", "TextLineDataset", "FixedLengthRecordDataset")


@dataclass(frozen=True)
class SerialFiles(Rule):
    """Several files are read one after the other by a single thread while cores are idle.

    ## Why it is slow
    `TFRecordDataset([...])` opens the next file when the current one ends, and `flat_map` over file names does the
    same. A single thread reads, decompresses and checks every record.

    ## What the fix does
    It sets `num_parallel_reads=tf.data.AUTOTUNE` on the reader, so that several files are read at once. On few cores,
    where tf.data would choose 1, it sets a number. The records are the same but their order changes: the files are
    interleaved. The fix is therefore applied only on request. Replace a `flat_map` manually with `.interleave(read,
    cycle_length=..., num_parallel_calls=tf.data.AUTOTUNE)`.

    ## When not to
    When the order of the records matters, or when all files are on a single spinning disk, where parallel reads cause
    seeks.

    ## What tf.data already does
    Nothing: it reads files in parallel only on request.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further readers have no core to run on. The prediction decides whether they are worthwhile."""

    autotuned_cores: float = 4.0
    """Usable cores from which tf.data chooses the number of parallel reads. On two cores `AUTOTUNE` reads one file at a
    time and gains nothing [measured with GZIP files: 3.23 ms per batch without, 3.33 ms with AUTOTUNE, 2.31 ms with 2].
    Values in between were not measured."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each reader of several files that the consumer waits for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None:
            return
        for call in analysis.calls:
            if call.method in READERS and call.nested_in is None and not is_cached_downstream(analysis, pipeline, call):
                yield from self._reader(analysis, pipeline, call, use)
        for iterator in pipeline.iterators:
            outer = next((call for call in iterator.calls if call.method == "flat_map"), None)
            if outer is not None and not is_cached_downstream(analysis, pipeline, outer):
                yield from self._outer(analysis, pipeline, iterator, outer, use)

    def _reader(self, analysis: Analysis, pipeline: Pipeline, call: Call, use: CoreUse) -> Iter[Finding | Rejected]:
        """Yield a finding for a reader of a list of files."""
        files, inside = file_count(analysis, call), list(iterators_of_call(pipeline, call))
        if not inside or files is None or files < 2 or call.arguments.get("num_parallel_reads") is not None:
            return
        edit = SetArgument(call.id, "num_parallel_reads", self._reads(files, use))
        fix = Fix((edit,), Safety.REORDERED, is_auto=False) if is_editable(call) else None
        yield from self._finding(analysis, pipeline, call, inside, files, use, fix)

    def _reads(self, files: int, use: CoreUse) -> Code | int:
        """The argument to write: AUTOTUNE if tf.data would choose more than one."""
        return AUTOTUNE if use.usable >= self.autotuned_cores else max(2, min(files, round(use.usable)))

    def _outer(
        self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call, use: CoreUse
    ) -> Iter[Finding | Rejected]:
        """Yield a finding for a `flat_map` over files."""
        files = next((source_call.cardinality for source_call in analysis.calls if source_call.id in call.inputs), None)
        inside = iterators_inside(analysis, pipeline, iterator, call)
        reads = any(catalog.base_type(it.name) in catalog.FILE_SOURCES for it in inside)
        if catalog.base_type(iterator.name) != "FlatMap" or files is None or files < 2 or not reads:
            return
        if any(it.python_ns for it in inside) and python_share(analysis, pipeline):
            return
        # A map inside the function is covered by `map-inside-interleave`.
        inside = [it for it in inside if not any(inner.method == "map" for inner in it.calls)]
        yield from self._finding(analysis, pipeline, call, inside, files, use, None)

    def _finding(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        call: Call,
        inside: list[Iterator],
        files: int,
        use: CoreUse,
        fix: Fix | None,
    ) -> Iter[Finding | Rejected]:
        share = sum(it.blame_share for it in inside)
        title = f"Read the files of {label(call)} in parallel"
        if use.free < self.min_free_cores:
            if share >= NEAR_SHARE:
                cores = Evidence("free_cores", use.free, "cores")
                yield self.rejected(title, f"no core is free: {use.sentence}", call=call, evidence=(cores,))
            return
        width = max(1.0, min(files, use.usable))
        size = next((it.element_bytes for it in inside if it.element_bytes), None)
        yield self.finding(
            title,
            f"{label(call)} at {place(call)} reads its {files} files one after the other, which causes "
            f"{format_share(share)} of the wait for input, while {use.sentence}.",
            call=call,
            iterator=inside[0],
            prediction=predict_parallel(analysis, pipeline, inside, 1, width),
            memory_bytes=None if size is None else round(2 * width) * size,
            fix=fix,
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("files", files, "files"),
                Evidence("free_cores", use.free, "cores"),
            ),
        )


EXAMPLES = (
    fires(
        pipeline(source(ms=1, files=8), shuffle(), batch(16), consumer_ms=2, cores=4),
        fixed="tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(ms=1, files=8), shuffle(), batch(16), consumer_ms=2, cores=2),
        fixed="tf.data.TFRecordDataset(files, num_parallel_reads=2)",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=16), flat_map(source("TextLine", ms=0.5)), batch(16), consumer_ms=2, cores=4
        )
    ),
    silent(
        pipeline(source(ms=1, files=1), shuffle(), batch(16), consumer_ms=2, cores=4),
        because="there is only one file",
    ),
    silent(
        pipeline(source(ms=1, files=8), shuffle(), batch(16), consumer_ms=2, cores=4, busy_cores=3),
        because="the cores are busy",
    ),
    silent(
        pipeline(source(ms=0.05, files=8), map_("augment", ms=1, random=True), batch(16), consumer_ms=2, cores=4),
        because="the consumer waits for the map",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=16),
            interleave(source(ms=1), calls=TUNED, cycle_length=4),
            batch(16),
            consumer_ms=2,
        ),
        because="the files are already read in parallel",
    ),
)
