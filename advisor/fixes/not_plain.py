"""A change of the source that is not written, and why.

In: nothing.  Out: `NotPlainError` inside this package, `NotPlain` to its callers.
"""

from __future__ import annotations

from dataclasses import dataclass


class NotPlainError(Exception):
    """It is not plain what to change; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class NotPlain:
    """The change cannot be written safely."""

    reason: str
    """One sentence: what stands against it."""
