"""python-lock: functions that run Python wait for each other at the interpreter's lock."""

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
    Prediction,
    Rule,
    catalog,
    label,
    place,
    predict_speedup,
    python_share,
)
from advisor.testing import AUTOTUNE, batch, fires, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class PythonLock(Rule):
    """A transformation runs Python code (`py_function`, `numpy_function`), and the consumer waits for it.

    ## Why it is slow
    Only one thread at a time runs Python in a process. However many parallel calls there are, they take turns at the
    interpreter's lock, and each call crosses from TensorFlow into Python and back.

    ## What the fix does
    The rule advises, it changes nothing. In order of what usually helps most: write the function in TensorFlow ops; if it gives
    the same result in every epoch, do it once beforehand and store the result; call it on whole batches, so that NumPy works on
    many elements at a time; give it to several processes.

    ## When not to
    When the Python code spends its time in sleeping, in the network or in libraries that release the lock: parallel calls help
    then (`serial-map`). The rule looks at whether the process used a core for the time that it spent in Python.

    ## What tf.data already does
    Nothing here: it takes Python functions for stateful, runs them where they stand and never in parallel by itself.
    """

    min_python_share: float = 0.5
    """Share of the transformation's own time inside Python. Below a half, something else in it costs more."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """A finding for each transformation that mostly runs Python while the lock is contended."""
        pipeline = analysis.main
        if pipeline is None:
            return
        computing = python_share(analysis, pipeline)
        if not computing:
            return
        for iterator in pipeline.iterators:
            call = next((call for call in iterator.calls if call.function and call.function.python_ops), None)
            python = python_time(iterator)
            share = python / iterator.busy_ns if iterator.busy_ns else 0.0
            if catalog.base_type(iterator.name) == "Generator" or call is None or share < self.min_python_share:
                continue
            because = (
                f"{label(call)} at {place(call)} causes {format_share(iterator.blame_share)} of the wait for input and "
                f"spends {format_share(min(1.0, share))} of its time in Python, which ran {format_share(computing)} of "
                "the window, on one core at a time. Without Python it can save at most that."
            )
            limit = predict_speedup(analysis, pipeline, {iterator.id: 1 - share}, {iterator.id: 1 - share})
            yield self.finding(
                f"Take the Python code out of {label(call)}",
                because,
                call=call,
                iterator=iterator,
                # What replaces it is not known, so its cost is not either: the gain lies between nothing and all of it.
                prediction=Prediction(limit.value, 1.0, limit.high) if limit else None,
                memory_bytes=None,
                evidence=(
                    Evidence("blame_share", iterator.blame_share, "share"),
                    Evidence("python_time", python, "ns"),
                    Evidence("python_share", computing, "share"),
                ),
            )


def python_time(iterator: Iterator) -> int:
    """Time in Python; where the profile has no ops of the function, all of the function's."""
    return iterator.python_ns if iterator.python_ns or iterator.ops else iterator.function_ns


EXAMPLES = (
    fires(pipeline(source(), map_("tokenize", ms=2, python=True), batch(32), consumer_ms=20, cores=8)),
    fires(
        pipeline(
            source(),
            map_("tokenize", ms=2, python=True, calls=AUTOTUNE),
            batch(32),
            prefetch(),
            consumer_ms=20,
            cores=8,
        )
    ),
    silent(
        pipeline(source(), map_("fetch", ms=2, python=True, sleeps=True), batch(32), consumer_ms=20, cores=8),
        because="the function sleeps or waits for something, and the lock is free meanwhile",
    ),
    silent(
        pipeline(source(), map_("tokenize", ms=0.1, python=True), batch(32), consumer_ms=20, cores=8),
        because="the consumer is slower than the Python code",
    ),
    silent(
        pipeline(source(), map_("augment", ms=2, random=True), batch(32), consumer_ms=20, cores=8),
        because="the map runs no Python",
    ),
)
