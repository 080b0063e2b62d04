"""Counting threads per group: every thread is counted at every moment, in blocks of any size."""

from __future__ import annotations

from bisect import bisect_right
from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.graph.thread_counts import NO_GROUP, Block, Groups, Moments
from advisor.graph.thread_states import Timeline

NUM_ACTIVITIES = 5
THREADS = st.lists(
    st.lists(st.tuples(st.integers(0, 60), st.integers(-1, NUM_ACTIVITIES - 1)), max_size=12).map(
        lambda changes: sorted(changes, key=lambda change: change[0])
    ),
    max_size=6,
)
GROUPS = Groups(np.array([0, 1, 1, NO_GROUP, 2], np.int32), np.array([3, 3, NO_GROUP, NO_GROUP], np.int32))
"""Group 3 contains groups 0 and 1."""


def timeline_of(threads: list[list[tuple[int, int]]]) -> Timeline:
    times = [np.array([time for time, _ in changes], np.int64) for changes in threads]
    codes = [np.array([code for _, code in changes], np.int32) for changes in threads]
    return Timeline([], times, codes, [], {}, frozenset(), {})


def counted(moments: Moments) -> Counter[tuple[int, int]]:
    """(group, number of threads) -> nanoseconds."""
    duration_of: Counter[tuple[int, int]] = Counter()
    for block in moments:
        assert (block.duration_ns > 0).all()
        for group, present in block.presences.items():
            assert len(present.moments) == len(present.threads) > 0
            assert (np.diff(present.moments) > 0).all()
            assert present.moments[-1] < len(block.duration_ns)
            for threads, duration in zip(present.threads, block.duration_ns[present.moments], strict=True):
                duration_of[group, int(threads)] += int(duration)
    return duration_of


def counted_by_hand(threads: list[list[tuple[int, int]]], bounds: list[int]) -> Counter[tuple[int, int]]:
    """The same, nanosecond by nanosecond; between the first and the last change."""
    calls_in: Counter[tuple[int, int]] = Counter()
    for time in range(60):
        if bisect_right(bounds, time) % 2:
            groups: list[int] = []
            for changes in threads:
                last = bisect_right([at for at, _ in changes], time) - 1
                activity = changes[last][1] if last >= 0 else -1
                group = int(GROUPS.of_activity[activity]) if activity >= 0 else NO_GROUP
                groups += [group, 3] if group in (0, 1) else [group]
            calls_in.update((group, number) for group, number in Counter(groups).items() if group != NO_GROUP)
    return calls_in


@given(
    threads=THREADS,
    bounds=st.lists(st.integers(0, 60), min_size=2, max_size=8, unique=True).filter(lambda b: len(b) % 2 == 0),
    most_counts=st.sampled_from([1, 10, 40, 1000]),
)
def test_every_thread_is_counted_at_every_moment(
    threads: list[list[tuple[int, int]]], bounds: list[int], most_counts: int
) -> None:
    bounds = sorted(bounds)
    closed = [[*changes, (60, -1)] for changes in threads]  # after the last change of all threads there is no moment
    intervals = (np.array(bounds[::2], np.int64), np.array(bounds[1::2], np.int64))
    assert counted(Moments(timeline_of(closed), GROUPS, intervals, most_counts)) == counted_by_hand(closed, bounds)


@pytest.mark.long
@pytest.mark.parametrize("most_counts", [1, 100, 100_000])
def test_a_block_holds_no_more_counts_than_it_may(most_counts: int) -> None:
    random = np.random.default_rng(0)
    threads = [
        list(zip(range(0, 4000, 2 + thread), random.integers(-1, NUM_ACTIVITIES, 2000).tolist(), strict=False))
        for thread in range(20)
    ]
    moments = Moments(timeline_of(threads), GROUPS, (np.array([0]), np.array([4000])), most_counts)
    sizes = [sum(len(present.moments) for present in block.presences.values()) for block in moments]
    assert max(sizes) <= max(most_counts, 4)
    assert len(sizes) > 1 or most_counts == 100_000


@given(first=st.sets(st.integers(0, 200)), second=st.sets(st.integers(0, 200)), size=st.sampled_from([201, 100_000]))
def test_common_moments(first: set[int], second: set[int], size: int) -> None:
    block = Block(np.ones(size, np.int64), {})
    left, right = (np.array(sorted(side), np.int32) for side in (first, second))
    rows, others = block.common(left, right)
    assert left[rows].tolist() == right[others].tolist() == sorted(first & second)


def test_without_threads_or_intervals_there_is_no_moment() -> None:
    none = np.zeros(0, np.int64)
    assert not list(Moments(timeline_of([]), GROUPS, (np.array([0]), np.array([9]))))
    assert not list(Moments(timeline_of([[(1, 0), (5, -1)]]), GROUPS, (none, none)))
    assert not list(Moments(timeline_of([[(1, 3), (5, -1)]]), GROUPS, (np.array([0]), np.array([9]))))
