"""What the comparison of two datasets asks for: streams of both, drawn with the same seeds, and facts about both.

In: nothing.  Out: the interface `ComparedStreams`. One implementation edits a recorded dataset in one process
(`advisor.prove.trial.elements.equivalence`), the other compares two texts of a script in two processes
(`advisor.prove.texts.text_streams`).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

from advisor.prove.trial.elements.deviations import Deviation
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.seedings import AS_RECORDED

WANTED = 64
"""Minimum number of elements of all epochs together: if an epoch is one image, flipped at random, two epochs are often equal."""
FROZEN = "a cache would freeze elements that vary between epochs"
UNKNOWN_CACHE = "The input of the cache produced no comparable element, so it is unknown what the cache would freeze."


@dataclass(frozen=True, slots=True)
class Passes:
    """How both datasets are sampled: several passes over their first elements."""

    length: int
    """Number of elements of a pass."""
    is_complete: bool
    """A pass is a whole epoch."""
    epochs: int
    """Number of passes of a stream with the script's own seeds; of others, see `count`."""
    element_bytes: float = 0.0
    """Mean size of an element."""

    def count(self, seeding: str, run: int = 0) -> int:
        """Return the number of passes of a stream.

        If passes are cut, later ones tell only whether epochs differ from each other. That is asked of the first stream with the
        script's own seeds. Of all others, no more passes are read than `WANTED` elements take.

        Args:
            seeding: How random ops are seeded.
            run: As in `ComparedStreams.original`.
        """
        if self.is_complete or (seeding == AS_RECORDED and not run):
            return self.epochs
        return min(self.epochs, math.ceil(WANTED / self.length))

    def comparable(self, stream: Stream) -> Stream:
        """Return the part of a stream that must be the same for equal datasets.

        If passes are cut, only the first pass counts: a prefetch reads beyond the cut and draws random numbers there, so the next
        pass gets other ones.
        """
        return stream if self.is_complete else stream.epoch(0, self.length)

    def epochs_of(self, stream: Stream) -> list[Stream]:
        """Split a stream into its passes."""
        length = len(stream.rows) // self.epochs
        return [stream.epoch(number, length) for number in range(self.epochs)] if length else []

    def is_steady(self, stream: Stream) -> bool:
        """Whether all passes of a stream are equal."""
        epochs = self.epochs_of(stream)
        return all(epoch.rows == epochs[0].rows for epoch in epochs)


class ComparedStreams(Protocol):
    """The streams of an original and of a changed dataset. Seedings are those of `advisor.replay.seeding`."""

    @property
    def passes(self) -> Passes:
        """How both are sampled."""
        ...

    @property
    def is_seeded(self) -> bool:
        """Whether the script fixes a seed that affects its datasets."""
        ...

    @property
    def is_batched(self) -> bool:
        """Whether the elements of the original are composed of others."""
        ...

    def original(self, seeding: str, run: int = 0) -> Stream:
        """Return the stream of the original.

        Args:
            seeding: How random ops are seeded.
            run: A number not used before samples the dataset again; with a used one, the stream is the same.

        Raises:
            OriginalFails: The script's own pipeline raises an exception.
        """
        ...

    def changed(self, seeding: str) -> Stream:
        """Return the stream of the changed dataset; an exception that it raises is in `Stream.error`."""
        ...

    def rows(self, seeding: str, is_changed: bool) -> Stream | None:
        """Return the rows of the batches of one side; None if its elements are no batches or not all were reached."""
        ...

    def static_difference(self) -> str:
        """Return what differs without taking an element, such as the element spec; empty if nothing does."""
        ...

    def frozen_by_cache(self) -> tuple[str, str]:
        """Return what a new cache would freeze, and why that could not be determined; both may be empty."""
        ...

    def rounding(self) -> Deviation | None:
        """Return the largest deviation if the change may affect the last digits of numbers, and nothing else; else None."""
        ...


def spec_difference(before: object, after: object) -> str:
    """Return the end of a sentence on two element specs that differ."""
    return f"the element spec is {after} instead of {before}"


def cardinality_difference(old: int, new: int) -> str:
    """Return the end of a sentence on two known numbers of elements that differ; empty if they are equal or unknown."""
    if old != new and old != -2 and new != -2:
        return f"an epoch has {_counted(new)} elements instead of {_counted(old)}"
    return ""


def _counted(cardinality: int) -> str:
    return "infinitely many" if cardinality == -1 else str(cardinality)
