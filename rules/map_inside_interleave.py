"""map-inside-interleave: a costly map inside another transformation's function runs one element at a time."""

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
    label,
    parallel_fix,
    place,
    predict_parallel,
    python_share,
    serial_maps,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, flat_map, interleave, map_, pipeline, silent, source


@dataclass(frozen=True)
class MapInsideInterleave(Rule):
    """A `map` in the function of an `interleave` or `flat_map` handles one element at a time while cores are idle.

    ## Why it is slow
    tf.data makes stateless maps parallel by itself, but not those inside another transformation's function. Such a map works on
    one element at a time for each input that is open, and a `flat_map` has one open.

    ## What the fix does
    `num_parallel_calls=tf.data.AUTOTUNE` on the inner map: the elements come in the same order. Or, by hand, the map moves
    behind the `interleave`, where tf.data makes it parallel by itself and tunes one map instead of one per input. Where the
    predicted range begins at 1.0 the fix is tried only when asked for.

    ## When not to
    When the cores are busy already, or when the function runs Python and holds Python's lock (`python-lock`). A function that
    draws random numbers draws others than before, of the same distribution.

    ## What tf.data already does
    Nothing here: it rewrites the outermost chain of transformations only.
    """

    min_free_cores: float = 0.25
    """Cores that the process could have in addition, on average over the window: what is idle and a half of what other
    processes use. With less, more calls have nowhere to run; how much more is worth is for the prediction to say."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each map made inside a function that runs one element at a time and is waited for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None or use.free < self.min_free_cores:
            return
        for iterator in pipeline.iterators:
            calls = tuple(each for each in serial_maps(iterator) if each.nested_in is not None)
            if calls and not (iterator.python_ns and python_share(analysis, pipeline)):
                yield self._advice(analysis, pipeline, iterator, calls, use)

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, calls: tuple[Call, ...], use: CoreUse
    ) -> Finding:
        call = calls[0]
        prediction = predict_parallel(analysis, pipeline, [iterator], 1, max(1.0, use.usable))
        outer = next((each for each in analysis.calls if each.id == call.nested_in), None)
        inside = f" inside {outer.method} at {place(outer)}" if outer else ""
        return self.finding(
            f"Parallelise {label(call)}",
            f"{label(call)} at {place(call)}{inside} runs as {iterator.name}, one element at a time, and causes "
            f"{format_share(iterator.blame_share)} of the wait for input, while {use.sentence}.",
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
        pipeline(
            source("ListFiles", elements=8),
            interleave(source(), map_("decode", ms=1), cycle_length=4),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        fixed="tf.data.TFRecordDataset(files).map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=8), flat_map(source(), map_("decode", ms=1)), batch(32), consumer_ms=5, cores=4
        ),
        fixed="tf.data.TFRecordDataset(files).map(decode, num_parallel_calls=tf.data.AUTOTUNE)",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(), map_("decode", ms=1, calls=TUNED)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        because="it is parallel",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(), map_("decode", ms=1)),
            batch(32),
            consumer_ms=5,
            cores=4,
            busy_cores=3,
        ),
        because="the cores are busy",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(ms=1), map_("parse", ms=0.02)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        because="the records are what the consumer waits for",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source()),
            map_("augment", ms=1, random=True),
            batch(32),
            consumer_ms=5,
        ),
        because="the map stands outside: that is serial-map",
    ),
)
