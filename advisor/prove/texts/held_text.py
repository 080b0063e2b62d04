"""One text of a script, held at the first element of its training, of whose datasets the elements are asked.

In: a `ProofSession`.  Out: `Stream`s and elements. This half never imports TensorFlow.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.prove.session.proof_session import ProofSession
from advisor.prove.trial.ab_side import Turn
from advisor.prove.trial.elements.compared_streams import Passes
from advisor.prove.trial.elements.stream_files import read_elements, read_stream
from advisor.prove.trial.elements.streams import Stream
from advisor.prove.trial.text_messages import (
    CachesRead,
    DatasetFacts,
    DatasetTurnTaken,
    Describe,
    Described,
    ElementsWritten,
    Open,
    Opened,
    Prepare,
    Prepared,
    ReadCaches,
    Sample,
    Sampled,
    TakeDatasetTurn,
    WriteElements,
)
from advisor.replay.seedings import TWIN

MOST_BYTES = 256 << 20
"""Size above which no further elements are written to a file."""


class HeldText:
    """The datasets of one held script."""

    def __init__(self, session: ProofSession) -> None:
        """Use an entered session."""
        self._session = session
        described = session.ask(Describe(), Described)
        self.datasets: tuple[DatasetFacts, ...] = described.datasets
        """That of the training, then the others."""
        self.is_seeded = described.is_seeded
        self.left_out = described.left_out
        """Number of further datasets, of which nothing is known."""
        self._number = 0

    def open(self, dataset: int, elements: int, seconds: float, passes: Passes | None = None) -> HeldDataset:
        """Begin the comparison of a dataset; the one opened before is closed.

        Args:
            dataset: Its number in `datasets`.
            elements: Limit of one pass.
            seconds: Limit of one pass.
            passes: How the other text's dataset is sampled; None: determined by a first pass.

        Raises:
            AdvisorError: The dataset cannot be rebuilt, or fails.
        """
        opened = self._session.ask(Open(dataset, elements, seconds, passes), Opened)
        return HeldDataset(self, self.datasets[dataset], opened.passes)

    def prepare(self) -> int | None:
        """Bring the training's dataset to its steady state and return the peak memory in bytes; None if unknown.

        Raises:
            AdvisorError: It cannot be benchmarked.
        """
        return self._session.ask(Prepare(), Prepared).peak_bytes

    def turn(self) -> Turn:
        """Run the prepared dataset for one turn.

        Raises:
            AdvisorError: It fails.
        """
        taken = self._session.ask(TakeDatasetTurn(), DatasetTurnTaken)
        return Turn(taken.elements, taken.seconds)

    def sample(
        self, seeding: str, run: int = 0, is_of_rows: bool = False, is_sequential: bool = False
    ) -> Stream | None:
        """Return a stream of the open dataset; None if its elements have no rows.

        Args:
            seeding: How random ops are seeded: one of `advisor.replay.seedings`.
            run: A number not used before samples the dataset again; with a used one, the stream is the same.
            is_of_rows: Whether to return the rows of its batches instead of its elements.
            is_sequential: Whether random functions run one after the other, so that they draw their numbers in a fixed order.
        """
        path = self._path()
        sampled = self._session.ask(Sample(path, seeding, run, is_of_rows, is_sequential), Sampled)
        return read_stream(path) if sampled.is_there else None

    def elements(self, seeding: str, first: int, count: int) -> tuple[list[list[Any]], bool]:
        """Return the components of elements of the open dataset, and whether these are all that were wanted.

        Args:
            seeding: How random ops are seeded: one of `advisor.replay.seedings`.
            first: Number of the first element, from 0.
            count: Number of elements; fewer are returned if they take more than `MOST_BYTES`.
        """
        path = self._path()
        written = self._session.ask(WriteElements(path, seeding, first, count, MOST_BYTES), ElementsWritten)
        return read_elements(path), written.is_whole

    def caches(self) -> Sequence[bool | None]:
        """Return for each cache of the open dataset whether its input is the same every epoch; None: unknown."""
        return self._session.ask(ReadCaches(), CachesRead).repeats

    def _path(self) -> Path:
        self._number += 1
        return self._session.files / f"answer{self._number}.npz"


class HeldDataset:
    """The open dataset of a held text. Streams are sampled once."""

    def __init__(self, text: HeldText, facts: DatasetFacts, passes: Passes) -> None:
        """Describe an open dataset."""
        self.facts, self.passes = facts, passes
        self.is_seeded = text.is_seeded
        self._text = text
        self._streams: dict[tuple[str, int], Stream] = {}
        self._rows: dict[str, Stream | None] = {}
        self._caches: Sequence[bool | None] | None = None

    def stream(self, seeding: str, run: int = 0) -> Stream:
        """Return the stream of all passes; an exception that the dataset raises is in `Stream.error`."""
        key = seeding, run
        if key not in self._streams:
            stream = self._text.sample(seeding, run)
            assert stream is not None
            self._streams[key] = stream
        return self._streams[key]

    def rows(self, seeding: str) -> Stream | None:
        """Return the rows of its batches; None if it has none or not all were reached."""
        if seeding not in self._rows:
            self._rows[seeding] = self._text.sample(seeding, is_of_rows=True)
        return self._rows[seeding]

    def sequential(self) -> Stream:
        """Return the stream of a twin whose random functions run one after the other."""
        stream = self._text.sample(TWIN, is_sequential=True)
        assert stream is not None
        return stream

    def caches(self) -> Sequence[bool | None]:
        """Return for each of its caches whether the input is the same every epoch; None: unknown."""
        if self._caches is None:
            self._caches = self._text.caches()
        return self._caches

    def elements(self, seeding: str, first: int, count: int) -> tuple[list[list[Any]], bool]:
        """Return the components of elements of one pass, and whether these are all that were wanted.

        Args:
            seeding: How random ops are seeded: one of `advisor.replay.seedings`.
            first: Number of the first element, from 0.
            count: Number of elements; fewer are returned if they take more than `MOST_BYTES`.
        """
        return self._text.elements(seeding, first, count)
