"""Types for a change that cannot be written: `CannotRewriteError` inside this package, `CannotRewrite` for its callers."""

from __future__ import annotations

from dataclasses import dataclass


class CannotRewriteError(Exception):
    """It is unclear how to change the text; the message is one sentence for the user."""


@dataclass(frozen=True, slots=True)
class CannotRewrite:
    """The change cannot be written safely."""

    reason: str
    """One sentence for the user."""
