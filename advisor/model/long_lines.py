"""Lines too long to read, shortened.

In: text of any length.  Out: the same text, of each long line its beginning and the number of characters left out. Minified or
generated files hold lines of hundreds of kilobytes, which would bury a report or a traceback.
"""

from __future__ import annotations

MAX_SOURCE_LINE = 400
"""Characters of a source line in a report: several lines of a wide terminal."""
MAX_OUTPUT_LINE = 2_000
"""Characters of a line that the user's script wrote to stderr."""


def shorten_line(line: str, most: int = MAX_SOURCE_LINE) -> str:
    """The first `most` characters of a line, and how many follow."""
    left_out = len(line) - most
    return line if left_out <= 0 else f"{line[:most]}... ({left_out:,} more characters)"


def shorten_lines(text: str, most: int = MAX_OUTPUT_LINE) -> str:
    """`text` with each line shortened; line ends stay as they are."""
    if len(text) <= most:
        return text
    lines = text.splitlines(keepends=True)
    bodies = [line.rstrip("\r\n") for line in lines]
    return "".join(shorten_line(body, most) + line[len(body) :] for body, line in zip(bodies, lines, strict=True))
