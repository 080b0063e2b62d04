"""A closer look at random elements: other numbers, other values, or unknown."""

from __future__ import annotations

import hashlib
import random
from types import SimpleNamespace

import pytest

from advisor.model.errors import AdvisorError
from advisor.prove.texts.random_changes import look_closer
from advisor.prove.trial.elements.compared_streams import Passes
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.seedings import TWIN

PASSES = Passes(50, True, 2)


def digest(*values):
    return hashlib.blake2b(repr(values).encode(), digest_size=16).digest()


def stream(make, seed):
    draw = random.Random(seed)
    rows = [make(draw, number) for _ in range(2) for number in draw.sample(range(50), 50)]
    return Stream(rows, [()] * len(rows), ("numbers", "numbers"), is_complete=True)


def flipped(shift=0, unit="image"):
    """An image that is flipped at random, and its label."""
    return lambda draw, number: (digest(unit, number, draw.random() < 0.5), digest("label", number + shift))


def noisy(draw, number):
    return digest("image", number, draw.random()), digest("label", number)


def looked(before, after, sequential=None, passes=PASSES):
    class Streams(SimpleNamespace):
        is_batched = False

        def original(self, seeding):
            return stream(before, 1 if seeding == TWIN else 2)

        def changed(self, seeding):
            return stream(after, 3)

        def sequential(self):
            if sequential is None:
                raise AdvisorError("no")
            return sequential

    return look_closer(Streams(passes=passes))


def test_other_numbers_are_no_difference():
    assert looked(flipped(), flipped()) == ("", "")


@pytest.mark.parametrize(
    ("after", "said"),
    [
        (flipped(shift=1), "component 2 has other values"),
        (flipped(unit="other resize"), "component 1 has values that the original does not have"),
        (lambda draw, number: (flipped()(draw, number)[0], digest("label", 49 - number)), "combination"),
    ],
)
def test_other_values_are_a_difference(after, said):
    assert said in looked(flipped(), after).difference


def test_values_that_never_recur_are_unknown():
    seen = looked(noisy, noisy)
    assert not seen.difference and "do not recur" in seen.unknown
    one = stream(noisy, 1)
    assert looked(noisy, noisy, (one, one)) == ("", ""), "equal without parallel calls"


def test_part_of_an_epoch_is_unknown():
    assert looked(flipped(), flipped(), passes=Passes(50, False, 2)).unknown
