from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from advisor.statistics.time_spans import join, outermost, self_times, unite

SPANS = st.lists(st.tuples(st.integers(0, 60), st.integers(0, 20)).map(lambda pair: (pair[0], sum(pair))), max_size=25)


def columns(spans):
    array = np.array(spans, np.int64).reshape(-1, 2)
    return array[:, 0], array[:, 1]


def moments(spans):
    return {moment for start, end in spans for moment in range(start, end)}


@given(SPANS)
def test_a_union_covers_each_moment_once(spans):
    united = unite(*columns(spans))
    assert united.length == len(moments(spans))
    assert (united.start[1:] > united.end[:-1]).all()


@given(SPANS, SPANS)
def test_covered_time_is_that_of_shared_moments(spans, asked):
    start, end = columns(asked)
    covered = unite(*columns(spans)).covered(start, end)
    assert covered.tolist() == [len(moments(spans) & set(range(a, b))) for a, b in asked]


@given(SPANS, SPANS)
def test_joined_unions_cover_what_either_covers(one, other):
    assert join(unite(*columns(one)), unite(*columns(other))).length == len(moments([*one, *other]))


@st.composite
def nested_threads(draw):
    """(thread, start, duration) of well nested intervals, sorted as the reader sorts them."""
    rows = []

    def fill(thread, start, end, depth):
        position = start
        while position < end and draw(st.booleans()):
            begin = draw(st.integers(position, end - 1))
            finish = draw(st.integers(begin + 1, end))
            rows.append((thread, begin, finish))
            if depth:
                fill(thread, begin, finish, depth - 1)
            position = finish

    for thread in range(draw(st.integers(1, 3))):
        fill(thread, 0, 40, 2)
    return sorted(rows, key=lambda row: (row[0], row[1], -row[2]))


@given(nested_threads())
def test_self_times_of_a_thread_add_up_to_what_it_was_busy(rows):
    array = np.array(rows, np.int64).reshape(-1, 3)
    thread, start, end = array.T
    own = self_times(thread, start, end - start)
    assert (own >= 0).all()
    for number in set(thread.tolist()):
        mine = [(a, b) for t, a, b in rows if t == number]
        assert own[thread == number].sum() == len(moments(mine))


def test_self_time_is_less_the_direct_children_alone():
    thread = np.array([0, 0, 0, 1])
    start = np.array([0, 1, 2, 0])
    end = np.array([10, 8, 5, 3])
    assert self_times(thread, start, end - start).tolist() == [3, 4, 3, 3]
    assert outermost(thread, start, end).tolist() == [True, False, False, True]


def test_empty_columns_give_empty_results():
    nothing = np.zeros(0, np.int64)
    assert unite(nothing, nothing).length == 0
    assert unite(nothing, nothing).covered(np.array([0]), np.array([9])).tolist() == [0]
    assert self_times(nothing, nothing, nothing).tolist() == []
    assert outermost(nothing, nothing, nothing).tolist() == []
