"""Derives steps without markers: a step lasts from one call of the root to the next call by the same iterator.

In: the root calls of a pipeline (and marked steps, if the script has them).  Out: `Steps`: intervals and the input wait in each,
and their distribution as `StepStats`.

The interval between two iterators (the end of an epoch) is not a step; it contains validation, checkpoints and the like.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.graph.event_nesting import Ints
from advisor.graph.thread_states import RootCalls
from advisor.model.intervals import mean_of, median_of_steps
from advisor.model.pipeline import StepStats

SLOW_CALL_NS = 50_000
"""Calls longer than this (50 us) had to wait for their element; the threshold of the profiler guide."""


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps in chronological order; all columns have the same length, in nanoseconds."""

    start_ns: Ints
    end_ns: Ints
    wait_start_ns: Ints
    """Start of the root call at the beginning of the step. (Marked steps may contain several; `wait_ns` is their union.)"""
    wait_end_ns: Ints
    wait_ns: Ints

    def only(self, chosen: npt.NDArray[np.bool_]) -> Steps:
        """Return the steps for which `chosen` is True."""
        columns = (self.start_ns, self.end_ns, self.wait_start_ns, self.wait_end_ns, self.wait_ns)
        return Steps(*(column[chosen] for column in columns))

    @property
    def span_ns(self) -> int:
        """Sum of the steps' durations."""
        return int((self.end_ns - self.start_ns).sum())

    @property
    def total_wait_ns(self) -> int:
        """Sum of the input wait in all steps."""
        return int(self.wait_ns.sum())


def find_steps(calls: RootCalls) -> Steps:
    """Derive the steps of one pipeline. If several devices call it, a step is one round of calls and its wait their union."""
    rounds = _rounds(calls)
    first, last = rounds[:-1], rounds[1:]
    start, end, ids = calls.start_ns, calls.end_ns, calls.iterator_id
    same = [a for a, b in zip(first, last, strict=True) if ids[a[0]] == ids[b[0]]]
    following = [b for a, b in zip(first, last, strict=True) if ids[a[0]] == ids[b[0]]]
    begin = np.array([start[a].min() for a in same], np.int64)
    finish = np.array([start[b].min() for b in following], np.int64)
    wait_end = np.array([end[a].max() for a in same], np.int64)
    wait_end = np.minimum(wait_end, finish)
    wait = np.array([_union(start[a], np.minimum(end[a], f)) for a, f in zip(same, finish, strict=True)], np.int64)
    return Steps(begin, finish, begin, wait_end, wait)


def _rounds(calls: RootCalls) -> list[Ints]:
    """Rows of each round; a round ends when one of its iterators, or an iterator of a later epoch, is called."""
    ids = calls.iterator_id.tolist()
    last_row = {iterator_id: row for row, iterator_id in enumerate(ids)}
    generation: dict[int, int] = {}
    leader = -1
    for row, iterator_id in enumerate(ids):
        if iterator_id not in generation:
            # the calls of one epoch's devices alternate; the next epoch's iterators start after their last call
            if leader == -1 or row > last_row[leader]:
                leader = iterator_id
            generation[iterator_id] = leader
    rounds: list[Ints] = []
    current: list[int] = []
    seen: set[int] = set()
    for row, iterator_id in enumerate(ids):
        if current and (iterator_id in seen or generation[iterator_id] != generation[ids[current[0]]]):
            rounds.append(np.array(current, np.int64))
            current, seen = [], set()
        current.append(row)
        seen.add(iterator_id)
    if current:
        rounds.append(np.array(current, np.int64))
    return rounds


def _union(start: Ints, end: Ints) -> int:
    """Length of the union of intervals sorted by start."""
    if len(start) == 1:
        return int(max(0, end[0] - start[0]))
    total, reached = 0, int(start[0])
    for begin, finish in zip(start.tolist(), end.tolist(), strict=True):
        total += max(0, finish - max(begin, reached))
        reached = max(reached, finish)
    return total


def use_markers(steps: Steps, marks: list[tuple[int, int]], calls: RootCalls) -> Steps:
    """Use the script's `Trace(..., _r=1)` markers as steps.

    Args:
        steps: The steps derived from the root calls; returned if most markers contain no root call.
        marks: (start, end) of each marked step in nanoseconds.
        calls: The root calls.
    """
    begin = np.array([a for a, _ in marks], np.int64)
    finish = np.array([b for _, b in marks], np.int64)
    rows = zip(np.searchsorted(calls.start_ns, begin), np.searchsorted(calls.start_ns, finish), strict=True)
    inside = [slice(int(a), int(b)) for a, b in rows]
    num_with_calls = sum(part.stop > part.start for part in inside)
    if len(marks) == 1:
        if not num_with_calls or len(steps.start_ns) > 1:  # among several steps, a single mark is of something else
            return steps
    elif num_with_calls < max(2, len(marks) // 2):
        return steps
    wait = np.array(
        [
            _union(calls.start_ns[part], np.minimum(calls.end_ns[part], end)) if part.stop > part.start else 0
            for part, end in zip(inside, finish.tolist(), strict=True)
        ],
        np.int64,
    )
    return Steps(begin, finish, begin, np.minimum(begin + wait, finish), wait)


def union(calls: RootCalls) -> tuple[Ints, Ints]:
    """Return the calls as sorted, disjoint intervals: (starts, ends) in nanoseconds."""
    begins: list[int] = []
    ends: list[int] = []
    for start, end in zip(calls.start_ns.tolist(), calls.end_ns.tolist(), strict=True):
        if ends and start <= ends[-1]:
            ends[-1] = max(ends[-1], end)
        else:
            begins.append(start)
            ends.append(end)
    return np.array(begins, np.int64), np.array(ends, np.int64)


def describe(steps: Steps) -> StepStats | None:
    """Return the distribution of the steps, or None without steps. Confidence intervals: see `advisor.model.intervals`."""
    duration = steps.end_ns - steps.start_ns
    count = len(duration)
    if not count:
        return None
    in_order = duration.tolist()
    shares = steps.wait_ns / np.maximum(duration, 1)
    low, high, stretches = median_of_steps(in_order) or (None, None, 0)
    mean = mean_of(in_order)
    return StepStats(
        count=count,
        median_ns=int(np.median(duration)),
        p95_ns=int(np.percentile(duration, 95)),
        mean_ns=int(duration.mean()),
        low_ns=None if low is None else int(low),
        high_ns=None if high is None else int(high),
        wait_median_ns=int(np.median(steps.wait_ns)),
        wait_mean_ns=int(steps.wait_ns.mean()),
        stretches=stretches,
        mean_error=None if mean is None else mean.error,
        mean_stretches=0 if mean is None else mean.stretches,
        wait_share_low=min(1.0, float(shares.min())),
        wait_share_high=min(1.0, float(shares.max())),
    )
