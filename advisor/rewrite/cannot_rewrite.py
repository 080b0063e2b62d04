"""A change of the source that is not written, and why.

In: nothing.  Out: `CannotRewriteError` inside this package, `CannotRewrite` to its callers.
"""

from __future__ import annotations

from dataclasses import dataclass


class CannotRewriteError(Exception):
    """It is not plain what to change; the message is one sentence for people."""


@dataclass(frozen=True, slots=True)
class CannotRewrite:
    """The change cannot be written safely."""

    reason: str
    """One sentence: what stands against it."""
