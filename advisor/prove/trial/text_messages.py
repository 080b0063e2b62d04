"""Messages by which two texts of a script are compared, each held in a process of its own.

In: what the driver (`advisor.prove.texts.held_text`) asks.  Out: what the child (`advisor.prove.trial.text_answers`) answers.
Datasets have numbers: 0 is the one that the training consumes, the others are those that nothing else uses as an input.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from advisor.prove.trial.elements.compared_streams import Passes


@dataclass(frozen=True, slots=True)
class DatasetFacts:
    """A dataset of the held script."""

    name: str
    """For messages: `the dataset of batch at line 12`."""
    spec: str
    cardinality: int
    """Elements per epoch, or a negative number as in tf.data."""
    is_batched: bool


class Describe(msgspec.Struct, frozen=True, tag=True):
    """Describe the datasets; answered with `Described`."""


class Described(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Describe`."""

    datasets: tuple[DatasetFacts, ...]
    is_seeded: bool
    """Whether the script fixes a seed that affects its datasets."""
    left_out: int
    """Number of further datasets."""


class Open(msgspec.Struct, frozen=True, tag=True):
    """Begin the comparison of a dataset; answered with `Opened`."""

    dataset: int
    elements: int
    seconds: float
    """Limits for one pass."""
    passes: Passes | None
    """How the other text's dataset is sampled; None: determined by a first pass over this one."""


class Opened(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Open`."""

    passes: Passes


class Sample(msgspec.Struct, frozen=True, tag=True):
    """Write a stream of the open dataset to a file; answered with `Sampled`."""

    out: Path
    seeding: str
    run: int = 0
    is_of_rows: bool = False
    """Write the rows of its batches."""
    is_sequential: bool = False
    """Let random functions run one after the other, so that they draw their numbers in a fixed order."""


class Sampled(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Sample`."""

    is_there: bool
    """False: the elements are no batches, or not all rows were reached; nothing was written."""


class ReadCaches(msgspec.Struct, frozen=True, tag=True):
    """Whether the inputs of the caches of the open dataset are the same every epoch; answered with `CachesRead`."""


class CachesRead(msgspec.Struct, frozen=True, tag=True):
    """The answer to `ReadCaches`."""

    repeats: tuple[bool | None, ...]
    """One per cache; None: unknown."""


class WriteElements(msgspec.Struct, frozen=True, tag=True):
    """Write elements of one pass over the open dataset to a file; answered with `ElementsWritten`."""

    out: Path
    seeding: str
    first: int
    count: int
    most_bytes: int


class ElementsWritten(msgspec.Struct, frozen=True, tag=True):
    """The answer to `WriteElements`."""

    is_whole: bool
    """False: `most_bytes` was reached."""


class Prepare(msgspec.Struct, frozen=True, tag=True):
    """Fill the caches of the training's dataset and run it until it is in its steady state; answered with `Prepared`."""


class Prepared(msgspec.Struct, frozen=True, tag=True):
    """The answer to `Prepare`."""

    peak_bytes: int | None
    """Peak resident memory of the process meanwhile."""


class TakeDatasetTurn(msgspec.Struct, frozen=True, tag=True):
    """Run the prepared dataset for one turn of a benchmark; answered with `DatasetTurnTaken`."""


class DatasetTurnTaken(msgspec.Struct, frozen=True, tag=True):
    """The answer to `TakeDatasetTurn`."""

    elements: int
    seconds: float


TextRequest = Describe | Open | Sample | ReadCaches | WriteElements | Prepare | TakeDatasetTurn
TextReply = Described | Opened | Sampled | CachesRead | ElementsWritten | Prepared | DatasetTurnTaken
