"""Sanitises names in a profile, which may come from an untrusted source.

In: bytes of a name.  Out: printable text; every other character (control, format, surrogate, unassigned) is escaped.

Every text that the reader returns is sanitised, so that no such character reaches a terminal, a log or a page. Markup such as
`<b>` is not changed; it is escaped where HTML is written.
"""

from __future__ import annotations

from advisor.model.text import printable

MAX_LENGTH = 4096
"""Maximum length of a name in characters; the longest one in known real profiles has 2,065."""


def text(name: bytes) -> str:
    """Decode a name; invalid UTF-8 becomes U+FFFD, and a name that is too long ends in `...`."""
    cut = len(name) > 4 * MAX_LENGTH
    decoded = name[: 4 * MAX_LENGTH].decode(errors="replace")
    if cut or len(decoded) > MAX_LENGTH:
        decoded = decoded[: MAX_LENGTH - 3] + "..."
    return printable(decoded)


def message_text(message: bytes) -> str:
    """Convert a message to text on one line."""
    return " ".join(text(b" ".join(message.split())).split())
