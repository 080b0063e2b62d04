"""The calls that made a script's datasets, in a form in which two runs of two texts can be compared.

In: nothing.  Out: `CallIdentity` and `CallGraph`, which cross from the proof's child process to its parent. No line numbers are
compared: they differ between a script and its patched text.
"""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class CallIdentity:
    """What one recorded call is, apart from where it is written."""

    id: str
    method: str
    inputs: tuple[str, ...] = ()
    """Ids of the calls whose datasets it is given, in order."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Parameter -> its value at the time of the call: scalars as Python writes them, functions and large values by digest."""
    given: tuple[str, ...] = ()
    """Parameters whose value is not the default."""
    options: dict[str, str] = field(default_factory=dict)
    """For `with_options`: option -> value."""
    traced: str = ""
    """Digest of the graphs that TensorFlow traced of its functions; empty: none, or they cannot be read."""
    input_spec: str = ""
    """Digest of the element specs of its inputs: only functions traced for the same spec have the same graph."""
    outer: str | None = None
    """Id of the call whose function made this one."""
    line: int | None = None
    """Where it is written, for messages."""
    is_new: bool = False
    """Added by an edit: only the arguments that the edit gives are known, all others are defaults."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """All calls of a script up to the moment when its training asks for the first element."""

    calls: tuple[CallIdentity, ...]
    """In the order in which they were made."""
    consumer: str
    """Id of the call whose dataset the training consumes."""
    consumption: int = 0
    """Number of the consumption, counted from 1, at which the script was held: looks at other datasets come before it."""
