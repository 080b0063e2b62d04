"""capped-parallelism: a constant number of parallel calls is saturated while cores are idle."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    AUTOTUNE,
    NEAR_SHARE,
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    Iterator,
    Note,
    Rejected,
    Rule,
    SetArgument,
    catalog,
    copies_of,
    core_use,
    is_editable,
    iterators_inside,
    label,
    parallel_safety,
    place,
    predict_parallel,
    python_share,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, interleave, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class CappedParallelism(Rule):
    """A constant `num_parallel_calls` prevents a costly transformation from using idle cores.

    ## Why it is slow
    With `num_parallel_calls=2`, two elements are processed at once, no matter whether the machine has two cores or
    ninety-six. When both calls are busy and the consumer waits, the other cores stay idle.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE` lets tf.data tune the number while the pipeline runs. The elements keep their
    order. One element per parallel call is held in memory.

    ## When not to
    When the constant protects a resource, such as a server that limits connections, a disk that slows down under many
    readers, or memory that large elements would fill. Mark such a line with `# advisor: ignore[capped-parallelism]`.

    ## What tf.data already does
    It tunes values given as `AUTOTUNE` and maps that it parallelised automatically. It never changes a constant.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further parallel calls have no core to run on. The prediction decides whether they are
    worthwhile."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each constant that is below the number of cores, saturated, and waited for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        use = core_use(analysis, pipeline)
        if use is None:
            return
        for iterator in pipeline.iterators:
            call = capped_call(iterator)
            is_python = iterator.python_ns > 0 and python_share(analysis, pipeline) > 0
            if call is None or is_python or iterator.has_saturated_calls is False:
                continue
            number = iterator.parallelism or 1
            if number >= use.usable:
                continue
            inside = copies_of(pipeline, iterator)
            if call.method == "interleave":
                inside = tuple(it for copy in inside for it in iterators_inside(analysis, pipeline, copy, call))
            share = sum(it.blame_share for it in inside)
            title = f"Let tf.data choose the parallelism of {label(call)}"
            if use.free < self.min_free_cores:
                if share >= NEAR_SHARE:
                    cores = Evidence("free_cores", use.free, "cores")
                    yield self.rejected(title, f"no core is free: {use.sentence}", call=call, evidence=(cores,))
                continue
            because = (
                f"{label(call)} at {place(call)} is limited to {number} parallel call{'s' if number > 1 else ''}, all "
                f"of them busy, and causes {format_share(share)} of the wait for input, while {use.sentence}."
            )
            fix = Fix((SetArgument(call.id, "num_parallel_calls", AUTOTUNE),), parallel_safety(call), is_auto=True)
            yield self.finding(
                title,
                because,
                call=call,
                iterator=iterator,
                prediction=predict_parallel(analysis, pipeline, inside, number, use.usable),
                memory_bytes=round(use.usable - number) * (call.element_bytes or 0),
                fix=fix if is_editable(call) else None,
                evidence=(
                    Evidence("blame_share", share, "share"),
                    Evidence("parallelism", number, "calls"),
                    Evidence("free_cores", use.free, "cores"),
                ),
            )


def capped_call(iterator: Iterator) -> Call | None:
    """The call whose constant sets the iterator's parallelism; None if there is none."""
    if iterator.parallelism is None or iterator.is_autotuned:
        return None
    methods = (
        ("map",)
        if catalog.base_type(iterator.name) == "MapAndBatch"
        else ("map", "interleave", "batch", "padded_batch")
    )
    for call in iterator.calls:
        number = call.arguments.get("num_parallel_calls")
        if call.method in methods and isinstance(number, int) and number > 0:
            return call
    return None


EXAMPLES = (
    fires(
        pipeline(source(), map_("decode", ms=5, calls=2), batch(32), consumer_ms=20, cores=8),
        fixed="ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(), map_("decode", ms=5, calls=1), prefetch(), consumer_ms=1, cores=2),
        fixed="ds.map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=64), interleave(source(ms=0.5), calls=2), batch(32), consumer_ms=2, cores=8
        ),
        fixed="tf.data.TFRecordDataset(files), num_parallel_calls=tf.data.AUTOTUNE\n)",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=TUNED), batch(32), consumer_ms=10, cores=4),
        because="tf.data tunes the parallelism",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=8), batch(32), consumer_ms=10, cores=8),
        because="there are as many parallel calls as cores",
    ),
    silent(
        pipeline(source(ms=5), map_("decode", ms=1, calls=2), batch(32), consumer_ms=10, cores=8),
        because="some of its calls are idle: the consumer waits for the records",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=2), batch(32), consumer_ms=20, cores=4, busy_cores=2),
        because="the cores are busy",
    ),
)
