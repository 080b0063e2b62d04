"""Samples a recorded dataset and its edited versions as streams of digests that can be compared.

In: the recorded calls, edits, and how random ops are seeded (`advisor.replay.seeding`).  Out: `Stream`s.

Every dataset is sampled as `dataset.take(k).repeat(n)`: passes over its first `k` elements in one iterator. If it has no more
than `k` elements, each pass is a whole epoch. Several passes are needed because a misplaced cache affects only the second epoch
(`Passes.count` says of which streams), and one iterator, because a new one restarts the random ops that have a seed.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Callable, Generator, Iterable, Iterator, Mapping
from dataclasses import replace
from itertools import zip_longest
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.model.edits import Edit
from advisor.prove.trial.elements.compared_streams import WANTED, Passes
from advisor.prove.trial.elements.element_digests import Bounds, Digest, collect, seeded
from advisor.prove.trial.elements.heartbeat import silent
from advisor.prove.trial.elements.row_digests import RowsBeside, has_plain_rows, rows_of_batch
from advisor.prove.trial.elements.streams import OriginalFails, Stream
from advisor.replay.replay import AS_RECORDED, OTHER, TWIN, Built, Replay

_MAX_EPOCHS = 32
"""Maximum number of epochs of a short dataset that are compared. Chosen, not measured."""
_PYTHON_SEED, _OTHER_PYTHON_SEED = 1, 2
_ALL_ROWS = 10_000_000
"""More rows than any sample has."""


class SampledStreams:
    """The streams of one recorded dataset, unchanged and with edits. Those of the original are collected once."""

    def __init__(
        self,
        recorder: Recorder,
        call_id: str,
        bounds: Bounds,
        files: Path,
        passes: Passes | None = None,
        names: Mapping[str, str] | None = None,
        on_element: Callable[[], None] = silent,
    ) -> None:
        """Sample one pass of the original.

        Args:
            recorder: A closed recorder with a replay log.
            call_id: The call that made the dataset.
            bounds: Limits for one pass.
            files: An existing temporary folder for file caches.
            passes: How another dataset, with which this one is compared, was sampled; None: determined by the first pass.
            names: Names of the calls from which twins take their seeds; None: their ids.
            on_element: Called after each element of any stream.

        Raises:
            CannotReplay: The dataset cannot be rebuilt.
            OriginalFails: The script's own pipeline raises an exception.
        """
        self._recorder, self._call_id, self._bounds, self._files = recorder, call_id, bounds, files
        self._originals: dict[tuple[str, int], tuple[Stream, list[Built]]] = {}
        self._original_rows: dict[str, Stream | None] = {}
        self._number, self._names, self._on_element = 0, names, on_element
        self.original_s = 0.0
        """Seconds in which streams of the original were collected until now."""
        if passes is not None:
            bounds = replace(bounds, elements=passes.length)
        with self._timed():
            first = collect(self.dataset((), AS_RECORDED)[0], bounds, _PYTHON_SEED, on_element)
        if first.error and passes is None:
            raise OriginalFails(first.error)
        length = max(1, len(first.rows))
        self.passes = passes or Passes(length, first.is_complete, _epochs_of(length), first.size_bytes / length)
        """How this and the other datasets of the comparison are sampled."""

    def dataset(self, edits: tuple[Edit, ...], seeding: str) -> tuple[Any, list[Built]]:
        """Rebuild the dataset.

        Args:
            edits: The edits to apply; empty for the original.
            seeding: How random ops are seeded, see `advisor.replay.seeding`.

        Returns:
            The dataset, and the calls that were made for it.

        Raises:
            CannotReplay: It cannot be rebuilt with the edits.
        """
        self._number += 1
        files = self._files / f"compare{self._number}"
        files.mkdir(parents=True, exist_ok=True)
        work = Replay(self._recorder, edits, seeding, files, self._names)
        return work.dataset(self._call_id), work.built

    def original(self, seeding: str, run: int = 0) -> Stream:
        """Return the stream of the original.

        Args:
            seeding: How random ops are seeded.
            run: A number not used before rebuilds the dataset; with a used one, the stream is the same.

        Raises:
            OriginalFails: The script's own pipeline raises an exception.
        """
        return self._original(seeding, run)[0]

    def original_built(self) -> list[Built]:
        """Return the calls of the original, with the script's own seeds."""
        return self._original(AS_RECORDED, 0)[1]

    def sample(self, seeding: str, run: int = 0) -> Stream:
        """Like `original`; an exception of the script's own pipeline is in `Stream.error`."""
        return self._sampled(seeding, run)[0]

    def _original(self, seeding: str, run: int) -> tuple[Stream, list[Built]]:
        stream, built = self._sampled(seeding, run)
        if stream.error:
            raise OriginalFails(stream.error)
        return stream, built

    def _sampled(self, seeding: str, run: int) -> tuple[Stream, list[Built]]:
        if (seeding, run) not in self._originals:
            with self._timed():
                dataset, built = self.dataset((), seeding)
                stream, rows = self.collect_with_rows(dataset, seeding, run)
            self._originals[seeding, run] = stream, built
            if rows is not None:
                self._original_rows.setdefault(seeding, rows)
        return self._originals[seeding, run]

    @contextlib.contextmanager
    def _timed(self) -> Iterator[None]:
        began = time.monotonic()
        try:
            yield
        finally:
            self.original_s += time.monotonic() - began

    def collect(self, dataset: Any, seeding: str, run: int = 0) -> Stream:  # noqa: ANN401
        """Return the stream of all passes over a dataset that was built with this seeding.

        Args:
            dataset: The dataset.
            seeding: How random ops are seeded.
            run: As in `original`.
        """
        return self._collect(dataset, seeding, self.passes.count(seeding, run), None)

    def collect_with_rows(self, dataset: Any, seeding: str, run: int = 0) -> tuple[Stream, Stream | None]:  # noqa: ANN401
        """Return the same, and the rows of its batches, if they are to be had in the same passes.

        Rows are compared only if elements are random, hence not with the script's own seeds. If passes are cut, the rows of the
        first batches suffice.

        Args:
            dataset: The dataset.
            seeding: How random ops are seeded.
            run: As in `original`.
        """
        if seeding == AS_RECORDED or not has_plain_rows(dataset):
            return self.collect(dataset, seeding, run), None
        rows = RowsBeside(may_be_cut=not self.passes.is_complete)
        stream = self._collect(dataset, seeding, self.passes.count(seeding, run), rows)
        return stream, rows.of(stream)

    def _collect(self, dataset: Any, seeding: str, passes: int, rows: RowsBeside | None) -> Stream:  # noqa: ANN401
        wanted = self.passes.length * passes
        # A random filter passes a different number of elements in each pass; if passes are whole epochs, all are counted.
        limit = 2 * wanted + WANTED if self.passes.is_complete else wanted + 1
        return self._take(self._all_passes(dataset, seeding, passes), limit, seeding, rows)

    def pairs(self, edits: tuple[Edit, ...]) -> Iterator[tuple[Any, Any]]:
        """Return the elements of one pass of the original, each with that of the edited dataset, drawn with the same seeds.

        A dataset that ends before the other yields None.

        Raises:
            CannotReplay: One of the datasets cannot be rebuilt.
        """
        sides = [
            self._all_passes(self.dataset(side_edits, TWIN)[0], TWIN, self.passes.count(TWIN)).take(self.passes.length)
            for side_edits in ((), edits)
        ]
        for pair in zip_longest(*sides):
            self._on_element()
            yield pair

    def elements(self, seeding: str) -> Generator[Any, None, None]:
        """Yield the elements of one pass of the original, drawn with the same numbers as those of its stream.

        Raises:
            CannotReplay: It cannot be rebuilt.
        """
        with seeded(_OTHER_PYTHON_SEED if seeding == OTHER else _PYTHON_SEED):
            passes = self._all_passes(self.dataset((), seeding)[0], seeding, self.passes.count(seeding))
            for element in passes.take(self.passes.length):
                self._on_element()
                yield element

    def cache_inputs(self) -> tuple[bool | None, ...]:
        """Return, for each cache of the original, what `repeats` says about its input."""
        caches = [
            built for built in self._sampled(AS_RECORDED, 0)[1] if built.method == "cache" and not built.is_inside
        ]
        return tuple(self.repeats(cache.input) for cache in caches if cache.input is not None)

    def original_rows(self, seeding: str) -> Stream | None:
        """Return the rows of the batches of the original, see `rows_of_batches`."""
        if seeding not in self._original_rows:
            with self._timed():
                self._original_rows[seeding] = self.rows_of_batches(self.dataset((), seeding)[0], seeding)
        return self._original_rows[seeding]

    def rows_of_batches(self, dataset: Any, seeding: str) -> Stream | None:  # noqa: ANN401
        """Return the rows of the batches of all passes; None if the elements are no batches or not all were reached."""
        passes = self._all_passes(dataset, seeding, self.passes.count(seeding))
        if has_plain_rows(passes):
            stream = self._take(passes, _ALL_ROWS, seeding, rows_of_batch)
        else:
            try:
                stream = self._take(passes.unbatch(), _ALL_ROWS, seeding)
            except (TypeError, ValueError):
                return None
        return stream if stream.is_complete else None

    def _take(
        self,
        passes: Any,  # noqa: ANN401
        elements: int,
        seeding: str,
        digests_of: Callable[[Any], Iterable[Digest]] | None = None,
    ) -> Stream:
        """Collect elements for at most four times as long as the original took: an edited dataset may be slower."""
        bounds = Bounds(
            elements, self._bounds.seconds * 4 * self.passes.epochs, self._bounds.bytes * self.passes.epochs * 2
        )
        seed = _OTHER_PYTHON_SEED if seeding == OTHER else _PYTHON_SEED
        return collect(passes, bounds, seed, self._on_element, digests_of)

    def _all_passes(self, dataset: Any, seeding: str, passes: int) -> Any:  # noqa: ANN401
        """Return a dataset of several passes over `dataset`.

        Whole epochs are not cut with `take` at the length of the first pass. At the end of its input, a `repeat` inside the
        dataset creates one more iterator of that input, which draws a seed (`shuffle`); with a cut, only transformations that
        read ahead (prefetch) would get there. If the length is random, reading ahead would also draw numbers beyond the cut.

        In twins, the fusion of shuffle and repeat is disabled: the fused op draws no such seed, so an edit between the two calls
        would change the random numbers.
        """
        repeated = (dataset if self.passes.is_complete else dataset.take(self.passes.length)).repeat(passes)
        if seeding == AS_RECORDED:
            return repeated
        import tensorflow as tf

        unfused = tf.data.Options()
        unfused.experimental_optimization.shuffle_and_repeat_fusion = False
        return repeated.with_options(unfused)

    def repeats(self, dataset: Any) -> bool | None:  # noqa: ANN401
        """Whether a dataset, which may be an inner one of the pipeline, produces the same elements in the same order every epoch.

        None if it produces no comparable elements.
        """
        seconds = self._bounds.seconds
        bounds = Bounds(self._bounds.elements, seconds, self._bounds.bytes)
        sample = collect(dataset, bounds, on_element=self._on_element)
        if not sample.rows or sample.opaque:
            return None
        length = len(sample.rows)
        epochs = _epochs_of(length)
        bounds = Bounds(length * epochs, 4 * seconds * epochs)
        stream = collect(dataset.take(length).repeat(epochs), bounds, on_element=self._on_element)
        first = stream.rows[:length]
        return all(
            stream.rows[start : start + length] == first[: len(stream.rows) - start]
            for start in range(0, len(stream.rows), length)
        )


def _epochs_of(length: int) -> int:
    return max(2, min(_MAX_EPOCHS, math.ceil(WANTED / length)))
