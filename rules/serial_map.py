"""serial-map: a map that runs one element at a time while cores are idle."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_share
from advisor.rule import (
    Analysis,
    Call,
    CoreUse,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rule,
    core_use,
    is_rewrite_forbidden,
    is_sequential_stateless_map,
    label,
    parallel_fix,
    place,
    predict_parallel,
    python_share,
    serial_maps,
)
from advisor.testing import batch, fires, interleave, map_, options, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class SerialMap(Rule):
    """A `map` handles one element at a time while cores are idle.

    ## Why it is slow
    A sequential `map` runs its function on one thread. The step cannot be shorter than all its elements' times added up,
    however many cores the machine has.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE` runs the function on several elements at once; tf.data chooses on how many and keeps
    the elements in order. It holds as many elements in memory as there are parallel calls. Of a function of some 60 us nobody can
    know whether a second thread gains anything: where the predicted range begins at 1.0 the fix is tried only when asked for.

    ## When not to
    When the cores are busy already: then parallel calls only take turns. When the function runs Python (`py_function`) and
    holds Python's lock: see `python-lock`. A function that draws random numbers draws others than before, of the same
    distribution, so a seeded run is no longer repeated number by number.

    ## What tf.data already does
    It runs stateless top-level maps in parallel by itself (`map_parallelization`). It never does so for stateful functions
    (`tf.random.*`, lookup tables, `py_function`), nor inside the function of an `interleave` or `flat_map` (for those see
    `map-inside-interleave`), nor where an option forbids it (`autotune-off`). A stateful map before a `batch`
    runs fused, as `MapAndBatch` with parallelism 1. The rule reads the executed iterators, so what runs in parallel already is
    not reported.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition, on average over the window: what is idle and a half of what other
    processes use. With less, more calls have nowhere to run; how much more is worth is for the prediction to say."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each map that runs one at a time and keeps the consumer waiting."""
        pipeline = analysis.main
        if pipeline is None:
            return
        use = core_use(analysis, pipeline)
        if use is None or use.free < self.min_free_cores:
            return
        is_forbidden = is_rewrite_forbidden(analysis, pipeline)
        for iterator in pipeline.iterators:
            calls = serial_maps(iterator)
            if any(each.nested_in for each in calls):
                continue  # `map-inside-interleave` speaks of those
            if is_forbidden and is_sequential_stateless_map(iterator):
                continue  # an option is the cause: `autotune-off` speaks of it
            if calls and not (iterator.python_ns and python_share(analysis, pipeline)):
                yield self._advice(analysis, pipeline, iterator, calls, use)

    def _advice(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        iterator: Iterator,
        calls: tuple[Call, ...],
        use: CoreUse,
    ) -> Finding:
        call = calls[0]
        prediction = predict_parallel(analysis, pipeline, [iterator], 1, max(1.0, use.usable))
        because = (
            f"{label(call)} at {place(call)} runs as {iterator.name}, one element at a time, and causes "
            f"{format_share(iterator.blame_share)} of the wait for input, while {use.sentence}."
        )
        return self.finding(
            f"Parallelise {label(call)}",
            because,
            call=call,
            iterator=iterator,
            prediction=prediction,
            memory_bytes=round(use.usable) * (call.element_bytes or 0),
            fix=parallel_fix(calls, prediction),
            evidence=(
                Evidence("blame_share", iterator.blame_share, "share"),
                Evidence("free_cores", use.free, "cores"),
                Evidence("parallelism", 1, "calls"),
            ),
        )


EXAMPLES = (
    fires(
        pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8),
        fixed="ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(), map_("look_up", ms=2, captured=["HashTableV2"]), prefetch(), consumer_ms=1, cores=4),
        fixed="ds.map(look_up, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(), map_("fetch", ms=5, python=True, sleeps=True), batch(32), consumer_ms=20, cores=8),
        fixed="ds.map(fetch, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=10, cores=8),
        because="a stateless map runs in parallel already",
    ),
    silent(
        pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=4, busy_cores=3),
        because="the cores are busy",
    ),
    silent(
        pipeline(source(ms=5), map_("augment", ms=0.1, random=True), batch(32), consumer_ms=20, cores=8),
        because="another iterator keeps the consumer waiting",
    ),
    silent(
        pipeline(source(), map_("tokenize", ms=5, python=True), batch(32), consumer_ms=20, cores=8),
        because="its Python code holds the lock, so that parallel calls would take turns",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            interleave(source(), map_("decode", ms=1)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        because="inside the function of an interleave it is map-inside-interleave",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), prefetch(), options(autotune__enabled=False), consumer_ms=1, cores=4),
        because="an option forbids tf.data to parallelise it: that is autotune-off",
    ),
    silent(
        pipeline(source(), map_("augment", ms=0.5, random=True), batch(32), consumer_ms=20, cores=8),
        because="the consumer is slower than the map",
    ),
)
