"""Names in a profile as text that can harm nobody: strangers may have written them.

In: bytes of a name.  Out: text without control, format or surrogate characters; they show as escapes (`\\x1b`).

Everything that leaves the reader has passed here, so that no terminal, log or page downstream meets them. Markup such as
`<b>` is ordinary text and stays: whoever writes HTML escapes it.
"""

from __future__ import annotations

import unicodedata

MAX_LENGTH = 4096
"""Characters kept of one name; what TensorFlow writes stays far below (the longest seen: 1,600, a list of shapes)."""
_INVISIBLE = frozenset({"Cc", "Cf", "Cs", "Co", "Zl", "Zp"})
"""Unicode categories that can move the cursor, hide or reverse text, or cannot be written."""


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
    return char.encode("unicode_escape").decode("ascii") if unicodedata.category(char) in _INVISIBLE else char
