"""serial-map: a map processes one element at a time while cores are idle."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from advisor.model.units import format_share
from advisor.rule import (
    NEAR_SHARE,
    Analysis,
    Call,
    CoreUse,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Pipeline,
    Rejected,
    Rule,
    core_use,
    is_prefetched_by_tensorflow,
    is_rewrite_forbidden,
    is_sequential_stateless_map,
    iterators_of_call,
    label,
    parallel_fix,
    place,
    predict_parallel,
    python_share,
    serial_maps,
    wait_share_of,
)
from advisor.testing import batch, fires, interleave, map_, options, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class SerialMap(Rule):
    """A `map` processes one element at a time while cores are idle.

    ## Why it is slow
    A sequential `map` runs its function on a single thread. A step takes at least the sum of the times of its elements,
    however many cores the machine has.

    ## What the fix does
    It sets `num_parallel_calls=tf.data.AUTOTUNE`, which runs the function on several elements at once. tf.data tunes
    the number and preserves the order. One element per parallel call is held in memory. For a function of about 60 us,
    it cannot be predicted whether a second thread helps: the lower bound of the predicted speedup is then 1.0, and only
    the proof tells. At the end of a pipeline, tf.data adds a prefetch after a sequential map, but none after a parallel
    one, so the fix also writes `.prefetch(tf.data.AUTOTUNE)` there.

    ## When not to
    When the cores are already busy, because parallel calls would only compete for them. When the function runs Python
    code (`py_function`) that holds the interpreter lock: see `python-lock`. A function that draws random numbers draws
    different ones from the same distribution, so a seeded run can no longer be reproduced exactly.

    ## What tf.data already does
    It parallelises stateless top-level maps automatically (`map_parallelization`). It never parallelises stateful
    functions (`tf.random.*`, lookup tables, `py_function`), maps inside the function of an `interleave` or `flat_map`
    (see `map-inside-interleave`), or maps for which an option disables the rewrite (`autotune-off`). A stateful map
    before a `batch` runs fused, as `MapAndBatch` with parallelism 1. The rule uses the executed iterators, so a map
    that already runs in parallel is not reported.
    """

    is_tried_if_uncertain: ClassVar[bool] = True

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further parallel calls have no core to run on. The prediction decides whether they are
    worthwhile."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each map that processes one element at a time and keeps the consumer waiting."""
        pipeline = analysis.main
        if pipeline is None:
            return
        use = core_use(analysis, pipeline)
        if use is None:
            return
        if use.free < self.min_free_cores:
            yield from self._too_busy(pipeline, use)
            return
        is_forbidden = is_rewrite_forbidden(analysis, pipeline)
        for iterator in pipeline.iterators:
            calls = serial_maps(iterator)
            if any(call.nested_in for call in calls):
                continue  # covered by `map-inside-interleave`
            if is_forbidden and is_sequential_stateless_map(iterator):
                continue  # an option is the cause: covered by `autotune-off`
            if calls and not (iterator.python_ns and python_share(analysis, pipeline)):
                yield self._advice(analysis, pipeline, iterator, calls, use)

    def _too_busy(self, pipeline: Pipeline, use: CoreUse) -> Iter[Rejected]:
        """Yield the sequential maps that parallel calls would not help."""
        for iterator in pipeline.iterators:
            calls = serial_maps(iterator)
            if calls and wait_share_of(pipeline, calls[0]) >= NEAR_SHARE and not any(call.nested_in for call in calls):
                yield self.rejected(
                    f"Parallelise {label(calls[0])}",
                    f"no core is free: {use.sentence}",
                    call=calls[0],
                    evidence=(Evidence("free_cores", use.free, "cores"),),
                )

    def _advice(
        self,
        analysis: Analysis,
        pipeline: Pipeline,
        iterator: Iterator,
        calls: tuple[Call, ...],
        use: CoreUse,
    ) -> Finding:
        call = calls[0]
        share, copies = wait_share_of(pipeline, call), iterators_of_call(pipeline, call)
        prediction = predict_parallel(analysis, pipeline, copies, 1, max(1.0, use.usable))
        because = (
            f"{label(call)} at {place(call)} runs as {iterator.name}, one element at a time, and causes "
            f"{format_share(share)} of the wait for input, while {use.sentence}."
        )
        return self.finding(
            f"Parallelise {label(call)}",
            because,
            call=call,
            iterator=iterator,
            prediction=prediction,
            memory_bytes=round(use.usable) * (call.element_bytes or 0),
            fix=parallel_fix(calls, is_prefetched_by_tensorflow(pipeline, iterator)),
            evidence=(
                Evidence("blame_share", share, "share"),
                Evidence("free_cores", use.free, "cores"),
                Evidence("parallelism", 1, "calls"),
            ),
        )


EXAMPLES = (
    fires(
        pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8),
        fixed="ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE)\n",
    ),
    fires(
        pipeline(source(), map_("look_up", ms=2, captured=["HashTableV2"]), prefetch(), consumer_ms=1, cores=4),
        fixed="ds.map(look_up, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(), map_("fetch", ms=5, python=True, sleeps=True), batch(32), consumer_ms=20, cores=8),
        fixed="ds.map(fetch, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(source(), batch(32), map_("augment", ms=5, random=True), consumer_ms=1, cores=4),
        fixed="ds.map(augment, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=10, cores=8),
        because="a stateless map is parallelised automatically",
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
        because="its Python code holds the interpreter lock",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            interleave(source(), map_("decode", ms=1)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        because="a map inside the function of an interleave is covered by map-inside-interleave",
    ),
    silent(
        pipeline(source(), map_("decode", ms=5), prefetch(), options(autotune__enabled=False), consumer_ms=1, cores=4),
        because="an option disables automatic parallelisation: see autotune-off",
    ),
    silent(
        pipeline(source(), map_("augment", ms=0.5, random=True), batch(32), consumer_ms=20, cores=8),
        because="the consumer is slower than the map",
    ),
)
