"""The calls that create a script's datasets, in a form that allows comparing the runs of a script and of its patched text.

`CallIdentity` and `CallGraph` are sent from the proof's child process to its parent. Line numbers are not compared, because they
differ between a script and its patched text.
"""

from __future__ import annotations

from dataclasses import dataclass, field

CALLS_NAME = "calls.json"
"""The `CallGraph` of a run, in its run folder."""


@dataclass(frozen=True, slots=True)
class CallIdentity:
    """The identity of one recorded call, independent of its location."""

    id: str
    method: str
    inputs: tuple[str, ...] = ()
    """Ids of the calls whose datasets it consumes, in order."""
    arguments: dict[str, str] = field(default_factory=dict)
    """Parameter -> its value at the time of the call: scalars as `repr`, functions and large values as digests."""
    given: tuple[str, ...] = ()
    """Parameters with a value other than the default."""
    options: dict[str, str] = field(default_factory=dict)
    """For `with_options`: option -> value."""
    traced: str = ""
    """Digest of the graphs that TensorFlow traced of its functions; empty if there are none or they cannot be read."""
    input_spec: str = ""
    """Digest of the element specs of its inputs; only functions traced for the same spec have the same graph."""
    outer: str | None = None
    """Id of the call whose function made this call."""
    line: int | None = None
    """Line of the call, for messages."""
    is_wrapped: bool = False
    """Whether an edit wraps its function, or moves it out of another, so that it is identified by `traced` alone."""
    has_new_function: bool = False
    """Whether an edit passes it another function: the datasets that the function makes are part of its traced graph."""
    is_shortened: bool = False
    """Whether an edit moves a call out of its function, which then reads fewer values from outside."""
    is_new: bool = False
    """Whether an edit added the call. Only the arguments in the edit are known; all others are defaults."""


@dataclass(frozen=True, slots=True)
class CallGraph:
    """All calls of a script before the training requests its first element."""

    calls: tuple[CallIdentity, ...]
    """In execution order."""
    consumer: str
    """Id of the call whose dataset the training consumes."""
    consumption: int = 0
    """Number of the consumption (from 1) at which the script was paused; the script may have read other datasets before."""
    wrapped: dict[str, tuple[str, str]] = field(default_factory=dict)
    """Call id -> (`traced`, `input_spec`) with the kept edits, for calls whose function one of these edits wraps or moves
    out of another."""
