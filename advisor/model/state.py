"""State outside a pipeline that its elements depend on, and the changes that were recorded.

`CapturedResource` and `ObservedState` are stored in `recording.json`.

Elements depend on more than files and functions: a map may read a variable or a table that the training loop changes between
epochs, and the script may rewrite the files that it trains on. A cache would preserve the state of the first epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

STATIC_TABLE = "static table"
MUTABLE_TABLE = "mutable table"
VARIABLE = "variable"
QUEUE = "queue"
ITERATOR = "iterator"
SUMMARY_WRITER = "summary writer"
DATASET = "dataset"
PYTHON_OBJECT = "Python object"
FILE = "file"
UNKNOWN = "resource"

CONSTANT_KINDS = frozenset({STATIC_TABLE})
"""Kinds that are filled once and never change."""
OBSERVABLE_KINDS = frozenset({VARIABLE, MUTABLE_TABLE})
"""Kinds whose contents can be compared between epochs."""


@dataclass(frozen=True, slots=True)
class CapturedResource:
    """A resource that a function captures, identified by the object that owns it."""

    kind: str
    """One of the constants of this module."""
    name: str = ""
    """Its name in the script (`table`, `self.scale`), or else the name of the resource; empty if unknown."""
    id: str = ""
    """Id of its `ObservedState`; for a dataset, the call that created it. Empty if it is not observed."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change that was observed after the pipeline began its first epoch."""

    how: str
    """A verb in the past tense with the state as its subject: `was assigned`, `changed`, `was opened for writing`."""
    epoch: int
    """The epoch of the pipeline, from 1, during or before which it happened."""
    file: str = ""
    """The file whose code made the change; empty if unknown."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ObservedState:
    """One variable, table, Python object or file that a pipeline reads, and whether it changed."""

    id: str
    kind: str
    name: str
    call_ids: tuple[str, ...] = ()
    """The calls whose elements depend on it."""
    epochs: int = 0
    """Number of epochs that began with a comparison; with fewer than two, changes between epochs are unknown."""
    is_compared: bool = True
    """False if its contents cannot be read or are too large, so that only assignments in the script's code are observed."""
    is_written_before: bool = False
    """Files: whether the script wrote the file before the pipeline read it, so that it may write it again."""
    change: StateChange | None = None
    """The first change; None if none was observed."""
