"""Makes untrusted text safe for a terminal, the messages of exceptions part of a sentence, and suggests names."""

from __future__ import annotations

import difflib
import unicodedata
from collections.abc import Iterable


def printable(text: str, keep: str = "") -> str:
    r"""Return `text` with every character that is neither printable nor a space as an escape (`\x1b`).

    These are control, format, surrogate, private and unassigned characters and line separators, which can move the cursor, hide
    or reverse text, or cannot be written.

    Args:
        text: Any text.
        keep: Characters that stay as they are.
    """
    if text.isprintable():  # almost always
        return text
    return "".join(char if char in keep or _is_visible(char) else _escape(char) for char in text)


def one_line(text: str) -> str:
    """Return `text` with a single space in place of line breaks and runs of spaces."""
    return " ".join(text.split())


def message_of(error: BaseException) -> str:
    """Return the message of an exception on one line, without a full stop."""
    return one_line(str(error)).rstrip(".")


def reason_of(error: BaseException) -> str:
    """Return the operating system's reason, the message, or else the type of an exception; without a full stop."""
    return (getattr(error, "strerror", None) or message_of(error) or type(error).__name__).rstrip(".")


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return ` Did you mean X?` if one of `choices` is similar to `word`, or an empty string."""
    near = difflib.get_close_matches(word, list(choices), n=1)
    return f" Did you mean {near[0]}?" if near else ""


def _is_visible(char: str) -> bool:
    return char.isprintable() or unicodedata.category(char) == "Zs"


def _escape(char: str) -> str:
    return char.encode("unicode_escape").decode("ascii")
