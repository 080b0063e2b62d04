"""The verdict on a change: nothing is called equal that was not compared, and nothing the same that varies too much."""

from __future__ import annotations

import itertools

import pytest

from advisor.model.change_proof import (
    CANNOT_TELL,
    EQUAL_FASTER,
    OTHER_DATA,
    OTHER_FASTER,
    SAME,
    SLOWER,
    VERDICTS,
    ComparedDataset,
)
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.prove.texts.change_verdict import DataFacts, SpeedFacts, judge_data, judge_speed, verdict_of

CLEAR = Interval(2.0, 1.8, 2.2)


def dataset(safety, **more):
    return ComparedDataset("the dataset of batch", safety, 100, **more)


@pytest.mark.parametrize(
    ("data", "speed", "verdict"),
    [
        ("equal", "faster", EQUAL_FASTER),
        ("equal", "same", SAME),
        ("equal", "slower", SLOWER),
        ("equal", "unknown", CANNOT_TELL),
        ("different", "faster", OTHER_FASTER),
        ("different", "same", OTHER_DATA),
        ("different", "slower", SLOWER),
        ("different", "unknown", OTHER_DATA),
        ("unknown", "faster", CANNOT_TELL),
        ("unknown", "same", CANNOT_TELL),
        ("unknown", "slower", SLOWER),
        ("unknown", "unknown", CANNOT_TELL),
    ],
)
def test_verdict(data, speed, verdict):
    actual, sentence = verdict_of(DataFacts(data, "about the data"), SpeedFacts(speed, None, "about the speed"))
    assert actual == verdict
    assert "About the data." in sentence and "About the speed." in sentence


def test_every_verdict_is_one_of_those_in_the_schema():
    states = itertools.product(("equal", "different", "unknown"), ("faster", "same", "slower", "unknown"))
    verdicts = {verdict_of(DataFacts(data, "a"), SpeedFacts(speed, None, "b"))[0] for data, speed in states}
    assert verdicts == set(VERDICTS)


@pytest.mark.parametrize(
    ("safety", "is_seeded", "allowed", "state"),
    [
        (Safety.EXACT, True, (), "equal"),
        (Safety.RERANDOMIZED, False, (), "equal"),
        (Safety.RERANDOMIZED, True, (), "different"),
        (Safety.RERANDOMIZED, True, (Safety.RERANDOMIZED,), "equal"),
        (Safety.REORDERED, False, (), "different"),
        (Safety.REORDERED, False, (Safety.REORDERED,), "equal"),
        (Safety.NUMERICS, False, (Safety.REORDERED,), "different"),
        (Safety.CHANGES, False, (Safety.REORDERED, Safety.NUMERICS), "different"),
        (None, False, (), "unknown"),
    ],
)
def test_data_are_equal_only_at_a_permitted_level(safety, is_seeded, allowed, state):
    assert judge_data([dataset(safety)], allowed, is_seeded).state == state


def test_an_undecided_comparison_is_never_equal():
    undecided = dataset(Safety.EXACT, is_undecided=True, note="Only the first 3 elements were compared.")
    facts = judge_data([undecided], (), is_seeded=False)
    assert facts.state == "unknown" and "Only the first 3 elements" in facts.reason


def test_another_dataset_that_differs_counts():
    validation = ComparedDataset("the dataset of batch at line 9", Safety.REORDERED, is_undecided=True)
    facts = judge_data([dataset(Safety.EXACT), validation], (), is_seeded=True)
    assert facts.state == "different" and "line 9" in facts.reason
    assert judge_data([dataset(None), validation], (), is_seeded=True).state == "different"


def test_what_was_not_compared_is_unknown():
    assert judge_data([dataset(Safety.EXACT)], (), True, ["Two datasets were not compared."]).state == "unknown"
    assert judge_data([], (), True).state == "unknown"


@pytest.mark.parametrize(
    ("verdict", "interval", "state"),
    [
        ("faster", CLEAR, "faster"),
        ("slower", Interval(0.5, 0.4, 0.6), "slower"),
        ("same", Interval(1.0, 0.97, 1.03), "same"),
        ("same", Interval(1.1, 0.7, 1.7), "unknown"),
        ("refused", None, "unknown"),
        ("faster", None, "unknown"),
    ],
)
def test_speed_is_known_only_if_the_interval_says_so(verdict, interval, state):
    assert judge_speed(verdict, interval, "").state == state
