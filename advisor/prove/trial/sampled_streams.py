"""A recorded dataset and its edited versions as streams of digests that can be compared.

In: the recorded calls, edits, and how random ops are to be seeded (`advisor.replay.seeding`).  Out: `Stream`s.

Every dataset is probed as `dataset.take(k).repeat(n)`: the first `k` elements, several times over in one iterator; where there
are no more than `k`, each pass goes to the end, as a script's does. A cache in the wrong place shows in the second epoch only;
and only within one iterator do random ops with a seed go on instead of starting again.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import zip_longest
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.model.finding import Edit
from advisor.prove.trial.element_digests import Bounds, Stream, collect
from advisor.replay.replay import AS_RECORDED, OTHER, TWIN, Built, Replay

WANTED = 64
"""Elements wanted of all epochs together: two epochs of one element that is flipped at random are equal half of the time."""
_MAX_EPOCHS = 32
_PYTHON_SEED, _OTHER_PYTHON_SEED = 1, 2
_ALL_ROWS = 10_000_000


class OriginalFails(Exception):
    """The script's own pipeline raises; the text is its error."""


class Probes:
    """Streams of one recorded dataset, as it is and with edits. The original's are collected once."""

    def __init__(self, recorder: Recorder, call_id: str, bounds: Bounds, files: Path) -> None:
        """`bounds` hold for one pass. `files`: a folder of ours, for file caches. Raises OriginalFails, CannotReplay."""
        self._recorder, self._call_id, self._bounds, self._files = recorder, call_id, bounds, files
        self._originals: dict[tuple[str, int], tuple[Stream, list[Built]]] = {}
        self._number = 0
        first = collect(self.dataset((), AS_RECORDED)[0], bounds, _PYTHON_SEED)
        if first.error:
            raise OriginalFails(first.error)
        self.length = max(1, len(first.rows))
        """Elements of a pass."""
        self.is_complete = first.is_complete
        """A pass is a whole epoch."""
        self.element_bytes = first.size_bytes / self.length
        self.epochs = _epochs_of(self.length)
        """Passes of a probe."""

    def dataset(self, edits: tuple[Edit, ...], seeding: str) -> tuple[Any, list[Built]]:
        """The dataset made anew, and the calls that were made for it. Raises CannotReplay."""
        self._number += 1
        files = self._files / f"compare{self._number}"
        files.mkdir(parents=True, exist_ok=True)
        work = Replay(self._recorder, edits, seeding, files)
        return work.dataset(self._call_id), work.built

    def original(self, seeding: str, run: int = 0) -> Stream:
        """What the original gives; another `run` makes it anew. Raises OriginalFails."""
        return self._original(seeding, run)[0]

    def original_built(self) -> list[Built]:
        """The calls of the original, seeded as the script is."""
        return self._original(AS_RECORDED, 0)[1]

    def _original(self, seeding: str, run: int) -> tuple[Stream, list[Built]]:
        if (seeding, run) not in self._originals:
            dataset, built = self.dataset((), seeding)
            stream = self.collect(dataset, seeding)
            if stream.error:
                raise OriginalFails(stream.error)
            self._originals[seeding, run] = stream, built
        return self._originals[seeding, run]

    def collect(self, dataset: Any, seeding: str) -> Stream:  # noqa: ANN401
        """All passes over a dataset that was made with that seeding."""
        wanted = self.length * self.epochs
        # How many elements a random filter lets pass differs from pass to pass: where passes end by themselves, all are counted.
        limit = 2 * wanted + WANTED if self.is_complete else wanted + 1
        return self._take(self._probe(dataset, seeding), limit, seeding)

    def pairs(self, edits: tuple[Edit, ...]) -> Iterator[tuple[Any, Any]]:
        """The elements of one pass of the original, each with that of the edited dataset, drawn with the same seeds. A dataset
        that ends earlier than the other gives None. Raises CannotReplay.
        """
        sides = [self._probe(self.dataset(each, TWIN)[0], TWIN).take(self.length) for each in ((), edits)]
        return zip_longest(*sides)

    def rows_of_batches(self, dataset: Any, seeding: str) -> Stream | None:  # noqa: ANN401
        """The rows of the batches of all passes; None if they are no batches or not all were reached."""
        try:
            rows = self._probe(dataset, seeding).unbatch()
        except (TypeError, ValueError):
            return None
        stream = self._take(rows, _ALL_ROWS, seeding)
        return stream if stream.is_complete else None

    def _take(self, probe: Any, elements: int, seeding: str) -> Stream:  # noqa: ANN401
        """An edited dataset may be slower than the original: it has four times as long."""
        bounds = Bounds(elements, self._bounds.seconds * 4 * self.epochs, self._bounds.bytes * self.epochs * 2)
        return collect(probe, bounds, _OTHER_PYTHON_SEED if seeding == OTHER else _PYTHON_SEED)

    def _probe(self, dataset: Any, seeding: str) -> Any:  # noqa: ANN401
        """Several passes over the dataset in one.

        A pass over a complete one sees its end: only then does a `repeat` in it make, for nothing, one more iterator of its
        input, which draws a seed (`shuffle`). Whoever reads ahead sees the end in any case. It is not cut at the length of the
        first pass, for where that is random, whoever reads ahead would draw numbers beyond the cut. Twins are kept from being
        fused to ShuffleAndRepeat, which draws no such seed, so that it does not matter whether an edit parts a shuffle from
        its repeat.
        """
        probe = (dataset if self.is_complete else dataset.take(self.length)).repeat(self.epochs)
        if seeding == AS_RECORDED:
            return probe
        import tensorflow as tf

        unfused = tf.data.Options()
        unfused.experimental_optimization.shuffle_and_repeat_fusion = False
        return probe.with_options(unfused)

    def comparable(self, stream: Stream) -> Stream:
        """What of two equal datasets' streams must be equal. Where passes are cut short, a prefetch has read on beyond the cut,
        and so has drawn numbers that the next pass then lacks: only the first pass counts.
        """
        return stream if self.is_complete else stream.epoch(0, self.length)

    def epochs_of(self, stream: Stream) -> list[Stream]:
        """A stream pass by pass."""
        length = len(stream.rows) // self.epochs
        return [stream.epoch(number, length) for number in range(self.epochs)] if length else []

    def is_steady(self, stream: Stream) -> bool:
        """Whether all passes of a stream are the same."""
        epochs = self.epochs_of(stream)
        return all(epoch.rows == epochs[0].rows for epoch in epochs)

    def repeats(self, dataset: Any) -> bool | None:  # noqa: ANN401
        """Whether any dataset, one within the pipeline too, gives the same elements in the same order again; None: it gave none
        that could be compared.
        """
        seconds = self._bounds.seconds
        sample = collect(dataset, Bounds(self._bounds.elements, seconds, self._bounds.bytes))
        if not sample.rows or sample.opaque:
            return None
        length = len(sample.rows)
        epochs = _epochs_of(length)
        stream = collect(dataset.take(length).repeat(epochs), Bounds(length * epochs, 4 * seconds * epochs))
        first = stream.rows[:length]
        return all(
            stream.rows[start : start + length] == first[: len(stream.rows) - start]
            for start in range(0, len(stream.rows), length)
        )


def _epochs_of(length: int) -> int:
    return max(2, min(_MAX_EPOCHS, math.ceil(WANTED / length)))
