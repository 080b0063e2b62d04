"""Which steps of a turn are timed, on steps of given lengths."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from advisor.prove.trial.runs.turn_clock import Level, TurnClock, UsualLevels
from advisor.prove.trial.runs.turn_messages import TakeTurn, TurnTaken

MS = 1_000_000


def taken(
    request: TakeTurn,
    duration_of: Callable[[int], int],
    usual: UsualLevels | None = None,
    level_of: Callable[[int], Level | None] = lambda number: None,
) -> TurnTaken:
    """A turn whose steps, numbered from 0, have these lengths in ms; the buffer is read after each."""
    clock, now = TurnClock(request, usual or UsualLevels(), 0, Level(4, 4)), 0
    for number in range(100_000):
        duration = duration_of(number) * MS
        now += duration
        if clock.is_over_after(duration, duration // 2, now, level_of(number)):
            return clock.taken(Level(3, 4))
    raise AssertionError("the turn does not end")


def test_the_first_part_of_a_turn_is_dropped() -> None:
    turn = taken(TakeTurn(1.0, None), lambda number: 100 if number < 5 else 10)
    assert (turn.dropped_steps, turn.dropped_ns) == (5, 500 * MS)
    assert (turn.steps, turn.total_ns, turn.wait_ns) == (100, 1000 * MS, 500 * MS)


@pytest.mark.parametrize(("duration_ms", "dropped"), [(10, 50), (300, 5), (6000, 1)])
def test_at_least_five_steps_and_half_a_second_are_dropped_unless_that_takes_long(
    duration_ms: int, dropped: int
) -> None:
    assert taken(TakeTurn(1.0, None), lambda number: duration_ms).dropped_steps == dropped


def test_steps_are_dropped_until_the_buffer_is_as_full_as_before() -> None:
    """Elements whose reads ended during the stop make it fuller."""
    usual = UsualLevels(0, 2, 1)
    turn = taken(TakeTurn(1.0, None), lambda number: 10, usual, lambda number: Level(4 if number < 120 else 2, 4))
    assert turn.dropped_steps == 121
    never = taken(TakeTurn(1.0, None), lambda number: 10, usual, lambda number: Level(4, 4))
    assert never.dropped_ns == 5000 * MS
    assert turn.buffer is not None
    assert (turn.buffer.stopped, turn.buffer.resumed, turn.buffer.low, turn.buffer.high) == (1, 4, 2, 3)


def test_a_turn_ends_after_its_steps_or_its_time_but_has_three_steps() -> None:
    assert taken(TakeTurn(60.0, 20), lambda number: 10).steps == 20
    assert taken(TakeTurn(1.0, 2000), lambda number: 10).steps == 100
    assert taken(TakeTurn(1.0, None), lambda number: 700).steps == 3


def test_a_turn_holds_whole_epochs_unless_they_are_long() -> None:
    assert taken(TakeTurn(1.0, None, 30), lambda number: 10).steps == 120
    assert taken(TakeTurn(1.0, None, 250), lambda number: 10).steps == 200


def test_both_halves_are_reported() -> None:
    turn = taken(TakeTurn(60.0, 20), lambda number: 10 if number < 60 else 30)
    assert turn.halves_ns == (10 * MS, 30 * MS)
