"""map-inside-interleave: a costly map inside another transformation's function processes one element at a time."""

from __future__ import annotations

from dataclasses import dataclass, replace

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
    copies_of,
    core_use,
    hoist,
    label,
    parallel_fix,
    place,
    predict_parallel,
    python_share,
    serial_maps,
    share_of_wait,
)
from advisor.testing import AUTOTUNE as TUNED
from advisor.testing import batch, fires, flat_map, interleave, map_, pipeline, prefetch, shuffle, silent, source


@dataclass(frozen=True)
class MapInsideInterleave(Rule):
    """A `map` inside the function of an `interleave` or `flat_map` runs one element at a time while cores are idle.

    ## Why it is slow
    tf.data parallelises stateless maps automatically, but not those inside another transformation's function. Such a
    map processes one element at a time for each open input, and a `flat_map` has one open input.

    ## What the fix does
    It moves the map out of the function, directly after the `interleave` or `flat_map`, with
    `num_parallel_calls=tf.data.AUTOTUNE`. Both pass on elements as they are, so the map computes the same elements in
    the same order outside; a single map is tuned instead of one per input, and it does not drain at the end of each
    input. Maps that follow it there move too; a `prefetch` after it stays. A function that is defined inside the outer
    one moves before it. A `batch` after the `interleave` lets `vectorizable-map` go further.

    The map stays inside if another call there works on its results (`batch`, `shuffle`, `cache`, `enumerate`,
    `filter`), if its function uses a value of the outer function, such as the name of the file, if it reads state or
    runs Python code, or if the text does not show that it means the same outside. Then the fix sets
    `num_parallel_calls=tf.data.AUTOTUNE` on the inner map, and the finding says why. If the lower bound of the
    predicted speedup is 1.0, the fix is tried only on request.

    ## When not to
    When the cores are already busy, or when the function runs Python code that holds the interpreter lock
    (`python-lock`). A function that draws random numbers draws different ones from the same distribution.

    ## What tf.data already does
    Nothing: it rewrites only the outermost chain of transformations.
    """

    min_free_cores: float = 0.25
    """Cores available to the process in addition, averaged over the window: idle cores plus half of those used by other
    processes. With fewer, further parallel calls have no core to run on. The prediction decides whether they are
    worthwhile."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note | Rejected]:
        """Yield a finding for each map inside a function that processes one element at a time and is waited for."""
        pipeline = analysis.main
        use = core_use(analysis, pipeline) if pipeline else None
        if pipeline is None or use is None:
            return
        for iterator in pipeline.iterators:
            calls = tuple(call for call in serial_maps(iterator) if call.nested_in is not None)
            if not calls:
                continue
            has_python = bool(iterator.python_ns and python_share(analysis, pipeline))
            if use.free >= self.min_free_cores and not has_python:
                yield self._advice(analysis, pipeline, iterator, calls, use)
            elif share_of_wait(pipeline, iterator) >= NEAR_SHARE:
                lock = "its function runs Python code, and one thread at a time holds the interpreter lock"
                yield self.rejected(
                    f"Parallelise {label(calls[0])}",
                    lock if has_python else f"no core is free for further calls: {use.sentence}",
                    call=calls[0],
                    evidence=(
                        Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                        Evidence("free_cores", use.free, "cores"),
                    ),
                )

    def _advice(
        self, analysis: Analysis, pipeline: Pipeline, iterator: Iterator, calls: tuple[Call, ...], use: CoreUse
    ) -> Finding:
        call = calls[0]
        prediction = predict_parallel(analysis, pipeline, copies_of(pipeline, iterator), 1, max(1.0, use.usable))
        outer = next((other for other in analysis.calls if other.id == call.nested_in), None)
        inside = f" inside {outer.method} at {place(outer)}" if outer else ""
        because = (
            f"{label(call)} at {place(call)}{inside} runs as {iterator.name}, one element at a time, and causes "
            f"{format_share(share_of_wait(pipeline, iterator))} of the wait for input, while {use.sentence}."
        )
        moved = hoist(analysis, call) if len(calls) == 1 else None
        staying = self.finding(
            f"Parallelise {label(call)}",
            because + (f" It stays inside, because {moved.reason}." if moved is not None and moved.reason else ""),
            call=call,
            iterator=iterator,
            prediction=prediction,
            memory_bytes=round(use.usable) * (call.element_bytes or 0),
            fix=parallel_fix(calls),
            evidence=(
                Evidence("blame_share", share_of_wait(pipeline, iterator), "share"),
                Evidence("free_cores", use.free, "cores"),
                Evidence("parallelism", 1, "calls"),
            ),
        )
        if moved is None or not moved.edits or outer is None or staying.fix is None:
            return staying
        return replace(
            staying,
            title=f"Move {label(call)} out of {outer.method}, after it, in parallel",
            fix=moved.fix(is_auto=staying.fix.is_auto),
            otherwise=replace(staying, because=f"{because} It stays inside."),
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
        fixed="ds = (\n    ds.interleave(lambda file: tf.data.TFRecordDataset(files), cycle_length=4)\n"
        "    .map(decode, num_parallel_calls=tf.data.AUTOTUNE)\n)\n",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=8), flat_map(source(), map_("decode", ms=1)), batch(32), consumer_ms=5, cores=4
        ),
        fixed="ds = (\n    ds.flat_map(lambda file: tf.data.TFRecordDataset(files))\n"
        "    .map(decode, num_parallel_calls=tf.data.AUTOTUNE)\n)\n",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(), map_("decode", ms=1), map_("augment", ms=0.01, random=True), prefetch(1)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        fixed="ds = (\n    ds.flat_map(lambda file: tf.data.TFRecordDataset(files).prefetch(1))\n"
        "    .map(decode, num_parallel_calls=tf.data.AUTOTUNE)\n    .map(augment)\n)\n",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(), map_("decode", ms=1), shuffle()),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        fixed="tf.data.TFRecordDataset(files)\n    .map(decode, num_parallel_calls=tf.data.AUTOTUNE)\n    .shuffle(1000)\n)\n",
    ),
    fires(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(), map_("decode", ms=1, uses_enclosing=True)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        fixed="tf.data.TFRecordDataset(files).map(\n        decode, num_parallel_calls=tf.data.AUTOTUNE\n    )\n)\n",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source(), map_("decode", ms=1, calls=TUNED)),
            batch(32),
            consumer_ms=5,
            cores=4,
        ),
        because="the map is already parallel",
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
        because="the consumer waits for the records",
    ),
    silent(
        pipeline(
            source("ListFiles", elements=8),
            flat_map(source()),
            map_("augment", ms=1, random=True),
            batch(32),
            consumer_ms=5,
        ),
        because="the map is outside the function: see serial-map",
    ),
)
