"""python-lock: functions that run Python code compete for the interpreter lock."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.units import format_ns, format_share
from advisor.rule import (
    Analysis,
    Evidence,
    Finding,
    Iter,
    Iterator,
    Note,
    Prediction,
    Rule,
    batch_after,
    catalog,
    copies_of,
    label,
    place,
    predict_speedup,
    python_share,
    share_of_wait,
)
from advisor.testing import AUTOTUNE, batch, fires, map_, pipeline, prefetch, silent, source

NUMPY_OP = "PyFunc"
"""The op of `tf.numpy_function`. That of `tf.py_function` passes tensors, which are slow to take apart."""
CODE_FOR_BATCHES = """\
def of_rows(*columns):  # for tf.numpy_function in a map behind the batch; function: the one that is called now
    return np.stack([function(*row) for row in zip(*columns)])"""


@dataclass(frozen=True)
class PythonLock(Rule):
    """A transformation runs Python code (`py_function`, `numpy_function`), and the consumer waits for it.

    ## Why it is slow
    Only one thread of a process can run Python at a time. Parallel calls therefore compete for the interpreter lock,
    however many there are, and each call crosses from TensorFlow into Python and back.

    ## What the fix does
    This is advice only. The options that usually help most come first: rewrite the function with TensorFlow ops; if it
    returns the same result in every epoch, compute it once in advance and store the result; call it on whole batches,
    so that NumPy processes many elements at a time (`vectorizable-map` and `scalar-map` do this for NumPy code that is
    known to compute each row on its own); distribute it over several processes. Where the calls of a `tf.numpy_function`
    are short, the report shows how to call the function for the rows of a whole batch, which has the cost of one call
    instead of one per element. With rows of 512 numbers in batches of 64, and a function of 7 us
    per row, the pipeline alone became 5.9 times as fast (5.6 to 8.2, on 2 cores). The results are the same if the
    function returns one array of fixed shape, and depends on nothing but its arguments or on the order of its calls.

    ## When not to
    When the Python code spends its time sleeping, waiting for the network, or in libraries that release the lock.
    Parallel calls help in this case (`serial-map`). The two cases are distinguished by whether the process used a core
    while it was in Python code.

    ## What tf.data already does
    Nothing: it treats Python functions as stateful, so it neither moves nor parallelises them.
    """

    min_python_share: float = 0.5
    """Share of the transformation's own time inside Python. Below a half, other work in it costs more."""
    max_call_ns: int = 150_000
    """Longest mean call of a `tf.numpy_function` for which a call per batch is shown. A function that did nothing took 27 us on
    two cores, in addition to the call of the map around it."""

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
            call_ns = time_per_call(iterator) if batch_after(pipeline, iterator) is not None else None
            is_short = call_ns is not None and call_ns <= self.max_call_ns
            if call_ns is not None and is_short:
                because += (
                    f" A call takes only {format_ns(call_ns)}, and every call has to convert arguments and results and to take "
                    "the lock: one call for a whole batch does that once."
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
                    *((Evidence("time_per_call", call_ns, "ns"),) if call_ns is not None else ()),
                ),
                code=CODE_FOR_BATCHES if is_short else "",
            )


def time_per_call(iterator: Iterator) -> float | None:
    """Mean time of a call of `tf.numpy_function`, in nanoseconds; None if there is none, or another kind of Python code."""
    ops = [op for op in iterator.ops if op.op == NUMPY_OP]
    count, spent_ns = sum(op.count for op in ops), sum(op.total_ns for op in ops)
    return spent_ns / count if count and spent_ns >= iterator.python_ns else None


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
