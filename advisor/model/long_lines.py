"""Shortens long lines.

In: text of any length.  Out: the same text, with long lines cut off and followed by the number of omitted characters. Minified or
generated files can contain lines of hundreds of kilobytes, which would make a report or a traceback unreadable.
"""

from __future__ import annotations

MAX_SOURCE_LINE = 400
"""Maximum length of a source line in a report, in characters: several lines of a wide terminal."""
MAX_OUTPUT_LINE = 2_000
"""Maximum length of a line that the user's script wrote to stderr, in characters."""


def shorten_line(line: str, most: int = MAX_SOURCE_LINE) -> str:
    """Return the first `most` characters of a line and the number of omitted characters."""
    left_out = len(line) - most
    return line if left_out <= 0 else f"{line[:most]}... ({left_out:,} more characters)"


def shorten_lines(text: str, most: int = MAX_OUTPUT_LINE) -> str:
    """Shorten every line of a text; line endings are kept."""
    if len(text) <= most:
        return text
    lines = text.splitlines(keepends=True)
    bodies = [line.rstrip("\r\n") for line in lines]
    return "".join(shorten_line(body, most) + line[len(body) :] for body, line in zip(bodies, lines, strict=True))
