"""State outside a pipeline that its elements depend on, and what the recording saw of it.

In: nothing.  Out: `CapturedResource`s of a function and `ObservedState`, stored in a run folder's `recording.json`.

Elements depend on more than files and functions: a map may read a variable or a table that the training loop changes between
epochs, and the script may rewrite the files that it trains on. A cache would freeze what was read in the first epoch.
"""

from __future__ import annotations

from dataclasses import dataclass

STATIC_TABLE = "static table"
MUTABLE_TABLE = "mutable table"
VARIABLE = "variable"
RANDOM_GENERATOR = "random generator"
QUEUE = "queue"
ITERATOR = "iterator"
SUMMARY_WRITER = "summary writer"
DATASET = "dataset"
PYTHON_OBJECT = "Python object"
FILE = "file"
UNKNOWN = "resource"

CONSTANT_KINDS = frozenset({STATIC_TABLE})
"""They are filled once and can never change."""
OBSERVABLE_KINDS = frozenset({VARIABLE, MUTABLE_TABLE})
"""Their contents can be compared from epoch to epoch."""


@dataclass(frozen=True, slots=True)
class CapturedResource:
    """A resource that a function reads from outside, identified by the object that owns it."""

    kind: str
    """One of the constants of this module."""
    name: str = ""
    """As the script calls it (`table`, `self.scale`), else its own name; empty: unknown."""
    id: str = ""
    """Of its `ObservedState`; of a dataset, the call that made it. Empty: it is not watched."""


@dataclass(frozen=True, slots=True)
class StateChange:
    """A change that was seen after the pipeline had begun its first epoch."""

    how: str
    """In the past tense, with the state as its subject: `was assigned`, `changed`, `was opened for writing`."""
    epoch: int
    """The epoch of the pipeline in which it happened or which it preceded, from 1."""
    file: str = ""
    """Where the script made the change; empty: unknown."""
    line: int = 0


@dataclass(frozen=True, slots=True)
class ObservedState:
    """One variable, table, Python object or file that a pipeline reads, and whether it stayed the same."""

    id: str
    kind: str
    name: str
    call_ids: tuple[str, ...] = ()
    """The calls whose elements depend on it."""
    epochs: int = 0
    """How many epochs of the pipeline began with a comparison; below two, nothing is known of changes between epochs."""
    is_compared: bool = True
    """False: its contents could not be read or are too large, so that only assignments by the script's own code are seen."""
    is_written_before: bool = False
    """Files: the script wrote it before the pipeline read it, so it may write it again."""
    change: StateChange | None = None
    """The first change; None: none was seen."""
