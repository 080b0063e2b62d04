"""What a turn counts, and what a measurement is called. (What it says of TensorFlow's pipelines: test_session.py.)"""

from __future__ import annotations

import itertools
import time

import pytest

from advisor.model.outcome import Interval
from advisor.prove.trial import ab_benchmark
from advisor.prove.trial.ab_benchmark import measure
from advisor.prove.trial.ab_side import Plan, Side, Turn
from advisor.prove.trial.trial_result import judge

ENDING_S = 0.1


class Epoch:
    """An iterator that is slow to go away, as one that AUTOTUNE looks after may be."""

    def __init__(self):
        self.left = 20

    def __next__(self):
        if not self.left:
            raise StopIteration
        self.left -= 1
        time.sleep(0.001)

    def __del__(self):
        Epochs.ended += 1
        time.sleep(ENDING_S)


class Epochs:
    ended = 0

    def __iter__(self):
        return Epoch()


def test_what_it_takes_to_end_an_epoch_is_not_counted():
    side = Side("as it is", Epochs(), [], Plan(turn_s=0.1, warmup_s=0.1))
    side.prepare()
    began, ended = time.perf_counter(), Epochs.ended
    turn = side.turn()
    took, epochs = time.perf_counter() - began, Epochs.ended - ended
    assert epochs >= 2
    assert turn.elements == 20 * epochs
    assert turn.seconds <= took - epochs * ENDING_S
    side.close()


@pytest.mark.parametrize(
    ("speedup", "verdict"),
    [
        (None, "same"),
        (Interval(1.2, 1.1, 1.3), "faster"),
        (Interval(1.2, 0.99, 1.3), "same"),
        (Interval(1.04, 1.02, 1.09), "same"),  # surely more than nothing, not worth a change
        (Interval(0.9, 0.85, 0.99), "slower"),
        (Interval(0.9, 0.85, 1.01), "same"),
    ],
)
def test_verdicts(speedup, verdict):
    assert judge(speedup)[0] == verdict


class Alternating:
    """A side whose turns take three seconds of a clock, with rates that repeat."""

    def __init__(self, clock, rates):
        self._clock, self._rates = clock, itertools.cycle(rates)

    def turn(self):
        self._clock.now += 3.0
        return Turn(100, 100 / next(self._rates))


class Clock:
    now = 0.0

    def monotonic(self):
        return self.now


@pytest.mark.parametrize(
    ("rates", "pairs"),
    [
        ([2.2, 1.7, 2.8], 6),  # all pairs beyond half of the gain: clear, although the interval is wide
        ([2.2, 1.5, *[2.2] * 20], 10),  # one pair below: the interval of ten pairs is the first that leaves it out
        ([1 / 2.2, 1 / 1.7, 1 / 3.4], 6),  # a loss
        ([1.0, 0.8, 1.2], 14),  # neither gain nor loss is ever clear: the budget
    ],
)
def test_a_clear_gain_ends_the_turns_after_a_while(rates, pairs, monkeypatch):
    clock = Clock()
    monkeypatch.setattr(ab_benchmark, "time", clock)
    plan = Plan(budget_s=80.0)
    result = measure(Alternating(clock, [1.0]), Alternating(clock, rates), plan)
    assert result.turns == pairs
    later = Plan(budget_s=80.0, clear_s=60.0)
    assert measure(Alternating(clock, [1.0]), Alternating(clock, rates), later).turns >= min(11, pairs)
