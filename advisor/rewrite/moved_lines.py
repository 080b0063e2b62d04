"""Moves whole lines of a block to another place of less indentation, comments directly above them included.

In: `Source`, consecutive statements of a block, and the place.  Out: the cuts. Lines inside a string keep their indentation.
"""

from __future__ import annotations

from collections.abc import Sequence

import libcst as cst

from advisor.rewrite.splices import Cut, lines_of
from advisor.rewrite.syntax import Source, find_all


def move_lines(
    source: Source, block: Sequence[cst.CSTNode], place: int, indent: str, with_blank_lines: bool
) -> list[Cut]:
    """Move statements to the beginning of a line.

    Args:
        source: The text.
        block: Consecutive statements of one block.
        place: Offset of the beginning of the line before which they go.
        indent: Indentation of the place.
        with_blank_lines: Whether the blank lines that follow them are removed.
    """
    inner = source.indent(block[0])
    start, end = source.line_span(block[0])[0], source.line_span(block[-1])[1]
    lines = lines_of(source.text[place:start])
    while len(lines) > 1 and lines[-1].strip().startswith("#") and lines[-1].startswith(inner):
        start -= len(lines.pop())
    kinds = (cst.SimpleString, cst.FormattedString)
    strings = [source.span(node) for line in block for kind in kinds for node in find_all(line, kind)]
    rest = source.text[end:]
    blank = len(rest) - len(rest.lstrip("\r\n")) if with_blank_lines else 0
    cuts: list[Cut] = []
    position = start
    for text in lines_of(source.text[start:end]):
        stop = position + len(text)
        is_code = not any(begin < position < finish for begin, finish in strings)
        is_indented = is_code and text.startswith(inner)
        removed = stop + blank if stop == end else stop
        skip = len(inner) if is_indented else 0
        cuts.append(Cut(position, removed, position + skip, stop, place, indent if is_indented else ""))
        position = stop
    return cuts
