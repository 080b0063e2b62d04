"""autoshard-data: every worker reads and prepares the whole dataset and keeps only its share."""

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
    """Auto-sharding fell back to sharding by element: every worker prepares the whole dataset and discards most of it.

    ## Why it is slow
    `tf.distribute` gives each worker a part of the data. It prefers to assign files (policy FILE). If there are no
    files, or fewer files than workers, every worker reads and prepares everything and keeps one element in `n` (policy
    DATA). `n` workers then have the input throughput of one.

    ## What the fix does
    Read from a dataset of file names, with at least as many files as workers (`list_files(...).interleave(...)` or
    `TFRecordDataset(list_of_files)`), and leave `options.experimental_distribute.auto_shard_policy` unset or set it to
    FILE. Alternatively, shard manually at the source: `dataset.shard(context.num_input_pipelines,
    context.input_pipeline_id)` in `distribute_datasets_from_function`. Because the assignment of elements to workers
    changes, this is advice only.

    ## When not to
    When elements are cheap to prepare. Preparing them on every worker then costs little, and nothing is reported.

    ## What tf.data already does
    With the default policy AUTO it shards by file if the graph contains a file reader. With a single file, a generator
    or in-memory arrays it cannot. With policy DATA it inserts the shard after the last transformation.
    """

    min_blame: float = 0.1
    """Share of the wait caused by the work before the shard. Below that, repeating the work on every worker costs
    little."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each shard inserted by TensorFlow that follows costly work."""
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
                f"TensorFlow shards this pipeline by element, after {_costliest(wasted, pipeline)}: each of {shards} "
                f"workers prepares all elements and keeps one in {shards}. Work before the shard causes "
                f"{format_share(blame)} of the wait for input.",
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
        because="there is only one worker",
    ),
    silent(
        pipeline(source(), autoshard(4), map_("decode", ms=10, random=True), batch(8), consumer_ms=20),
        because="the shard is at the source and only discards file names",
    ),
    silent(
        pipeline(source(), map_("decode", ms=10, random=True), shard(4), batch(8), consumer_ms=20),
        because="a shard written in the script is covered by late-shard",
    ),
)
