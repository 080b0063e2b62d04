"""python-lock: functions that run Python code compete for the interpreter lock."""

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
    copies_of,
    label,
    place,
    predict_speedup,
    python_share,
    share_of_wait,
)
from advisor.testing import AUTOTUNE, batch, fires, map_, pipeline, prefetch, silent, source


@dataclass(frozen=True)
class PythonLock(Rule):
    """A transformation runs Python code (`py_function`, `numpy_function`), and the consumer waits for it.

    ## Why it is slow
    Only one thread of a process can run Python at a time. Parallel calls therefore compete for the interpreter lock,
    however many there are, and each call crosses from TensorFlow into Python and back.

    ## What the fix does
    This is advice only. The options that usually help most come first: rewrite the function with TensorFlow ops; if it
    returns the same result in every epoch, compute it once in advance and store the result; call it on whole batches,
    so that NumPy processes many elements at a time; distribute it over several processes.

    ## When not to
    When the Python code spends its time sleeping, waiting for the network, or in libraries that release the lock.
    Parallel calls help in this case (`serial-map`). The two cases are distinguished by whether the process used a core
    while it was in Python code.

    ## What tf.data already does
    Nothing: it treats Python functions as stateful, so it neither moves nor parallelises them.
    """

    min_python_share: float = 0.5
    """Share of the transformation's own time inside Python. Below a half, other work in it costs more."""

    def check(self, analysis: Analysis) -> Iter[Finding | Note]:
        """Yield a finding for each transformation that mostly runs Python while the lock is contended."""
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
            waited = share_of_wait(pipeline, iterator)
            because = (
                f"{label(call)} at {place(call)} causes {format_share(waited)} of the wait for input and "
                f"spends {format_share(min(1.0, share))} of its time in Python. Python ran during "
                f"{format_share(computing)} of the window, on one core at a time. Removing the Python code saves at "
                "most this time."
            )
            left = {it.id: 1 - share for it in copies_of(pipeline, iterator)}
            limit = predict_speedup(analysis, pipeline, left, left)
            yield self.finding(
                f"Take the Python code out of {label(call)}",
                because,
                call=call,
                iterator=iterator,
                # The cost of the replacement is unknown: the gain lies between zero and the whole cost of the Python code.
                prediction=Prediction(limit.value, 1.0, limit.high) if limit else None,
                memory_bytes=None,
                evidence=(
                    Evidence("blame_share", waited, "share"),
                    Evidence("python_time", python, "ns"),
                    Evidence("python_share", computing, "share"),
                ),
            )


def python_time(iterator: Iterator) -> int:
    """Time in Python, in nanoseconds; if the profile contains no ops of the function, the whole time of the function."""
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
        because="the function sleeps or waits, and releases the lock meanwhile",
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
