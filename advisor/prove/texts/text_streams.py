"""The streams of two texts of a script, as the comparison of elements needs them; and where they first differ.

In: the same dataset of both texts, each held in a process of its own.  Out: a `ComparedStreams`, an `ElementDifference`.
"""

from __future__ import annotations

from typing import Any

from advisor.model.change_proof import ElementDifference
from advisor.model.errors import AdvisorError
from advisor.prove.texts.held_text import HeldDataset
from advisor.prove.trial.elements.compared_streams import (
    FROZEN,
    UNKNOWN_CACHE,
    Passes,
    cardinality_difference,
    spec_difference,
)
from advisor.prove.trial.elements.deviations import Deviation, deviation_of_arrays
from advisor.prove.trial.elements.streams import OriginalFails, Stream
from advisor.replay.seedings import AS_RECORDED, TWIN


class TextStreams:
    """The streams of two texts: a `ComparedStreams`."""

    def __init__(self, before: HeldDataset, after: HeldDataset) -> None:
        """Describe both sides; nothing is sampled yet.

        Args:
            before: The dataset of the unchanged text, which was opened first and determined the passes.
            after: That of the changed text.
        """
        self._before, self._after = before, after

    @property
    def passes(self) -> Passes:
        """See `ComparedStreams`."""
        return self._before.passes

    @property
    def is_seeded(self) -> bool:
        """See `ComparedStreams`."""
        return self._before.is_seeded

    @property
    def is_batched(self) -> bool:
        """See `ComparedStreams`."""
        return self._before.facts.is_batched

    def original(self, seeding: str, run: int = 0) -> Stream:
        """See `ComparedStreams`."""
        stream = self._before.stream(seeding, run)
        if stream.error:
            raise OriginalFails(stream.error)
        return stream

    def changed(self, seeding: str) -> Stream:
        """See `ComparedStreams`.

        Raises:
            AdvisorError: It is too slow for a comparison: a stream that is cut looks like missing elements.
        """
        stream = self._after.stream(seeding)
        is_cut = not stream.is_complete and not stream.error
        if is_cut and len(stream.rows) < self.passes.length * self.passes.count(seeding):
            raise AdvisorError(
                f"With the change, only {len(stream.rows)} elements came in the time for the comparison."
            )
        return stream

    def rows(self, seeding: str, is_changed: bool) -> Stream | None:
        """See `ComparedStreams`."""
        return (self._after if is_changed else self._before).rows(seeding)

    def sequential(self) -> tuple[Stream, Stream]:
        """Return twins of both texts whose random functions run one after the other."""
        one, two = (self.passes.comparable(side.sequential()) for side in (self._before, self._after))
        return one, two

    def static_difference(self) -> str:
        """See `ComparedStreams`."""
        before, after = self._before.facts, self._after.facts
        if before.spec != after.spec:
            return spec_difference(before.spec, after.spec)
        return cardinality_difference(before.cardinality, after.cardinality)

    def frozen_by_cache(self) -> tuple[str, str]:
        """See `ComparedStreams`. Caches of two texts cannot be paired, so those are counted that freeze something."""
        after = self._after.caches()
        if False not in after and None not in after:
            return "", ""
        before = self._before.caches()
        if after.count(False) > before.count(False):
            return FROZEN, ""
        return "", UNKNOWN_CACHE if after.count(None) > before.count(None) else ""

    def rounding(self) -> Deviation | None:
        """See `ComparedStreams`: any change of a text may affect the last digits of floating-point numbers."""
        one, two = self._twins()
        if one.rows == two.rows or len(one.rows) != len(two.rows) or not one.rows:
            return None
        width = len(one.rows[0])
        different = [component for component in range(width) if one.column(component) != two.column(component)]
        if any(one.kinds[component] != "numbers" for component in different):
            return None
        for first, count in ((_first_difference(one, two)[0], 1), (0, len(one.rows))):  # mostly, the first one suffices
            (before, is_whole), (after, is_whole_too) = (
                side.elements(TWIN, first, count) for side in (self._before, self._after)
            )
            deviation = deviation_of_arrays(zip(before, after, strict=False))
            if deviation is None or not (is_whole and is_whole_too) or len(before) != len(after):
                return None
        return deviation

    def difference(self) -> ElementDifference | None:
        """Return the first element that differs, with its first component that does; None if there is none."""
        seeding = AS_RECORDED if self._is_steady() else TWIN
        one, two = (self.passes.comparable(side.stream(seeding)) for side in (self._before, self._after))
        if two.error or one.rows == two.rows or one.kinds != two.kinds:
            return None
        element, component = _first_difference(one, two)
        if element >= min(len(one.rows), len(two.rows), self.passes.length):
            return ElementDifference(element, None, "", "", "one of the datasets ends before this element")
        (before, _), (after, _) = (side.elements(seeding, element, 1) for side in (self._before, self._after))
        if not before or not after:
            return None
        return _described(element, component, before[0][component], after[0][component])

    def _is_steady(self) -> bool:
        return self.passes.is_steady(self._before.stream(AS_RECORDED))

    def _twins(self) -> tuple[Stream, Stream]:
        length = self.passes.length  # of one pass: a file holds no more
        return self._before.stream(TWIN).epoch(0, length), self._after.stream(TWIN).epoch(0, length)


def _first_difference(one: Stream, two: Stream) -> tuple[int, int]:
    """Return element and component of the first difference; the length of the shorter stream if there is none before it."""
    for number, (before, after) in enumerate(zip(one.rows, two.rows, strict=False)):
        if before != after:
            pairs = enumerate(zip(before, after, strict=False))
            return number, next((component for component, (old, new) in pairs if old != new), 0)
    return min(len(one.rows), len(two.rows)), 0


def _described(element: int, component: int, before: Any, after: Any) -> ElementDifference:  # noqa: ANN401
    import numpy as np

    if before.shape != after.shape or before.dtype.kind != after.dtype.kind:
        old, new = (f"{array.dtype} {array.shape}" for array in (before, after))
        return ElementDifference(element, component, old, new, "type or shape")
    different = before != after
    if before.dtype.kind == "f":
        different &= ~(np.isnan(before) & np.isnan(after))
    places = np.argwhere(np.atleast_1d(different))
    if not len(places):
        is_redrawn = before.tobytes() == after.tobytes()
        redrawn, unseen = (
            "random values, which another reading does not repeat",
            "the sign of a zero, or the bits of a NaN",
        )
        what = redrawn if is_redrawn else unseen
        return ElementDifference(element, component, "", "", what)
    place = tuple(int(index) for index in places[0])
    where = f"{len(places)} of {before.size} values; the first is {list(place)}" if before.size > 1 else "its value"
    old, new = (_text(np.atleast_1d(array)[place]) for array in (before, after))
    return ElementDifference(element, component, old, new, where)


def _text(value: Any) -> str:  # noqa: ANN401
    if isinstance(value, bytes):
        return repr(value)[1:]
    return f"{value.item():.9g}" if hasattr(value, "item") and isinstance(value.item(), float) else str(value)
