"""head-of-line: finished elements wait for a slow predecessor because the order is preserved."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
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
    copies_of,
    core_use,
    is_editable,
    label,
    place,
    predict_speedup,
    python_share,
    share_of_wait,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class HeadOfLine(Rule):
    """A parallel `map` emits elements in order, so a slow element blocks the finished ones that follow it.

    ## Why it is slow
    With `num_parallel_calls=16`, at most sixteen elements are in progress or waiting to be emitted. When the next
    element in order takes long (a large file, a slow server response), the others finish and wait, and their calls are
    idle. The throughput is determined by the slowest of sixteen elements, not by the average.

    ## What the fix does
    It sets `deterministic=False`, so that elements are emitted as they finish. The elements are the same, but their
    order changes and differs between runs. The fix is therefore applied only on request.

    ## When not to
    When the order matters: exactly reproducible runs, time series, or elements that are zipped with other datasets.

    ## What tf.data already does
    It preserves the order by default; `deterministic=False` or `options.deterministic = False` disables this.
    `MapAndBatch` emits whole batches in order and fills each as its elements finish; it is not reported.
    """

    min_parallelism: int = 4
    """Parallel calls. With two or three, one finished element next to one in progress is normal."""
    min_blame_share: float = 0.5
    """Share of the consumer's wait caused by the map. If it is low, finished elements wait because nothing requests
    them."""
    max_running_share: float = 0.5
    """Share of the calls that are running. If more than half run on average, little is lost to ordering."""
    min_waiting_share: float = 0.2
    """Finished elements waiting to be emitted, relative to the number of calls. With fewer, calls are idle for another
    reason: not enough input, or no free core."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each ordered parallel map whose calls are idle while finished elements wait."""
        pipeline = analysis.main
        if pipeline is None or pipeline.span_ns <= 0 or python_share(analysis, pipeline):
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.method == "map"), None)
            if call is None or catalog.base_type(iterator.name) != "ParallelMap" or not is_ordered(iterator, call):
                continue
            if share_of_wait(pipeline, iterator) < self.min_blame_share:
                continue
            slots, waiting = call_slots(analysis, pipeline, iterator), iterator.buffered_elements or 0.0
            running = iterator.function_ns / pipeline.span_ns
            if (
                slots < self.min_parallelism
                or running > self.max_running_share * slots
                or waiting < self.min_waiting_share * slots
            ):
                continue
            yield self._advice(analysis, pipeline, iterator, call, slots, running, waiting)

    def _advice(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        iterator: Iterator,
        call: Call,
        slots: float,
        running: float,
        waiting: float,
    ) -> Finding:
        fix = Fix((SetArgument(call.id, "deterministic", False),), Safety.REORDERED, is_auto=False)
        return self.finding(
            f"Emit the elements of {label(call)} as they finish",
            f"On average only {running:.1f} of {slots:g} parallel calls of {label(call)} at {place(call)} are "
            f"running, while {waiting:.1f} finished elements wait for a slow predecessor. This causes "
            f"{format_share(share_of_wait(pipeline, iterator))} of the wait for input.",
            call=call,
            iterator=iterator,
            prediction=predict_speedup(
                analysis, pipeline, {it.id: running / slots for it in copies_of(pipeline, iterator)}
            ),
            fix=fix if is_editable(call) else None,
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                Evidence("running_calls", running, "calls"),
                Evidence("parallelism", slots, "calls"),
                Evidence("waiting_elements", waiting, "elements"),
            ),
        )


def is_ordered(iterator: Iterator, call: Call) -> bool:
    """Whether the map preserves the order."""
    return iterator.parameters.get("deterministic") is not False and call.arguments.get("deterministic") is not False


def call_slots(analysis: Analysis, pipeline: Pipeline, iterator: Iterator) -> float:
    """The number of calls that can run at once, which is limited by the pipeline's threads.

    Args:
        analysis: The run.
        pipeline: The executed pipeline, whose option `threadpool_size` counts instead of the cores.
        iterator: The iterator of a parallel transformation.
    """
    threads = pipeline.root.parameters.get("threadpool_size")
    if isinstance(threads, bool) or not isinstance(threads, int) or threads <= 0:
        use = core_use(analysis, pipeline)
        threads = round(use.usable) if use else 1
    return min(iterator.parallelism or 1, threads)


EXAMPLES = (
    fires(
        pipeline(
            source(),
            map_("fetch", ms=5, calls=16, idle_share=0.8, waiting=8, python=True, sleeps=True),
            shuffle(),
            batch(8),
            consumer_ms=1,
            threadpool_size=32,
        ),
        fixed="ds.map(fetch, num_parallel_calls=16, deterministic=False)",
    ),
    fires(
        pipeline(source(), map_("load", ms=9, calls=8, idle_share=0.6, waiting=4), prefetch(), consumer_ms=1, cores=8),
        fixed="ds.map(load, num_parallel_calls=8, deterministic=False)",
    ),
    silent(
        pipeline(source(), map_("load", ms=9, calls=2, idle_share=0.6, waiting=1), prefetch(), consumer_ms=1, cores=8),
        because="with two calls, one waiting element is normal",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=0.1, calls=8, idle_share=0.6, waiting=8),
            prefetch(),
            map_("distort", ms=9, random=True),
            consumer_ms=1,
            cores=8,
        ),
        because="the finished elements wait because a later transformation is slower",
    ),
    silent(
        pipeline(source(), map_("load", ms=9, calls=8, idle_share=0.1, waiting=4), prefetch(), consumer_ms=1, cores=8),
        because="nearly all calls are running",
    ),
    silent(
        pipeline(source(), map_("load", ms=9, calls=8, idle_share=0.6, waiting=0), prefetch(), consumer_ms=1, cores=8),
        because="no finished element waits: the calls are idle for another reason",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=9, calls=8, idle_share=0.6, waiting=4, deterministic=False),
            prefetch(),
            consumer_ms=1,
            cores=8,
        ),
        because="the order is not preserved",
    ),
)
