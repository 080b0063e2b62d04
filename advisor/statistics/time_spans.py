"""Arithmetic on columns of intervals: unions, coverage, self times.

In: columns of starts and ends in one unit.  Out: columns. Except for sorting, all functions take linear time.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
import numpy.typing as npt

from advisor.model.activity import HostActivity
from advisor.profile.nesting import nest

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Union:
    """Disjoint intervals in chronological order."""

    start: Ints
    end: Ints

    @property
    def length(self) -> int:
        """Return the total covered time."""
        return int((self.end - self.start).sum())

    def covered(self, start: Ints, end: Ints) -> Ints:
        """Return the covered part of each given interval."""
        return self._covered_until(end) - self._covered_until(start)

    def _covered_until(self, time: Ints) -> Ints:
        if not len(self.start):
            return np.zeros(len(time), np.int64)
        before = np.concatenate([[0], np.cumsum(self.end - self.start)])
        row = np.searchsorted(self.start, time, side="right") - 1
        inside = np.minimum(time, self.end[np.maximum(row, 0)]) - self.start[np.maximum(row, 0)]
        return np.where(row >= 0, before[np.maximum(row, 0)] + inside, 0)


def unite(start: Ints, end: Ints) -> Union:
    """Compute the union of intervals in any order; empty intervals are dropped."""
    real = end > start
    start, end = start[real], end[real]
    if not len(start):
        return Union(np.zeros(0, np.int64), np.zeros(0, np.int64))
    order = np.argsort(start, kind="stable")
    start, end = start[order], end[order]
    reached = np.maximum.accumulate(end)
    opens = np.concatenate([[True], start[1:] > reached[:-1]])
    closes = np.concatenate([opens[1:], [True]])
    return Union(start[opens], reached[closes])


def join(one: Union, other: Union) -> Union:
    """Return the union of two sets of intervals."""
    return unite(np.concatenate([one.start, other.start]), np.concatenate([one.end, other.end]))


def outermost(thread: Rows, start: Ints, end: Ints) -> npt.NDArray[np.bool_]:
    """Select the intervals that begin inside no earlier one of their thread.

    Args:
        thread: Number of the thread of each interval; rows are sorted by it, then by start, longer intervals first.
        start: Starts, in any unit of time.
        end: Ends, in the same unit.

    Returns:
        True for each interval that is selected.
    """
    if not len(start):
        return np.zeros(0, np.bool_)
    shift = thread * (int(end.max() - start.min()) + 1) - start.min()
    reached = np.maximum.accumulate(end + shift)
    return np.concatenate([[True], (start + shift)[1:] >= reached[:-1]])


def outermost_rows(activity: HostActivity, rows: Ints) -> Ints:
    """Select the events that begin inside no other one of `rows` on their thread."""
    start = activity.start_ps[rows]
    return rows[outermost(activity.thread[rows].astype(np.int64), start, start + activity.duration_ps[rows])]


def self_times(thread: Rows, start: Ints, duration: Ints) -> Ints:
    """Return the durations minus those of the intervals directly inside, thread by thread.

    Rows are sorted by thread, then start, longer first. An interval that starts inside another one and ends after it counts as
    inside it. Self times are never negative.

    Args:
        thread: Number of the thread of each interval.
        start: Starts, in any unit of time.
        duration: Durations, in the same unit, in which the result is, too.
    """
    own = duration.copy()
    end = start + duration
    if len(start) < 2:
        return own
    # if no interval begins inside an earlier one, self times are the durations
    is_outermost = outermost(thread, start, end)
    if is_outermost.all():
        return own
    inner = np.zeros(len(start), np.int64)
    bounds = [0, *(np.flatnonzero(np.diff(thread)) + 1).tolist(), len(start)]
    for first, last in pairwise(bounds):
        parent = nest(start[first:last], end[first:last])
        rows = np.flatnonzero(parent >= 0)
        np.add.at(inner, first + parent[rows], duration[first + rows])
    left: Ints = np.maximum(own - inner, 0)
    return left
