"""The text of a function that a simulated script defines: `definition` and `line`, for rules that read it.

In: the lines of its body, with what each does to a batch.  Out: a `Definition`, for `map_(...)`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Line:
    """One line in the body of a function that the script defines."""

    text: str
    called: str
    """As in `BatchLine`."""
    ops: tuple[str, ...]
    takes_batches: bool
    """Whether all of its ops treat a batch like each of its elements."""


@dataclass(frozen=True, slots=True)
class Definition:
    """A function that the script defines, with its text."""

    parameters: str
    lines: tuple[Line, ...]

    @property
    def ops(self) -> tuple[str, ...]:
        """The types of its ops."""
        return tuple(op for line in self.lines for op in line.ops)


def definition(parameters: str, *lines: Line) -> Definition:
    """The text of a function that the script defines.

    Args:
        parameters: Its parameters, as they are written.
        *lines: Its body (`line(...)`), of which the last one returns.
    """
    return Definition(parameters, lines)


def line(text: str, called: str = "", ops: Sequence[str] = (), *, takes_batches: bool = False) -> Line:
    """One line in the body of a function.

    Args:
        text: The statement.
        called: Name of the function called in it that makes its ops (`resize`); empty for operators.
        ops: Types of its ops.
        takes_batches: Whether all of them treat a batch like each of its elements.
    """
    return Line(text, called, tuple(ops), takes_batches)
