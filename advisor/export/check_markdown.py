"""The result of `advisor check` as Markdown, for the summary of a CI job.

In: a `Check`.  Out: GitHub-flavoured Markdown; text from the run is escaped as in `markdown.py`.
"""

from __future__ import annotations

from collections.abc import Iterator

from advisor.export import markdown
from advisor.model import units
from advisor.model.check_result import Check, CheckedFinding
from advisor.model.own_files import MARKDOWN_MARK
from advisor.model.version import __version__
from advisor.report import check_words as words
from advisor.report.html.wording import shorten
from advisor.report.places import clean, display_path

MAX_FINDINGS = 50
"""Maximum number of new findings listed."""
_MARKS = {"ok": "✅", "warn": "⚠️", "error": "❌"}


def check_to_markdown(check: Check) -> str:
    """Return the result, a table of the budgets, the new findings and what happened to the baseline."""
    return "\n".join(_lines(check)).rstrip() + "\n"


def _lines(check: Check) -> Iterator[str]:
    yield MARKDOWN_MARK
    yield f"### {'✅' if check.is_passed else '❌'} tf.data: {_plain(words.headline(check))}"
    yield ""
    if check.outcomes:
        yield "| | budget | limit | measured | result |"
        yield "|---|---|---|---|---|"
    for outcome in check.outcomes:
        limit = f"{words.limit_cell(outcome)}{' of the base' if outcome.unit == 'ratio' else ''}"
        cells = (words.budget_cell(outcome), limit, words.measured_cell(outcome), words.result_cell(outcome))
        yield f"| {_MARKS[outcome.severity]} | {' | '.join(map(_plain, cells))} |"
    yield ""
    for outcome in check.outcomes:
        if outcome.severity != "ok" or outcome.value is None:
            yield f"* {_plain(outcome.sentence)}"
    if check.new_findings:
        yield ""
        yield "| new finding | where | call | predicted |"
        yield "|---|---|---|---|"
        for finding in check.new_findings[:MAX_FINDINGS]:
            yield _row(finding)
        if len(check.new_findings) > MAX_FINDINGS:
            yield f"| and {len(check.new_findings) - MAX_FINDINGS} more | | | |"
        yield ""
        yield words.what_to_do()
    yield ""
    told = (*words.base_sentences(check), *(words.baseline_sentences(check.baseline) if check.baseline else ()))
    for sentence in (*told, *check.notes):
        yield f"* {_plain(sentence)}"
    yield ""
    yield f"<sub>Target {_code(check.target)}, tfdata-advisor {_plain(__version__)}.</sub>"


def _row(finding: CheckedFinding) -> str:
    gain = finding.prediction
    predicted = "" if gain is None else units.format_range(gain.value, gain.low, gain.high)
    where = "" if finding.site is None else _code(f"{display_path(finding.site.file)}:{finding.site.line}")
    return (
        f"| {_plain(finding.title)} ({_code(finding.rule)}) | {where} | {_code(finding.call)} | {_plain(predicted)} |"
    )


def _plain(text: str) -> str:
    return markdown.plain(clean(shorten(text)))


def _code(text: str) -> str:
    return markdown.code(clean(shorten(text)))
