"""Intervals nested as columns equal those nested one by one with a stack."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.profile import nesting
from advisor.profile.nesting import nest


def with_a_stack(start, end, max_depth=None):
    """The definition: what has ended goes when something begins."""
    parents, stack = [], []
    for row, (begin, finish) in enumerate(zip(start, end, strict=True)):
        while stack and stack[-1][0] <= begin:
            stack.pop()
        parents.append(stack[-1][1] if stack else -1)
        if max_depth is None or len(stack) < max_depth:
            stack.append((finish, row))
    return parents


INTERVALS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 12)), max_size=14)


@settings(deadline=None)
@given(INTERVALS, st.sampled_from([None, 2, 500]))
def test_any_intervals_nest_as_with_a_stack(intervals, max_depth):
    rows = sorted(((begin, begin + length) for begin, length in intervals), key=lambda row: (row[0], -row[1]))
    start, end = [row[0] for row in rows], [row[1] for row in rows]

    parents = nest(np.array(start, np.int64), np.array(end, np.int64), max_depth)

    assert parents.tolist() == with_a_stack(start, end, max_depth)


def test_only_intervals_that_stick_out_are_treated_one_by_one(monkeypatch):
    walked = []
    one_by_one = nesting._nest_one_by_one
    monkeypatch.setattr(nesting, "_nest_one_by_one", lambda *args: (walked.append(len(args[2])), one_by_one(*args))[1])
    start = np.array([0, 1, 2, 100, 105, 200, 201], np.int64)
    end = np.array([50, 40, 3, 110, 120, 300, 202], np.int64)

    assert nest(start, end).tolist() == [-1, 0, 1, -1, 3, -1, 5]
    assert walked == [2]


@pytest.mark.parametrize("depth", [999, 5_000])
def test_a_deep_chain_is_nested(depth):
    start, end = np.arange(depth), 2 * depth - np.arange(depth)

    assert nest(start, end).tolist() == list(range(-1, depth - 1))
