"""Marked steps that leave the input out: the iterator is advanced between the marks, not inside them.

In: the calls of the consumers' roots and the marked steps.  Out: whether it is so, and a sentence that says what to change.

The profiler guide warns of it: in `for batch in dataset: with Trace("train", step_num=n, _r=1): ...` the wait for the batch is
over before the step begins, and every tool that goes by the marks finds no input time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from advisor.graph.join import Ints
from advisor.graph.thread_states import RootCalls
from advisor.model.units import format_ns, format_share

_MIN_GAPS = 2
"""So many pairs of marked steps must have a call between them: one may be an epoch's end."""


def calls_outside_marks(roots: Iterable[RootCalls], marks: Sequence[tuple[int, int]]) -> RootCalls | None:
    """The root that is called between the marked steps and never inside them; None where there is none.

    `marks`: (start, end) of each marked step in ns, sorted and apart from one another.
    """
    if len(marks) <= _MIN_GAPS:
        return None
    begin = np.array([start for start, _ in marks], np.int64)
    finish = np.array([end for _, end in marks], np.int64)
    found: RootCalls | None = None
    for calls in roots:
        inside = _has_call(calls, begin, finish)
        between = _has_call(calls, finish[:-1], begin[1:])
        if 2 * int(inside.sum()) >= len(inside):
            return None  # the marks fit this pipeline; others may run between them, as a validation does
        if not inside.any() and int(between.sum()) >= max(_MIN_GAPS, len(between) // 2):
            found = calls if found is None or len(calls.start_ns) > len(found.start_ns) else found
    return found


def tell_calls_outside(calls: RootCalls, marks: Sequence[tuple[int, int]]) -> str:
    """What is wrong with the marks, what it hides and how to mend it."""
    first, last = marks[0][1], marks[-1][0]
    chosen = (calls.start_ns >= first) & (calls.start_ns < last)
    wait_ns = int((np.minimum(calls.end_ns[chosen], last) - calls.start_ns[chosen]).sum())
    per_step_ns = wait_ns / (len(marks) - 1)
    share = wait_ns / max(1, last - first)
    return (
        "The marked steps (Trace with step_num or _r=1) leave the input out: every batch is taken before its step begins, so "
        f"{format_ns(per_step_ns)} a step ({format_share(share)} of the time) spent in the iterator are in no marked step, and "
        "TensorBoard and XProf do not show them. Here a step runs from one batch to the next instead. Take the batch inside: "
        "with tf.profiler.experimental.Trace('train', step_num=step, _r=1): batch = next(iterator); train_step(batch)."
    )


def _has_call(calls: RootCalls, begin: Ints, finish: Ints) -> npt.NDArray[np.bool_]:
    """For each interval whether a call begins in it."""
    return np.searchsorted(calls.start_ns, finish) > np.searchsorted(calls.start_ns, begin)
