"""Names in a profile as text that can harm nobody: strangers may have written them.

In: bytes of a name.  Out: printable text; every other character (control, format, surrogate, unassigned) shows as an escape.

Everything that leaves the reader has passed here, so that no terminal, log or page downstream meets them. Markup such as
`<b>` is ordinary text and stays: whoever writes HTML escapes it.
"""

from __future__ import annotations

MAX_LENGTH = 4096
"""Characters kept of one name; the longest in the real profiles seen has 2,065."""


def text(name: bytes) -> str:
    """A name as text; broken UTF-8 shows as U+FFFD, the end of a name that is too long as `...`."""
    cut = len(name) > 4 * MAX_LENGTH
    decoded = name[: 4 * MAX_LENGTH].decode(errors="replace")
    if cut or len(decoded) > MAX_LENGTH:
        decoded = decoded[: MAX_LENGTH - 3] + "..."
    if decoded.isprintable():  # nearly always; in ASCII all that is not printable is a control character
        return decoded
    return "".join(_visible(char) for char in decoded)


def one_line(message: bytes) -> str:
    """A message as text on one line."""
    return " ".join(text(b" ".join(message.split())).split())


def _visible(char: str) -> str:
    return char if char.isprintable() else char.encode("unicode_escape").decode("ascii")
