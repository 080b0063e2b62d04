"""The error for a function whose text is not cut."""

from __future__ import annotations


class CannotSplitError(Exception):
    """A function cannot be cut safely.

    Args:
        reason: Why, as a clause that ends a sentence.
        line: The line at which it could be cut by hand; None if unknown.
    """

    def __init__(self, reason: str, line: int | None = None) -> None:
        super().__init__(reason)
        self.reason = reason
        """Why, as a clause that ends a sentence."""
        self.line = line
        """The line at which it could be cut by hand; None if unknown."""
