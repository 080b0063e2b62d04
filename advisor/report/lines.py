"""Prints rich renderables without trailing blanks.

In: a rich renderable.  Out: its lines, indented, without the padding that rich adds at line ends, because reports are copied into
issues and logs.
"""

from __future__ import annotations

from collections.abc import Iterable

from rich.console import Console, RenderableType
from rich.text import Text

from advisor.model.long_lines import shorten_line
from advisor.report.places import clean

MIN_WIDTH = 20
"""Minimum width in columns, even on a narrower console."""


def print_lines(console: Console, item: RenderableType, indent: int = 0) -> None:
    """Print `item`, wrapped to the console's width and indented by `indent` columns. Markup in texts is not interpreted.

    Args:
        console: Where to print.
        item: A text, a table or anything else that rich renders.
        indent: Number of columns to the left of it.
    """
    options = console.options.update(width=max(MIN_WIDTH, console.width - indent), highlight=False, markup=False)
    for line in console.render_lines(item, options, pad=False):
        text = Text.assemble(" " * indent, *((segment.text, segment.style or "") for segment in line))
        text.rstrip()
        console.print(text, soft_wrap=True)


def print_section(console: Console, title: str, content: Iterable[RenderableType]) -> None:
    """Print a heading and, indented, the content.

    Args:
        console: Where to print.
        title: The heading.
        content: What rich renders, one below the other.
    """
    console.print()
    print_lines(console, Text(title, "bold underline"))
    for item in content:
        print_lines(console, item, indent=2)


def print_list(console: Console, title: str, lines: Iterable[str]) -> None:
    """Print a section with one item per line; nothing if there are none. Texts may come from a profile.

    Args:
        console: Where to print.
        title: The heading.
        lines: The items; control characters are escaped.
    """
    items = [Text.assemble(("- ", "dim"), clean(line)) for line in lines]
    if items:
        print_section(console, title, items)


def diff_text(diff: str) -> Text:
    """Return a unified diff with its colours; very long lines are cut."""
    text = Text(overflow="fold")
    for number, line in enumerate(diff.splitlines()):
        is_heading = line.startswith(("+++", "---", "@@"))
        style = "dim" if is_heading else {"+": "green", "-": "red"}.get(line[:1], "")
        text.append(("\n" if number else "") + clean(shorten_line(line)), style)
    return text
