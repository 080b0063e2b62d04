"""Elements of several workers against local ones, whatever their order."""

from __future__ import annotations

import pytest

from advisor.prove.trial.elements.multisets import compared, compared_after_loss
from advisor.prove.trial.elements.streams import Stream

ROWS = [(b"a", b"1"), (b"b", b"2"), (b"b", b"2"), (b"c", b"3")]


def stream(rows, is_complete: bool = True, kinds: tuple[str, ...] = ("numbers", "numbers")) -> Stream:
    return Stream(rows=list(rows), kinds=kinds, is_complete=is_complete)


def judged(served, again=ROWS, times: int = 1, is_complete: bool = True):
    return compared(stream(ROWS), stream(again), stream(served, is_complete), times, workers=2)


def test_the_same_elements_in_another_order():
    is_same, sentence = judged(ROWS[::-1])
    assert is_same is True and "same 4 elements" in sentence and "2 workers" in sentence


@pytest.mark.parametrize("served", [ROWS[:-1], [*ROWS, ROWS[0]], [ROWS[0], *ROWS[:-1]], [(b"a", b"2"), *ROWS[1:]]])
def test_other_elements(served):
    assert judged(served)[0] is False


def test_each_element_once_per_worker():
    assert judged(ROWS * 2, times=2)[0] is True
    assert judged(ROWS, times=2)[0] is False


def test_random_components_are_left_out():
    again = [(a, b"9") for a, _ in ROWS]
    served = [(a, b"7") for a, _ in ROWS]
    is_same, sentence = judged(served, again)
    assert is_same is True and "1 of 2 components" in sentence
    assert judged([(b"x", b"7"), *served[1:]], again)[0] is False


def test_elements_that_are_all_random_are_counted_only():
    again = [(b"8", b"9")] * 4
    is_same, sentence = judged([(b"5", b"6")] * 4, again)
    assert is_same is None and "random" in sentence
    assert judged([(b"5", b"6")] * 3, again)[0] is False


@pytest.mark.parametrize(
    ("again", "is_complete"), [(ROWS[:-1], True), (ROWS, False)], ids=["random number", "too long"]
)
def test_nothing_is_concluded_from_parts(again, is_complete):
    assert judged(ROWS, again, is_complete=is_complete)[0] is None


def test_components_without_values_are_not_compared():
    opaque = stream(ROWS, kinds=("opaque", "opaque"))
    assert compared(opaque, opaque, opaque, 1, 2)[0] is None


def after_loss(served, again=ROWS):
    return compared_after_loss(stream(ROWS), stream(again), stream(served), 1, workers=2, lost=("host:5001",))


def test_what_a_worker_took_along_is_missing_but_not_wrong():
    is_same, sentence = after_loss(ROWS[:3])
    assert is_same is None
    assert "1 of 2 workers ended during the pass (host:5001); 3 of 4 elements arrived. The other 1" in sentence


def test_a_worker_that_held_nothing_takes_nothing_along():
    assert after_loss(ROWS)[0] is True


def test_other_elements_are_wrong_even_if_a_worker_ended():
    assert after_loss([(b"x", b"1"), ROWS[0]])[0] is False
    assert after_loss([ROWS[0], ROWS[0]])[0] is False


def test_random_elements_cannot_be_wrong():
    again = [(b"n%d" % n, b"m%d" % n) for n in range(4)]
    assert after_loss([(b"x", b"1")], again)[0] is None
