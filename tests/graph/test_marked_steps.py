"""Marked steps and where the batches are taken."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.graph.marked_steps import calls_outside_marks, tell_calls_outside
from advisor.graph.thread_states import RootCalls
from advisor.graph.unmarked_steps import find_steps, use_markers

MARKS = [(start, start + 60) for start in range(100, 1100, 100)]


def calls(starts, duration=30):
    start = np.array(starts, np.int64)
    return RootCalls(start, start + duration, np.ones(len(start), np.uint64), np.zeros(len(start), np.int32))


INSIDE = calls([start + 5 for start, _ in MARKS])
BETWEEN = calls([start - 35 for start, _ in MARKS])


@pytest.mark.parametrize(
    ("roots", "expected"),
    [
        ([BETWEEN], BETWEEN),
        ([INSIDE], None),
        ([], None),
        ([INSIDE, BETWEEN], None),  # a validation, say, runs between the training's steps
        ([BETWEEN, calls([start - 20 for start, _ in MARKS[:5]], 5)], BETWEEN),
        ([calls([70, 1170])], None),  # before and after all of them: the marks are of something else
        ([calls([165, 265])], None),  # an element now and then
        ([calls(sorted([*BETWEEN.start_ns, 105]))], None),  # not never inside: not sure, so nothing is said
    ],
)
def test_recognised_only_where_it_is_sure(roots, expected):
    assert calls_outside_marks(roots, MARKS) is expected


@pytest.mark.parametrize("marks", [[], MARKS[:1], MARKS[:2]])
def test_too_few_marks_say_nothing(marks):
    assert calls_outside_marks([BETWEEN], marks) is None


def test_the_sentence_says_how_much_is_hidden():
    text = tell_calls_outside(BETWEEN, MARKS)
    assert "30 ns per step" in text and "next(iterator)" in text
    hidden = 9 * 30 / (1000 - 160)
    assert f"{hidden * 100:.1f} %" in text


@pytest.mark.parametrize(
    ("requests", "expected"),
    [
        ([110, 300], [(100, 900)]),  # two requests in one marked step, as of several steps per execution
        ([10], []),  # the mark excludes the input
        ([110, 300, 500], [(110, 300), (300, 500)]),  # several steps, of which a single mark is no step
    ],
)
def test_a_single_mark_is_a_step_if_it_contains_the_requests(requests, expected):
    steps = use_markers(find_steps(calls(requests)), [(100, 900)], calls(requests))
    assert list(zip(steps.start_ns.tolist(), steps.end_ns.tolist(), strict=True)) == expected
