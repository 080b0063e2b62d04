"""What is concluded from streams of elements: here of noise, of which a part of an epoch was compared."""

from __future__ import annotations

import random
import struct
from collections.abc import Callable
from dataclasses import dataclass

import pytest

from advisor.model.finding import Safety
from advisor.prove.trial.elements.compared_streams import Passes
from advisor.prove.trial.elements.element_comparison import ElementComparison
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.seedings import AS_RECORDED, TWIN

LENGTH = 400
PASSES = Passes(LENGTH, is_complete=False, epochs=2)


def stream(values: list[float]) -> Stream:
    rows = [(struct.pack("d", value),) for value in values]
    figures: list[tuple[tuple[float, ...], ...]] = []
    for value in values:
        figures.append(((value, 0.0, value, value, 1.0, 1.0),))
    return Stream(rows, figures, ("numbers",))


def noise(seed: str, shift: float = 0.0) -> list[float]:
    """Two passes over the same part of an epoch."""
    generator = random.Random(seed)
    return [generator.gauss(shift, 1.0) for _ in range(2 * LENGTH)]


@dataclass
class Streams:
    """An original of noise, and what a change makes of its twin."""

    change: Callable[[list[float]], list[float]]
    is_seeded: bool = False
    is_batched: bool = False
    passes: Passes = PASSES

    def original(self, seeding: str, run: int = 0) -> Stream:
        return stream(noise(seeding + (str(run) if seeding != TWIN else "")))

    def changed(self, seeding: str) -> Stream:
        return stream(self.change(noise(seeding)))

    def rows(self, seeding: str, is_changed: bool) -> Stream | None:
        return None

    def static_difference(self) -> str:
        return ""

    def frozen_by_cache(self) -> tuple[str, str]:
        return "", ""

    def rounding(self) -> None:
        return None


def judged(change: Callable[[list[float]], list[float]]) -> Judgement:
    return ElementComparison(Streams(change)).judge()


def raced(values: list[float]) -> list[float]:
    """Every tenth element has drawn another number."""
    other = random.Random(7)
    return [other.gauss(0.0, 1.0) if place % 10 == 0 else value for place, value in enumerate(values)]


def test_elements_that_keep_their_places_are_not_missing() -> None:
    seen = judged(raced)
    assert (seen.seen, seen.undecided, seen.is_complete) == (Safety.RERANDOMIZED, "", False)


@pytest.mark.parametrize(
    "change",
    [
        lambda values: [*raced(values)[1:], 0.5],  # the first element is lost
        lambda values: [*raced(values)[:200], *raced(values)[201:], 0.5],  # one in the middle
    ],
)
def test_a_lost_element_stays_undecided(change: Callable[[list[float]], list[float]]) -> None:
    seen = judged(change)
    assert seen.seen is Safety.RERANDOMIZED and not seen.is_complete
    assert "unknown whether elements are missing" in seen.undecided


def test_other_values_in_many_places_are_a_change() -> None:
    seen = judged(lambda values: [value if place % 5 else value + 9.0 for place, value in enumerate(values)])
    assert seen.seen is Safety.CHANGES


@pytest.mark.parametrize(
    ("passes", "counts"),
    [
        pytest.param(Passes(10, is_complete=True, epochs=7), (7, 7, 7), id="whole epochs"),
        pytest.param(Passes(400, is_complete=False, epochs=2), (2, 1, 1), id="cut"),
        pytest.param(Passes(10, is_complete=False, epochs=7), (7, 7, 7), id="cut and short"),
        pytest.param(Passes(40, is_complete=False, epochs=3), (3, 2, 2), id="cut, and half of what is wanted"),
    ],
)
def test_passes_of_which_only_the_first_is_compared_are_not_repeated(passes: Passes, counts: tuple[int, ...]) -> None:
    assert (passes.count(AS_RECORDED), passes.count(AS_RECORDED, run=1), passes.count(TWIN)) == counts
