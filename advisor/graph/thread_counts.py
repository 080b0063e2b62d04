"""Counts the threads in each activity at every moment of a wait, in blocks of bounded size.

In: a `Timeline`, the group of each of its activities, and the intervals that are waited for.  Out: `Block`s of consecutive
moments; for each group, the moments at which threads are in it, and how many.

A moment lies between two consecutive boundaries, which are the instants at which a thread changes its group. A change of one
thread changes two counts, so the counts of all moments follow from one pass over the boundaries, however many threads there
are. Of each group only the moments at which it has threads are stored, so the cost of a moment depends on the number of
groups that are occupied in it. That number cannot exceed the number of groups, which is fixed by the pipeline.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from advisor.graph.event_nesting import Ints, Rows
from advisor.graph.thread_states import Timeline

NO_GROUP = -1
"""Group of activities that do not count, and larger group of groups that belong to none."""
MOST_COUNTS = 2**20
"""Maximum number of counts in a block, which bounds its memory (about 16 bytes per count)."""


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """What is counted."""

    of_activity: Rows
    """The group of each activity of the timeline; NO_GROUP for those that do not count."""
    larger: Rows
    """For each group a larger one that contains it and is counted too, or NO_GROUP."""


@dataclass(frozen=True, slots=True, eq=False)
class Presence:
    """The moments of a block at which at least one thread is in a group. Both columns have the same length."""

    moments: Rows
    """Positions in `Block.duration_ns`, increasing."""
    threads: Rows
    """How many threads are in the group."""


_ABSENT = Presence(np.zeros(0, np.int32), np.zeros(0, np.int32))


@dataclass(frozen=True, slots=True, eq=False)
class Block:
    """Consecutive moments inside the intervals."""

    duration_ns: Ints
    """For each moment its duration inside the intervals, at least 1."""
    presences: dict[int, Presence]
    """By group; without those that no thread is in."""

    def presence(self, group: int) -> Presence:
        """Return when threads are in a group."""
        return self.presences.get(group, _ABSENT)

    def common(self, first: Rows, second: Rows) -> tuple[npt.NDArray[np.intp], npt.NDArray[np.intp]]:
        """Return the rows of `first` and the rows of `second` that hold the same moment. Both are increasing."""
        if len(first) > len(second):
            rows, others = self.common(second, first)
            return others, rows
        if not len(first):
            return np.zeros(0, np.intp), np.zeros(0, np.intp)
        if len(first) * 16 < len(self.duration_ns):  # few: a search is cheaper than a table of all moments
            row = np.searchsorted(second, first)
            row[row == len(second)] = 0
            rows = np.flatnonzero(second[row] == first)
        else:
            table = np.full(len(self.duration_ns), -1, np.intp)
            table[second] = np.arange(len(second))
            row = table[first]
            rows = np.flatnonzero(row >= 0)
        return rows, row[rows]


class Moments:
    """All moments of a wait; iterating over them yields the blocks, any number of times.

    Memory: three columns over the boundaries of all threads, and one block at a time.

    Args:
        timeline: The activities of all threads.
        groups: What is counted.
        intervals: (starts, ends) in nanoseconds, sorted and disjoint; time outside them is ignored.
        most_counts: Maximum number of counts in a block.
    """

    def __init__(
        self, timeline: Timeline, groups: Groups, intervals: tuple[Ints, Ints], most_counts: int = MOST_COUNTS
    ) -> None:
        self._larger = np.append(groups.larger, np.int32(NO_GROUP))
        lengths = [len(times) for times in timeline.times if len(times)]
        if not lengths or not len(intervals[0]):
            self._duration_ns, self._before, self._after = np.zeros(0, np.int64), _ABSENT.moments, _ABSENT.moments
        else:
            group_of = np.append(groups.of_activity, np.int32(NO_GROUP))  # code -1, no activity, is the last element
            after = group_of[np.concatenate(timeline.codes)]
            before = np.concatenate([[NO_GROUP], after[:-1]]).astype(np.int32)
            before[np.cumsum(lengths) - lengths] = NO_GROUP
            changed = np.flatnonzero(before != after)
            times = np.concatenate(timeline.times)[changed]
            order = np.argsort(times, kind="stable")
            times, changed = times[order], changed[order]
            self._duration_ns = _overlap(times, np.append(times[1:], times[-1:]), intervals)
            self._before, self._after = before[changed], after[changed]
        # a thread is in at most one group and the larger one that contains it
        most_groups = max(1, min(len(groups.larger), 2 * len(lengths)))
        self._block_length = max(1, most_counts // most_groups)

    def __iter__(self) -> Iterator[Block]:
        held = np.zeros(len(self._larger) - 1, np.int32)
        for first in range(0, len(self._duration_ns), self._block_length):
            part = slice(first, first + self._block_length)
            is_moment = self._duration_ns[part] > 0
            # boundaries between the same two moments have the same position
            position = np.cumsum(is_moment, dtype=np.int32) - is_moment
            before, after = self._before[part], self._after[part]
            larger_before, larger_after = self._larger[before], self._larger[after]
            stays = larger_before == larger_after
            larger_before[stays] = larger_after[stays] = NO_GROUP
            # one row per boundary, so that the changes of each group stay in chronological order
            group = np.stack([before, after, larger_before, larger_after], axis=1).reshape(-1)
            rows = np.flatnonzero(group != NO_GROUP).astype(np.int32)
            group, position, change = group[rows], position[rows >> 2], 2 * (rows & 1) - 1
            held_after = held + np.bincount(group, weights=change, minlength=len(held)).astype(np.int32)
            if is_moment.any():
                yield _block(self._duration_ns[part][is_moment], held, held_after, group, position, change)
            held = held_after


def _block(duration_ns: Ints, held: Rows, held_after: Rows, group: Rows, position: Rows, change: Rows) -> Block:
    """Make a block from the changes inside it.

    Args:
        duration_ns: The duration of each moment.
        held: The number of threads in each group at the start.
        held_after: The same at the end.
        group: The group that each change is about.
        position: The first moment that each change applies to, in increasing order.
        change: What is added to the number of threads in the group.
    """
    opening, closing = np.flatnonzero(held), np.flatnonzero(held_after)
    # from nothing to nothing: the changes of every group add up to 0, so one running sum serves all groups
    group = np.concatenate([opening, group, closing]).astype(np.int16 if len(held) < 2**15 else np.int32)
    bounds = np.zeros(len(opening), np.int32), np.full(len(closing), len(duration_ns), np.int32)
    position = np.concatenate([bounds[0], position, bounds[1]])
    change = np.concatenate([held[opening], change, -held_after[closing]])
    order = np.argsort(group, kind="stable")  # of 16-bit integers in linear time
    group, position = group[order], position[order]
    threads = np.cumsum(change[order], dtype=np.int32)
    length = np.diff(position, append=position[-1:])
    runs = np.flatnonzero((threads > 0) & (length > 0))
    group, length = group[runs], length[runs]
    start = np.cumsum(length, dtype=np.int32) - length
    moments = np.repeat(position[runs] - start, length)
    moments += np.arange(len(moments), dtype=np.int32)
    repeated = np.repeat(threads[runs], length)
    first_run = np.flatnonzero(np.diff(group, prepend=group.dtype.type(-1)))
    first = np.append(start[first_run], len(moments)).tolist()
    presences = {
        number: Presence(moments[first[row] : first[row + 1]], repeated[first[row] : first[row + 1]])
        for row, number in enumerate(group[first_run].tolist())
    }
    return Block(duration_ns, presences)


def _overlap(start: Ints, end: Ints, intervals: tuple[Ints, Ints]) -> Ints:
    """The length of the part of each [start, end) that lies inside the intervals."""
    begin, finish = intervals
    covered = np.concatenate([[0], np.cumsum(finish - begin)]).astype(np.int64)

    def before(moment: Ints) -> Ints:
        index = np.searchsorted(begin, moment, side="right")
        inside = np.where(index > 0, np.minimum(moment, finish[index - 1]) - begin[index - 1], 0)
        whole: npt.NDArray[np.int64] = covered[np.maximum(index - 1, 0)] + inside
        return np.where(index > 0, whole, 0)

    return before(end) - before(start)
