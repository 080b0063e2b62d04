"""What a turn counts, and what a measurement is called. (What it says of TensorFlow's pipelines: test_session.py.)"""

from __future__ import annotations

import time

import pytest

from advisor.model.outcome import Interval
from advisor.prove.trial.ab_benchmark import Plan, Side
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
