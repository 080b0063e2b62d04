"""The rules' documentation: one line per rule for `advisor rules`, the whole page for `advisor explain RULE`.

In: loaded rules.  Out: lines on a console.
"""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Console
from rich.markdown import Markdown
from rich.table import Table
from rich.text import Text

from advisor.engine import LoadedRule
from advisor.report.lines import print_lines
from advisor.report.places import clean


def print_rules(rules: Sequence[LoadedRule], console: Console) -> None:
    """Print a line per rule: its id and the problem it detects."""
    table = Table(box=None, show_header=False, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(no_wrap=True)
    table.add_column(overflow="fold")
    for loaded in sorted(rules, key=lambda loaded: loaded.id):
        summary = " ".join(clean(loaded.page.summary, keep_newlines=True).split())
        name = Text.assemble((loaded.id, "bold"), "" if loaded.is_shipped else f" ({clean(str(loaded.path))})")
        table.add_row(name, Text(summary))
    print_lines(console, table)


def print_page(loaded: LoadedRule, console: Console) -> None:
    """Print the rule's page: its summary and sections, rendered from Markdown."""
    page = loaded.page
    sections = "\n\n".join(f"## {heading}\n\n{text}" for heading, text in page.sections.items())
    text = f"# {loaded.id}\n\n{page.summary}\n\n{sections}\n"
    print_lines(console, Markdown(clean(text, keep_newlines=True), hyperlinks=False))
