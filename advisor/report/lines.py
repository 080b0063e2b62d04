"""Lines on a console.

In: anything that rich renders.  Out: its lines, indented, without the blanks that rich puts at line ends: reports are copied
into issues and logs.
"""

from __future__ import annotations

from rich.console import Console, RenderableType
from rich.text import Text

MIN_WIDTH = 20
"""Nothing is readable in fewer columns."""


def print_lines(console: Console, item: RenderableType, indent: int = 0) -> None:
    """Print `item`, wrapped to the console's width. Text is never read as markup."""
    options = console.options.update(width=max(MIN_WIDTH, console.width - indent), highlight=False, markup=False)
    for line in console.render_lines(item, options, pad=False):
        text = Text.assemble(" " * indent, *((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)
