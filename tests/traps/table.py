"""The rows as a table in docs/traps.md.

In: `Row`s.  Out: lines of Markdown; the page, changed between its own markers.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path

from tests.traps.judging import Row, Tool

ROOT = Path(__file__).parents[2]
DOCS = ROOT / "docs" / "traps.md"


def table_lines(rows: Sequence[Row], seconds: float | None, tool: Tool) -> list[str]:
    """One line per script into which something was written or that could not be judged; the rest is counted."""
    levels = tuple(dict.fromkeys(row.level for row in rows))
    names = tuple(dict.fromkeys(row.trap for row in rows))
    how = "applied regardless of its speed" if tool.is_regardless_of_speed else f"--budget {tool.budget_s:.0f}s"
    took = "" if seconds is None else f" in {seconds / 60:.0f} min"
    asked = ", every rule asked for by name" if tool.only else ""
    lines = [
        f"{_machine()} {len(names)} traps{took}; {how}{asked}.",
        "",
        "| level | judged | written | harmed |",
    ]
    lines.append("|---|---|---|---|")
    for level in levels:
        here = [row for row in rows if row.level == level]
        judged = sum(not row.is_failed for row in here)
        written, harmed = sum(bool(row.fixes) for row in here), sum(bool(row.harmed) for row in here)
        lines.append(f"| {level} | {judged} | {written} | {harmed} |")
    lines += ["", "| trap | level | written | harmed |", "|---|---|---|---|"]
    by_outcome: dict[tuple[str, str, str], list[str]] = {}
    for row in rows:
        if row.fixes or row.harmed or row.is_failed:
            outcome = f"not judged: {row.note}" if row.is_failed else ", ".join(row.harmed) or "no"
            by_outcome.setdefault((row.trap, ", ".join(row.fixes) or "nothing", outcome), []).append(row.level)
    for (trap, fixes, outcome), its_levels in by_outcome.items():
        where = "all" if tuple(its_levels) == levels and len(levels) > 1 else ", ".join(its_levels)
        lines.append(f"| {trap} | {where} | {fixes} | {outcome} |".replace("\n", " "))
    return lines


def write_table(section: str, lines: Sequence[str]) -> None:
    """Put the lines between the section's markers in docs/traps.md."""
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from published import write_section

    write_section(section, lines, DOCS)


def _machine() -> str:
    sys.path.insert(0, str(ROOT / "benchmarks"))
    from published import machine_sentence

    return machine_sentence()
