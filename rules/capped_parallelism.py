"""capped-parallelism: a constant number of parallel calls, all busy, while cores are idle."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    AUTOTUNE,
    Analysis,
    Call,
    Evidence,
    Finding,
    Fix,
    Iter,
    Iterator,
    Note,
    Rule,
    SetArgument,
    catalog,
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
    """A constant `num_parallel_calls` keeps a costly transformation from cores that are idle.

    ## Why it is slow
    With `num_parallel_calls=2` two elements are worked on at once, on a machine of two cores and on one of ninety-six. When
    both calls are busy and the consumer waits, the other cores cannot help.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE` lets tf.data choose the number while the pipeline runs. The elements stay in order.
    It holds as many elements in memory as there are parallel calls.

    ## When not to
    When the constant is there to protect something: a server that allows few connections, a disk that slows down under many
    readers, memory that large elements would fill. Say so beside it: `# advisor: ignore[capped-parallelism]`.

    ## What tf.data already does
    It tunes what was given as `AUTOTUNE` and what it parallelised by itself. A number written by hand it never changes.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition, on average over the window: what is idle and a half of what other
    processes use. With less, more calls have nowhere to run; how much more is worth is for the prediction to say."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each constant that is lower than the number of cores, saturated, and waited for."""
        pipeline = analysis.main
        if pipeline is None:
            return
        use = core_use(analysis, pipeline)
        if use is None or use.free < self.min_free_cores:
            return
        for iterator in pipeline.iterators:
            call = capped_call(iterator)
            is_python = iterator.python_ns > 0 and python_share(analysis, pipeline) > 0
            if call is None or is_python or iterator.has_saturated_calls is False:
                continue
            number = iterator.parallelism or 1
            if number >= use.usable:
                continue
            inside = iterators_inside(analysis, pipeline, iterator, call) if call.method == "interleave" else [iterator]
            share = sum(it.blame_share for it in inside)
            because = (
                f"{label(call)} at {place(call)} may use {number} parallel call{'s' if number > 1 else ''}, all of them "
                f"busy, and causes {format_share(share)} of the wait for input, while "
                f"{use.sentence}."
            )
            fix = Fix((SetArgument(call.id, "num_parallel_calls", AUTOTUNE),), parallel_safety(call), is_auto=True)
            yield self.finding(
                f"Let tf.data choose the parallelism of {label(call)}",
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
    """The call whose constant sets the iterator's parallelism; None where there is none."""
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
        fixed="tf.data.TFRecordDataset(files), num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=TUNED), batch(32), consumer_ms=10, cores=4),
        because="tf.data chooses the parallelism",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=8), batch(32), consumer_ms=10, cores=8),
        because="there are as many calls as cores",
    ),
    silent(
        pipeline(source(ms=5), map_("decode", ms=1, calls=2), batch(32), consumer_ms=10, cores=8),
        because="some of its calls are free: the records are what the consumer waits for",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5, calls=2), batch(32), consumer_ms=20, cores=4, busy_cores=2),
        because="the cores are busy",
    ),
)
