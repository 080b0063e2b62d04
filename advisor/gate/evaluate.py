"""Decides whether budgets are kept.

In: the budgets of a script, reports of its runs, the number of new findings, and the comparison with the base revision.
Out: a `BudgetOutcome` for each limit.

What was not measured never passes in silence: it has the level of its budget, or `not_measured`. A comparison whose interval
includes the limit is `unclear` and a warning, whatever the level; of another loop than the training loop, it is no warning.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from advisor.model import units
from advisor.model.budgets import FINDINGS, INPUT_WAIT, MEMORY, STEP_TIME, UNITS, Budget
from advisor.model.check_result import (
    FAILED,
    NOT_MEASURED,
    PASSED,
    SKIPPED,
    UNCLEAR,
    BaseComparison,
    BudgetOutcome,
    LoopRatio,
)
from advisor.model.outcome import Interval, Report

NAMES = {INPUT_WAIT: "Input wait", STEP_TIME: "Step time", MEMORY: "Peak memory", FINDINGS: "New findings"}
_OK, _WARN = "ok", "warn"


@dataclass(frozen=True, slots=True)
class Measured:
    """What the budgets are applied to."""

    reports: Sequence[Report]
    """One per run."""
    new_findings: Sequence[int] | None = None
    """Number of findings of each run that the baseline lacks; None if they were not counted."""
    num_new: int = 0
    """The same, aggregated over the runs."""
    base: BaseComparison | None = None
    """None without `--against`."""


def evaluate(budgets: Sequence[Budget], measured: Measured) -> tuple[BudgetOutcome, ...]:
    """Return an outcome for each absolute limit and for each ratio, in the order of the budgets."""
    outcomes: list[BudgetOutcome] = []
    for budget in budgets:
        if budget.limit is not None:
            outcomes.append(_absolute(budget, budget.limit, measured))
        if budget.ratio_limit is not None:
            outcomes.append(_relative(budget, budget.ratio_limit, measured.base))
            if budget.quantity == STEP_TIME and measured.base is not None:
                outcomes += [_of_loop(budget, budget.ratio_limit, measured.base, loop) for loop in measured.base.loops]
    return tuple(outcomes)


def aggregate(values: Sequence[float], aggregation: str) -> float:
    """Return the lowest value (`optimistic`), the highest (`pessimistic`) or the median."""
    chosen: Mapping[str, Callable[[Sequence[float]], float]] = {"optimistic": min, "pessimistic": max}
    return chosen.get(aggregation, statistics.median)(values)


def _absolute(budget: Budget, limit: float, measured: Measured) -> BudgetOutcome:
    unit, name = UNITS[budget.quantity], NAMES[budget.quantity]
    allowed = units.format_value(limit, unit)
    values = _values(budget.quantity, measured)
    if not values:
        sentence = f"{name} was not measured: {_why_not_measured(budget.quantity)}."
        level = budget.not_measured or budget.level
        return BudgetOutcome(budget, limit, unit, NOT_MEASURED, _OK if level == "off" else level, sentence)
    value = float(measured.num_new) if budget.quantity == FINDINGS else aggregate(values, budget.aggregation)
    is_kept = value <= limit
    relation = "within" if is_kept else "above"
    sentence = (
        f"{name}: {units.format_value(value, unit)}, {relation} the limit of {allowed}{_of_runs(budget, values)}."
    )
    return BudgetOutcome(
        budget,
        limit,
        unit,
        PASSED if is_kept else FAILED,
        _OK if is_kept else budget.level,
        sentence,
        value=value,
        values=tuple(values),
    )


def _relative(budget: Budget, limit: float, base: BaseComparison | None) -> BudgetOutcome:
    """Compare a ratio with its limit; only an interval that lies on one side of it decides."""
    name, allowed = NAMES[budget.quantity], units.format_ratio(limit)
    if base is None:
        sentence = f"{name} was not compared with another revision: that needs --against REV."
        return BudgetOutcome(budget, limit, "ratio", SKIPPED, _OK, sentence)
    if base.is_same_text:
        sentence = f"{name} was not compared: no Python file differs from {base.revision}."
        return BudgetOutcome(budget, limit, "ratio", SKIPPED, _OK, sentence)
    ratio = base.step_ratio if budget.quantity == STEP_TIME else base.memory_ratio
    if ratio is None:
        sentence = f"{name} could not be compared with {base.revision}. {base.note}".strip()
        return BudgetOutcome(budget, limit, "ratio", UNCLEAR, _WARN, sentence)
    result = _side(ratio, limit)
    severity = {PASSED: _OK, FAILED: budget.level, UNCLEAR: _WARN}[result]
    sentence = f"{name}: {units.format_interval(ratio)} that of {base.revision}, {_relation(result, allowed)}."
    return BudgetOutcome(budget, limit, "ratio", result, severity, sentence, value=ratio.value, interval=ratio)


def _of_loop(budget: Budget, limit: float, base: BaseComparison, loop: LoopRatio) -> BudgetOutcome:
    """Compare another loop with the limit. Only what is above it counts: the runs end when the training loop is clear."""
    result = _side(loop.step_ratio, limit)
    sentence = (
        f"{NAMES[STEP_TIME]} of {loop.name}: {units.format_interval(loop.step_ratio)} that of {base.revision}, "
        f"{_relation(result, units.format_ratio(limit))}."
    )
    severity = budget.level if result == FAILED else _OK
    ratio = loop.step_ratio
    return BudgetOutcome(
        budget, limit, "ratio", result, severity, sentence, value=ratio.value, interval=ratio, loop=loop.name
    )


def _side(ratio: Interval, limit: float) -> str:
    return PASSED if ratio.high <= limit else FAILED if ratio.low > limit else UNCLEAR


def _relation(result: str, allowed: str) -> str:
    return {
        PASSED: f"within the limit of {allowed}",
        FAILED: f"above the limit of {allowed}",
        UNCLEAR: f"which does not tell whether it is within the limit of {allowed}",
    }[result]


def _values(quantity: str, measured: Measured) -> list[float]:
    """Return the value of each run; empty if a run lacks it, because the others need not be like that run."""
    if quantity == FINDINGS:
        return [float(count) for count in measured.new_findings or ()]
    values = [_value(quantity, report) for report in measured.reports]
    known = [value for value in values if value is not None]
    return known if len(known) == len(values) else []


def _value(quantity: str, report: Report) -> float | None:
    verdict, usage = report.analysis.verdict, report.analysis.usage
    if quantity == INPUT_WAIT:
        return verdict.input_wait_share
    if quantity == STEP_TIME:
        return float(verdict.steps.mean_ns) if verdict.steps is not None else None
    return float(usage.peak_rss_bytes) if usage is not None and usage.peak_rss_bytes is not None else None


def _why_not_measured(quantity: str) -> str:
    if quantity == FINDINGS:
        return "no steps were observed, without which most rules have nothing to judge"
    return "no memory use was recorded" if quantity == MEMORY else "no steps were observed"


def _of_runs(budget: Budget, values: Sequence[float]) -> str:
    """Say how the value was made from several runs; empty for one run."""
    if len(values) == 1:
        return ""
    words = {"median": "median", "optimistic": "lowest", "pessimistic": "highest"}
    return f" ({words[budget.aggregation]} of {len(values)} runs)"
