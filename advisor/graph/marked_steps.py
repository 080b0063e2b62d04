"""Detects marked steps that exclude the input: the iterator is advanced between the marks instead of inside them.

In: the calls of the consumers' roots and the marked steps.  Out: the affected calls, and a sentence that says what to change.

The profiler guide warns about this: in `for batch in dataset: with Trace("train", step_num=n, _r=1): ...` the wait for the
batch ends before the step begins, so every tool that relies on the marks reports no input time.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import numpy as np
import numpy.typing as npt

from advisor.graph.event_nesting import Ints
from advisor.graph.thread_states import RootCalls
from advisor.host.calibration.analysis import MIN_GAPS
from advisor.model.units import format_ns, format_share


def calls_outside_marks(roots: Iterable[RootCalls], marks: Sequence[tuple[int, int]]) -> RootCalls | None:
    """Return the calls of the root that is called between the marked steps and never inside them.

    Args:
        roots: The calls of each consumed root.
        marks: (start, end) of each marked step in nanoseconds, sorted and disjoint.

    Returns:
        The calls, or None if no root is called only between the marks.
    """
    if len(marks) <= MIN_GAPS.value:
        return None
    begin = np.array([start for start, _ in marks], np.int64)
    finish = np.array([end for _, end in marks], np.int64)
    outside: RootCalls | None = None
    for calls in roots:
        inside = _has_call(calls, begin, finish)
        between = _has_call(calls, finish[:-1], begin[1:])
        if 2 * int(inside.sum()) >= len(inside):
            return None  # the marks fit this pipeline; another one, such as a validation set, may run between them
        if not inside.any() and int(between.sum()) >= max(MIN_GAPS.value, len(between) // 2):
            outside = calls if outside is None or len(calls.start_ns) > len(outside.start_ns) else outside
    return outside


def tell_calls_outside(calls: RootCalls, marks: Sequence[tuple[int, int]]) -> str:
    """Explain what the marks exclude, how much time that hides, and how to fix it."""
    first, last = marks[0][1], marks[-1][0]
    chosen = (calls.start_ns >= first) & (calls.start_ns < last)
    wait_ns = int((np.minimum(calls.end_ns[chosen], last) - calls.start_ns[chosen]).sum())
    per_step_ns = wait_ns / (len(marks) - 1)
    share = wait_ns / max(1, last - first)
    return (
        "The marked steps (Trace with step_num or _r=1) exclude the input: every batch is fetched before its step begins, so "
        f"{format_ns(per_step_ns)} per step ({format_share(share)} of the time) in the iterator is outside all marked steps, and "
        "TensorBoard and XProf do not show it. This report measures steps from one batch to the next instead. Fetch the batch "
        "inside: with tf.profiler.experimental.Trace('train', step_num=step, _r=1): batch = next(iterator); train_step(batch)."
    )


def _has_call(calls: RootCalls, begin: Ints, finish: Ints) -> npt.NDArray[np.bool_]:
    """Whether a call begins in each interval."""
    return np.searchsorted(calls.start_ns, finish) > np.searchsorted(calls.start_ns, begin)
