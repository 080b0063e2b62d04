"""small-files: opening many small files costs more than reading them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.units import format_bytes, format_share
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
    copies_of,
    element_bytes,
    is_cached_downstream,
    label,
    place,
    predict_speedup,
)
from advisor.testing import batch, fires, flat_map, map_, pipeline, shuffle, silent, source


@dataclass(frozen=True)
class SmallFiles(Rule):
    """Each file contains one or few elements, and the consumer waits for files to be opened.

    ## Why it is slow
    Opening a file costs tens of microseconds on a local disk and milliseconds on a network file system or in a bucket,
    regardless of its size. For files of a few kilobytes this takes longer than reading them, and the disk performs
    random instead of sequential reads.

    ## What the fix does
    This is advice only, because the fix writes files. Packed into a few TFRecord files, the same bytes are read
    sequentially:

        with tf.io.TFRecordWriter("part-0.tfrecord") as writer:
            for file in files:
                writer.write(open(file, "rb").read())

    Write at least as many files as there are cores, each with 100 MB or more.

    ## When not to
    When the files change between runs, or are sampled from a very large collection.

    ## What tf.data already does
    It opens files ahead and in parallel where possible, which hides part of the cost.
    """

    max_file_bytes: int = 64 * 1024
    """Size of a file in bytes. Reading 64 KiB from memory or an SSD takes about as long as opening the file; for larger
    files, reading dominates."""
    min_open_share: float = 0.5
    """Share of the function's ops spent in `ReadFile`. Below a half, decoding costs more than opening."""
    max_elements_per_file: float = 8.0
    """Elements per file, if a reader opens it. With more, the cost of opening is distributed over many elements."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each map that opens small files, and each reader that opens a file for a few elements."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            if call is not None and call.function is not None and "ReadFile" in call.function.ops:
                yield from self._map(analysis, pipeline, iterator, call)
            elif catalog.base_type(iterator.name) in catalog.FILE_SOURCES and iterator.calls:
                yield from self._reader(analysis, pipeline, iterator, iterator.calls[-1])

    def _map(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call) -> Iter[Finding]:
        if is_cached_downstream(analysis, pipeline, call):
            return
        total = sum(op.total_ns for op in iterator.ops)
        opening = sum(op.total_ns for op in iterator.ops if op.op == "ReadFile")
        size = element_bytes(pipeline, call)
        if total <= 0 or opening < self.min_open_share * total or size is None or size > self.max_file_bytes:
            return
        why = (
            f"{label(call)} at {place(call)} opens a file for each element of {format_bytes(size)}; ReadFile takes "
            f"{format_share(opening / total)} of the time of its ops, and the map"
        )
        evidence = Evidence("open_share", opening / total, "share")
        yield self._finding(analysis, pipeline, copies_of(pipeline, iterator), call, why, evidence)

    def _reader(self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, call: Call) -> Iter[Finding]:
        copies = copies_of(pipeline, iterator)
        files, elements = sum(it.instances for it in copies), sum(it.elements or 0 for it in copies)
        per_file = elements / max(1, files)
        if (
            is_cached_downstream(analysis, pipeline, call)
            or files < 20
            or not 0 < per_file <= self.max_elements_per_file
        ):
            return
        outer = [parent for it in copies if (parent := pipeline.parent(it)) is not None]
        # The enclosing interleave opens the files.
        costs = [*copies, *(parent for parent in outer if "Map" in parent.name)]
        why = f"{call.method} at {place(call)} opened {files} files for {elements} elements, and"
        evidence = Evidence("elements_per_file", per_file, "elements")
        yield self._finding(analysis, pipeline, costs, call, why, evidence)

    def _finding(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        costs: Sequence[Iterator],
        call: Call,
        why: str,
        evidence: Evidence,
    ) -> Finding:
        free = {it.id: 0.0 for it in costs}
        limit = predict_speedup(analysis, pipeline, free, free)
        share = sum(it.blame_share for it in costs)
        return self.finding(
            "Pack the small files into TFRecord files",
            f"{why} causes {format_share(share)} of the wait for input. Packed into TFRecord files, the same bytes "
            "are read sequentially.",
            call=call,
            iterator=costs[0],
            # The cost of reading the packed records is unknown: the gain lies between zero and the whole cost.
            prediction=Prediction((1 + limit.value) / 2, 1.0, limit.high) if limit else None,
            memory_bytes=None,
            evidence=(Evidence("blame_share", share, "share"), evidence),
        )


EXAMPLES = (
    fires(
        pipeline(
            source("ListFiles", elements=20_000),
            map_("load", ms=0.2, bytes=2_000, op_shares={"ReadFile": 0.5, "DecodeRaw": 0.1}),
            batch(64),
            consumer_ms=1,
            cores=4,
        )
    ),
    fires(
        pipeline(
            source("ListFiles", elements=20_000),
            flat_map(source("TextLine", ms=0.3), per_input=3),
            batch(64),
            consumer_ms=1,
        )
    ),
    silent(
        pipeline(
            source("ListFiles", elements=20_000),
            map_("load", ms=2, bytes=2_000, op_shares={"ReadFile": 0.1, "DecodeJpeg": 0.8}),
            batch(64),
            consumer_ms=1,
            cores=4,
        ),
        because="decoding costs more than opening",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=20_000),
            map_("load", ms=0.2, bytes=2_000_000, op_shares={"ReadFile": 0.5, "DecodeRaw": 0.1}),
            batch(64),
            consumer_ms=1,
            cores=4,
        ),
        because="the files are large",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=100),
            flat_map(source("TextLine", ms=0.3), per_input=3_000),
            batch(64),
            consumer_ms=1,
        ),
        because="each file contains many elements",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=20_000),
            map_("load", ms=0.05, bytes=2_000, op_shares={"ReadFile": 0.5}),
            shuffle(),
            batch(64),
            consumer_ms=20,
            cores=4,
        ),
        because="the consumer does not wait",
    ),
)
