"""Budgets: what keeps them, what exceeds them, and what nobody can tell."""

from __future__ import annotations

import pytest

from advisor.gate.evaluate import Measured, aggregate, evaluate
from advisor.model.budgets import FINDINGS, INPUT_WAIT, MEMORY, STEP_TIME, Budget
from advisor.model.check_result import BaseComparison, Check, LoopRatio
from advisor.model.outcome import Interval
from tests.gate.made_runs import MS, made_report


def one(budget, *reports, **measured):
    (outcome,) = evaluate([budget], Measured(reports, **measured))
    return outcome


@pytest.mark.parametrize(
    ("budget", "report", "result"),
    [
        (Budget(INPUT_WAIT, "error", 0.5), made_report(wait=0.5), "passed"),
        (Budget(INPUT_WAIT, "error", 0.1), made_report(wait=0.5), "failed"),
        (Budget(STEP_TIME, "error", 10 * MS), made_report(step_ms=10), "passed"),
        (Budget(STEP_TIME, "error", 9 * MS), made_report(step_ms=10), "failed"),
        (Budget(MEMORY, "error", 100), made_report(rss=100), "passed"),
        (Budget(MEMORY, "error", 100), made_report(rss=101), "failed"),
    ],
)
def test_a_limit_itself_is_allowed(budget, report, result):
    outcome = one(budget, report)
    assert outcome.result == result
    assert outcome.severity == ("ok" if result == "passed" else "error")
    assert outcome.sentence.endswith(".")


def test_a_warning_does_not_fail_the_check():
    outcome = one(Budget(INPUT_WAIT, "warn", 0.1), made_report())
    assert (outcome.result, outcome.severity) == ("failed", "warn")
    assert Check("train.py", (outcome,)).is_passed


@pytest.mark.parametrize(
    ("aggregation", "value", "result"),
    [("median", 0.2, "passed"), ("optimistic", 0.1, "passed"), ("pessimistic", 0.6, "failed")],
)
def test_runs_are_aggregated(aggregation, value, result):
    runs = [made_report(wait=wait) for wait in (0.6, 0.1, 0.2)]
    outcome = one(Budget(INPUT_WAIT, "error", 0.3, aggregation=aggregation), *runs)
    assert (outcome.value, outcome.result, outcome.values) == (value, result, (0.6, 0.1, 0.2))
    assert "of 3 runs" in outcome.sentence
    assert aggregate([1, 2, 3, 4], "median") == 2.5


@pytest.mark.parametrize("quantity", [INPUT_WAIT, STEP_TIME, MEMORY, FINDINGS])
@pytest.mark.parametrize(
    ("level", "not_measured", "severity"),
    [
        ("error", None, "error"),
        ("warn", None, "warn"),
        ("error", "warn", "warn"),
        ("warn", "error", "error"),
        ("error", "off", "ok"),
    ],
)
def test_what_is_not_measured_never_passes_in_silence(quantity, level, not_measured, severity):
    unknown = made_report(wait=None, step_ms=None)
    outcome = one(Budget(quantity, level, 0.5, not_measured=not_measured), unknown)
    assert (outcome.result, outcome.severity, outcome.value) == ("not measured", severity, None)
    assert "not measured" in outcome.sentence


def test_one_run_without_a_value_leaves_it_unknown():
    outcome = one(Budget(INPUT_WAIT, "warn", 0.5), made_report(wait=0.1), made_report(wait=None, step_ms=None))
    assert outcome.result == "not measured"


def test_new_findings_are_counted():
    assert one(Budget(FINDINGS, "error", 0), made_report(), new_findings=(0,), num_new=0).result == "passed"
    outcome = one(Budget(FINDINGS, "error", 1), made_report(), new_findings=(2,), num_new=2)
    assert (outcome.result, outcome.value) == ("failed", 2)
    assert outcome.sentence == "New findings: 2, above the limit of 1."


def base(ratio=None, **other):
    return BaseComparison("main", "0" * 40, ("train.py",), step_ratio=ratio, memory_ratio=ratio, **other)


@pytest.mark.parametrize("quantity", [STEP_TIME, MEMORY])
@pytest.mark.parametrize(
    ("ratio", "result", "severity"),
    [
        (Interval(1.0, 0.9, 1.1), "passed", "ok"),
        (Interval(1.5, 1.2, 1.9), "failed", "error"),
        (Interval(1.05, 0.9, 1.2), "unclear", "warn"),
        (Interval(1.3, 1.0, 1.6), "unclear", "warn"),
    ],
)
def test_only_an_interval_on_one_side_of_the_limit_decides(quantity, ratio, result, severity):
    outcome = one(Budget(quantity, "error", ratio_limit=1.1), made_report(), base=base(ratio))
    assert (outcome.result, outcome.severity, outcome.unit) == (result, severity, "ratio")
    assert "main" in outcome.sentence


def test_no_comparison_is_a_warning_with_its_reason():
    outcome = one(Budget(STEP_TIME, "error", ratio_limit=1.1), made_report(), base=base(note="It fails there."))
    assert (outcome.result, outcome.severity) == ("unclear", "warn")
    assert outcome.sentence.endswith("It fails there.")


def test_a_ratio_without_a_base_is_skipped_and_says_so():
    outcome = one(Budget(STEP_TIME, "error", ratio_limit=1.1), made_report())
    assert (outcome.result, outcome.severity) == ("skipped", "ok")
    assert "--against REV" in outcome.sentence
    same = one(Budget(STEP_TIME, "error", ratio_limit=1.1), made_report(), base=base(is_same_text=True))
    assert same.result == "skipped" and "no Python file differs from main" in same.sentence


@pytest.mark.parametrize(
    ("ratio", "result", "severity"),
    [
        (Interval(1.0, 0.9, 1.1), "passed", "ok"),
        (Interval(1.5, 1.2, 1.9), "failed", "error"),
        (Interval(1.3, 1.0, 1.6), "unclear", "ok"),  # the runs do not go on for its sake
    ],
)
def test_a_validation_loop_fails_only_if_it_is_clearly_slower(ratio, result, severity):
    compared = base(Interval(1, 0.9, 1.05), loops=(LoopRatio("train.py:30 (for)", ratio),))
    budget = Budget(STEP_TIME, "error", ratio_limit=1.1)
    training, validation = evaluate([budget], Measured([made_report()], base=compared))
    assert (training.result, training.loop) == ("passed", "")
    assert (validation.result, validation.severity, validation.loop) == (result, severity, "train.py:30 (for)")
    assert validation.sentence.startswith("Step time of train.py:30 (for): ")
    (memory,) = evaluate([Budget(MEMORY, "error", ratio_limit=1.1)], Measured([made_report()], base=compared))
    assert memory.loop == ""


def test_a_budget_with_two_limits_has_two_outcomes():
    budget = Budget(STEP_TIME, "error", 5 * MS, 1.1)
    outcomes = evaluate([budget], Measured([made_report(step_ms=10)], base=base(Interval(1, 0.9, 1.05))))
    assert [outcome.result for outcome in outcomes] == ["failed", "passed"]
