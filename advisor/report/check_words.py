"""The first line of `advisor check` and the cells of its table, for the terminal and for Markdown.

In: a `Check`.  Out: plain text.
"""

from __future__ import annotations

from advisor.model import units
from advisor.model.budgets import FINDINGS, INPUT_WAIT, MEMORY, STEP_TIME
from advisor.model.check_result import FAILED, NOT_MEASURED, SKIPPED, BaselineUse, BudgetOutcome, Check
from advisor.report.places import display_path

NAMES = {INPUT_WAIT: "input wait", STEP_TIME: "step time", MEMORY: "peak memory", FINDINGS: "new findings"}
MAX_FILES = 3
"""Files of the base revision that are named; the JSON lists all of them."""


def headline(check: Check) -> str:
    """Return the result in one sentence."""
    failed = [outcome for outcome in check.outcomes if outcome.severity == "error"]
    warned = [outcome for outcome in check.outcomes if outcome.severity == "warn"]
    decided = [outcome for outcome in check.outcomes if outcome.result != SKIPPED]
    if failed:
        return f"Check failed: {_listed(failed)}."
    if not decided:
        return "Nothing was checked: no budget applies."
    if warned:
        return f"Check passed with {units.format_many(len(warned), 'warning')}: {_listed(warned)}."
    return f"Check passed: {units.format_many(len(decided), 'budget')} kept."


def budget_cell(outcome: BudgetOutcome) -> str:
    """Return the name of the quantity, with the loop if it is not the training loop."""
    name = NAMES[outcome.budget.quantity]
    return f"{name} of {outcome.loop}" if outcome.loop else name


def limit_cell(outcome: BudgetOutcome) -> str:
    """Return the limit."""
    return units.format_value(outcome.limit, outcome.unit)


def measured_cell(outcome: BudgetOutcome) -> str:
    """Return the measured value, with the interval of a ratio and the range of several runs."""
    if outcome.value is None:
        return "-"
    if outcome.interval is not None:
        return units.format_interval(outcome.interval)
    text = units.format_value(outcome.value, outcome.unit)
    if len(outcome.values) < 2:
        return text
    low, high = (units.format_value(end(outcome.values), outcome.unit) for end in (min, max))
    return f"{text} ({low} to {high} in {len(outcome.values)} runs)"


def result_cell(outcome: BudgetOutcome) -> str:
    """Return the result; a limit that was exceeded is `failed` only at the level `error`."""
    if outcome.severity == "warn":
        return "warning" if outcome.result == FAILED else f"warning: {outcome.result}"
    return (
        f"failed: {outcome.result}"
        if outcome.result == NOT_MEASURED and outcome.severity == "error"
        else outcome.result
    )


def what_to_do() -> str:
    """Say what can be done about new findings."""
    return "`advisor fix` tries the changes; `advisor check --update-baseline` records the findings as known."


def baseline_sentences(use: BaselineUse) -> list[str]:
    """Say what the baseline holds and how it was changed."""
    verb = "is" if use.known == 1 else "are"
    known = f"{_findings(use.known)} {verb} known from {display_path(use.path)}."
    sentences = [known] if use.is_present or use.is_written else []
    if use.is_written and use.added:
        sentences.append(f"Added to it: {_findings(sum(entry.count for entry in use.added))}.")
    if use.is_written and use.removed:
        gone = _findings(sum(entry.count for entry in use.removed))
        sentences.append(f"Removed from it, because no longer found: {gone}. Commit the smaller file.")
    return [*sentences, use.note] if use.note else sentences


def base_sentences(check: Check) -> list[str]:
    """Say what was compared with the base revision."""
    base = check.base
    if base is None:
        return []
    commit = base.commit[:12]
    if base.is_same_text:
        return [f"No Python file differs from {base.revision} ({commit}), so nothing was compared."]
    names = ", ".join(base.files[:MAX_FILES])
    more = f" and {len(base.files) - MAX_FILES} more" if len(base.files) > MAX_FILES else ""
    runs = f"{units.format_many(base.turns, 'pair')} of alternating runs against {base.revision} ({commit})"
    times = ""
    if base.base_step_ns is not None and base.head_step_ns is not None:
        times = (
            f": a step takes {units.format_ns(base.base_step_ns)} there and {units.format_ns(base.head_step_ns)} now"
        )
    told = [f"{runs}{times}. Files that differ: {names}{more}." if base.files else f"{runs}{times}."]
    told += [] if base.test is None else base.test.sentences
    return [*told, base.note] if base.note and base.step_ratio is not None else told


def _listed(outcomes: list[BudgetOutcome]) -> str:
    """Return the names of the quantities, each once."""
    return ", ".join(dict.fromkeys(map(budget_cell, outcomes)))


def _findings(count: int) -> str:
    return units.format_many(count, "finding")
