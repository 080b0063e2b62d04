"""autoshard-data: every worker reads and prepares the whole data set and keeps its share of it."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rule,
    catalog,
    label,
    last_editable_call,
    place,
    predict_speedup,
)
from advisor.testing import autoshard, batch, fires, map_, pipeline, shard, silent, source


@dataclass(frozen=True)
class AutoshardData(Rule):
    """Auto-sharding fell back to elements: each worker does the work of all and throws most of it away.

    ## Why it is slow
    `tf.distribute` gives each worker a part of the data. It prefers to give each other files (FILE); where it finds
    none, or too few, every worker reads and prepares everything and keeps one element in `n` (DATA). `n` workers then
    prepare no more per second than one.

    ## What the fix does
    Make the source a dataset of file names, at least as many as workers (`list_files(...).interleave(...)` or
    `TFRecordDataset(list_of_files)`), and leave `options.experimental_distribute.auto_shard_policy` alone or set it
    to FILE. Or shard by hand at the source: `dataset.shard(context.num_input_pipelines, context.input_pipeline_id)`
    in `distribute_datasets_from_function`. Which worker sees which element changes, so it is advice only.

    ## When not to
    When the elements are cheap to make: reading everything everywhere costs little then, and the rule is silent.

    ## What tf.data already does
    With the default policy AUTO it shards by file wherever it finds a reader of files in the graph. With one file, a
    generator or arrays it cannot, and with DATA it puts its shard behind your last transformation.
    """

    min_blame: float = 0.1
    """Share of the wait behind what stands before the shard. With less, doing it once per worker costs little."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each shard of TensorFlow's own with costly work before it."""
        pipeline = analysis.main
        if pipeline is None:
            return
        for iterator in pipeline.iterators:
            shards = iterator.parameters.get("num_shards")
            is_its_own = catalog.base_type(iterator.name) == "Shard" and not iterator.calls
            if not is_its_own or not isinstance(shards, int) or shards < 2:
                continue
            wasted = [it for it in pipeline.upstream(iterator) if it.blame_share > 0]
            blame = sum(it.blame_share for it in wasted)
            if blame < self.min_blame:
                continue
            call = last_editable_call(analysis, pipeline)
            kept = {it.id: 1 / shards for it in wasted}
            yield self.finding(
                "Let each worker read its own files",
                f"TensorFlow shards this pipeline by elements, behind {_costliest(wasted, pipeline)}: each of {shards} workers "
                f"prepares all elements and keeps one in {shards}. {format_share(blame)} of the wait is work before that shard.",
                call=call,
                iterator=iterator,
                prediction=predict_speedup(analysis, pipeline, kept, kept),
                evidence=(Evidence("num_shards", shards), Evidence("blame_share", blame, "share")),
            )


def _costliest(iterators: list[Iterator], pipeline: Pipeline) -> str:
    worst = max(iterators, key=lambda it: it.blame_share)
    return f"{label(worst.main_call)} at {place(worst.main_call)}" if worst.main_call else worst.name


EXAMPLES = (
    fires(pipeline(source(), map_("decode", ms=10, random=True), batch(8), autoshard(4), consumer_ms=20)),
    fires(pipeline(source("Generator", ms=5), batch(8), autoshard(2), consumer_ms=20)),
    silent(
        pipeline(source(), map_("decode", ms=10, random=True), batch(8), autoshard(1), consumer_ms=20),
        because="one worker has everything to itself",
    ),
    silent(
        pipeline(source(), autoshard(4), map_("decode", ms=10, random=True), batch(8), consumer_ms=20),
        because="the shard stands at the source: only names are thrown away",
    ),
    silent(
        pipeline(source(), map_("decode", ms=10, random=True), shard(4), batch(8), consumer_ms=20),
        because="the script's own shard is late-shard's",
    ),
)
