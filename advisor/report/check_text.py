"""The text report of `advisor check`.

In: a `Check` and a rich console.  Out: lines on that console: the result, one row per budget, new findings, the baseline.
"""

from __future__ import annotations

from rich.console import Console
from rich.table import Table
from rich.text import Text

from advisor.model import units
from advisor.model.check_result import BudgetOutcome, Check, CheckedFinding
from advisor.report import check_words as words
from advisor.report.lines import print_lines, print_list
from advisor.report.places import clean, place

MAX_FINDINGS = 20
"""New findings shown; the JSON lists all of them."""
_STYLES = {"ok": "green", "warn": "yellow", "error": "bold red"}


def print_check(check: Check, console: Console) -> None:
    """Print the check."""
    severities = [outcome.severity for outcome in check.outcomes]
    worst = next((severity for severity in ("error", "warn") if severity in severities), "ok")
    print_lines(console, Text(clean(words.headline(check)), f"bold {_STYLES[worst]}"))
    if check.outcomes:
        console.print()
        print_lines(console, _table(check.outcomes), indent=2)
    told = [outcome.sentence for outcome in check.outcomes if outcome.severity != "ok" or outcome.value is None]
    print_list(console, "Details", told)
    if check.new_findings:
        console.print()
        print_lines(console, Text("New findings", "bold underline"))
        for finding in check.new_findings[:MAX_FINDINGS]:
            print_lines(console, _finding(finding, len(check.run_folders)), indent=2)
        if len(check.new_findings) > MAX_FINDINGS:
            print_lines(console, Text(f"... and {len(check.new_findings) - MAX_FINDINGS} more"), indent=2)
        print_lines(console, Text(words.what_to_do(), "dim"), indent=2)
    print_list(console, "Base", words.base_sentences(check))
    print_list(console, "Baseline", words.baseline_sentences(check.baseline) if check.baseline else [])
    print_list(console, "Notes", check.notes)


def _table(outcomes: tuple[BudgetOutcome, ...]) -> Table:
    table = Table(box=None, show_edge=False, pad_edge=False, padding=(0, 2, 0, 0), header_style="dim")
    for title in ("budget", "limit", "measured", "result"):
        table.add_column(title, overflow="fold")
    for outcome in outcomes:
        limit = f"{words.limit_cell(outcome)}{' of the base' if outcome.unit == 'ratio' else ''}"
        result = Text(words.result_cell(outcome), _STYLES[outcome.severity])
        table.add_row(clean(words.budget_cell(outcome)), limit, words.measured_cell(outcome), result)
    return table


def _finding(finding: CheckedFinding, num_runs: int) -> Text:
    text = Text.assemble(("- ", "dim"))
    if finding.site is not None:
        text.append_text(place(finding.site)).append(" ")
    text.append(f"{clean(finding.call)}: " if finding.call else "").append(clean(finding.title))
    gain = finding.prediction
    if gain is not None:
        text.append(f", predicted {units.format_range(gain.value, gain.low, gain.high)}")
    if num_runs > 1:
        text.append(f", in {finding.runs} of {num_runs} runs")
    return text.append(f" ({clean(finding.rule)})", "dim")
