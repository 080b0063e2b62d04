"""head-of-line: finished elements wait for a slow one before them, because the order is kept."""

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
    core_use,
    is_editable,
    label,
    place,
    predict_speedup,
    python_share,
)
from advisor.testing import batch, fires, map_, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class HeadOfLine(Rule):
    """A parallel `map` hands its elements on in order: while a slow one is next, the finished ones behind it wait.

    ## Why it is slow
    With `num_parallel_calls=16` at most sixteen elements are in work or waiting for their turn. When the next one in order takes
    long (a large file, a slow answer of a server), the others finish, wait, and their calls stand idle. The pace is that of the
    slowest of sixteen, not of the average.

    ## What the fix does
    `deterministic=False`: elements are handed on as they finish. They are the same, in another order, which differs from run to
    run; so it is applied only when asked for.

    ## When not to
    When the order matters: runs that must be repeated exactly, time series, elements that are zipped with others.

    ## What tf.data already does
    It keeps the order unless told otherwise, here or with `options.deterministic = False`. `MapAndBatch` hands on whole batches
    in order and fills each as its elements finish; it is not reported.
    """

    min_parallelism: int = 4
    """Parallel calls. With two or three, one finished element beside one that is in work is the ordinary state."""
    min_blame_share: float = 0.5
    """Share of the consumer's wait that is blamed on the map. Where it is low, finished elements wait because nobody takes
    them."""
    max_running_share: float = 0.5
    """Share of the calls that may be running. Where more than half of them work on average, little is lost by order."""
    min_waiting_share: float = 0.2
    """Finished elements that wait for their turn, as a share of the calls. With fewer, calls stand idle for another reason: too
    little input, or no core."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each ordered parallel map whose calls stand idle while finished elements wait."""
        pipeline = analysis.main
        if pipeline is None or pipeline.span_ns <= 0 or python_share(analysis, pipeline):
            return
        for iterator in pipeline.iterators:
            call = next((each for each in iterator.calls if each.method == "map"), None)
            if call is None or catalog.base_type(iterator.name) != "ParallelMap" or not is_ordered(iterator, call):
                continue
            if iterator.blame_share < self.min_blame_share:
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
            f"Hand on the elements of {label(call)} as they finish",
            f"Of {slots:g} parallel calls of {label(call)} at {place(call)} only {running:.1f} run on average, while "
            f"{waiting:.1f} "
            f"finished elements wait for a slow one before them; it causes {format_share(iterator.blame_share)} of the wait "
            "for input.",
            call=call,
            iterator=iterator,
            prediction=predict_speedup(analysis, pipeline, {iterator.id: running / slots}),
            fix=fix if is_editable(call) else None,
            evidence=(
                Evidence("blame_share", iterator.blame_share, "share"),
                Evidence("running_calls", running, "calls"),
                Evidence("parallelism", slots, "calls"),
                Evidence("waiting_elements", waiting, "elements"),
            ),
        )


def is_ordered(iterator: Iterator, call: Call) -> bool:
    """Whether the map keeps the order."""
    return iterator.parameters.get("deterministic") is not False and call.arguments.get("deterministic") is not False


def call_slots(analysis: Analysis, pipeline: Pipeline, iterator: Iterator) -> float:
    """How many calls could really run at once: no more than the pipeline has threads."""
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
        because="of two calls one that waits says nothing",
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
        because="the finished elements wait because what is behind them is slower",
    ),
    silent(
        pipeline(source(), map_("load", ms=9, calls=8, idle_share=0.1, waiting=4), prefetch(), consumer_ms=1, cores=8),
        because="nearly all calls run",
    ),
    silent(
        pipeline(source(), map_("load", ms=9, calls=8, idle_share=0.6, waiting=0), prefetch(), consumer_ms=1, cores=8),
        because="no finished element waits: order is not what holds the calls up",
    ),
    silent(
        pipeline(
            source(),
            map_("load", ms=9, calls=8, idle_share=0.6, waiting=4, deterministic=False),
            prefetch(),
            consumer_ms=1,
            cores=8,
        ),
        because="the order is not kept",
    ),
)
