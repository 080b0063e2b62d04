"""When the turns of live processes can be trusted, on made-up series of step times."""

from __future__ import annotations

import pytest

from advisor.model.outcome import Interval
from advisor.model.paired_test import CLEAR, CURTAILED, FUTILE, LAST
from advisor.model.sequential_test import Decision
from advisor.prove.measure.turn_judgement import TimedTurn, contradiction, drift_of, joint, leaves_doubt

STEADY = (10.0, 10.1, 9.9, 10.0, 10.1, 9.9)


def decision(low: float, high: float, reason: str = CLEAR) -> Decision:
    return Decision(Interval((low * high) ** 0.5, low, high), reason)


@pytest.mark.parametrize(
    ("steps", "expected"),
    [
        (STEADY, ""),
        ((10.0, 11.0, 12.1, 13.2, 14.5, 16.0), "after 6 turns, a step takes 59.4 % longer"),
        ((10.0, 9.5, 9.0, 8.6, 8.2, 7.8), "after 6 turns, a step takes 21.9 % less"),
        ((10.0, 10.05, 10.1, 10.15, 10.2, 10.25), ""),  # certain, and not worth a word
        ((10.0, 14.0, 9.0, 15.0, 10.0, 16.0), ""),  # may be chance
        ((10.0, 20.0, 40.0), ""),  # too few to tell
        ((10.0, 10.0, 10.0, 10.0), ""),
    ],
)
def test_a_trend_over_the_turns_is_a_drift(steps: tuple[float, ...], expected: str) -> None:
    drift = drift_of([TimedTurn(step) for step in steps])
    assert drift.endswith(expected) if expected else drift == ""


@pytest.mark.parametrize(
    ("ratios", "is_drift"),
    [((1.30, 1.28, 1.33), True), ((0.80, 0.81, 0.79), True), ((1.02, 1.02, 1.02), False), ((1.3, 0.8, 1.1), False)],
)
def test_a_turn_whose_halves_always_differ_begins_unlike_a_running_pipeline(
    ratios: tuple[float, ...], is_drift: bool
) -> None:
    turns = [TimedTurn(10.0), *(TimedTurn(10.0, (10.0, 10.0 * ratio)) for ratio in ratios)]
    assert ("the second half of a turn takes" in drift_of(turns)) is is_drift


@pytest.mark.parametrize(
    ("first", "expected"),
    [
        (decision(1.2, 1.4), False),
        (decision(0.6, 0.9), False),
        (decision(1.01, 1.4), True),
        (decision(0.8, 0.99), True),
        (decision(0.98, 1.02, FUTILE), False),
        (decision(0.8, 1.3, CURTAILED), True),
        (decision(0.9, 1.3, LAST), True),
    ],
)
def test_doubt_is_what_another_start_might_overturn(first: Decision, expected: bool) -> None:
    assert leaves_doubt(first) is expected


def test_the_interval_of_two_pairs_of_processes_holds_both() -> None:
    decided = joint(decision(1.02, 1.2), decision(1.1, 1.3), [1.1, 1.2, 1.15])
    assert (decided.speedup.value, decided.speedup.low, decided.speedup.high, decided.reason) == (
        1.15,
        1.02,
        1.3,
        CLEAR,
    )
    assert joint(decision(1.02, 1.2), decision(0.97, 1.1, LAST), [1.1, 1.0]).reason == LAST
    assert joint(decision(1.01, 1.03), decision(0.98, 1.02, LAST), [1.0, 1.0]).reason == FUTILE


def test_pairs_of_processes_that_exclude_each_other_are_named() -> None:
    assert "1.15x (1.10x to 1.20x) and 1.00x (0.98x to 1.02x)" in contradiction(
        decision(1.1, 1.2), decision(0.98, 1.02, FUTILE)
    )
    assert contradiction(decision(1.1, 1.2), decision(1.15, 1.4)) == ""
    assert contradiction(decision(1.1, 1.2), decision(1.3, 1.4)) == ""  # faster in either case
