"""The benchmark of step advice reads off a report what became of each rule's change."""

from __future__ import annotations

import sys

import pytest

from tests.examples.conftest import EXAMPLES, REPOSITORY

PROVED = {"rule": "short-steps", "verdict": "faster", "measured": {"speedup": 3.0, "low": 2.5, "high": 3.5}}
LOSS = {"loss": {"relative": 0.001, "batches": 64, "between_runs": 0.0}}


@pytest.fixture
def step_advice(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))
    yield __import__("step_advice")
    for name in ("step_advice", "published"):
        sys.modules.pop(name, None)


def report(*fixes, rejected=(), hints=(), findings=()):
    """A report of `advisor fix`, as far as it is read."""
    return {
        "fixes": list(fixes),
        "proof": {"fixes": [LOSS if fix["verdict"] != "broken" else {"loss": None} for fix in fixes]},
        "rejected": [{"rule": rule, "reason": reason} for rule, reason in rejected],
        "hints": [{"rule": rule, "diff": diff} for rule, diff in hints],
        "findings": [{"rule": rule} for rule in findings],
    }


def test_a_change_that_is_proved(step_advice):
    row = step_advice.row_of("short_steps", "short-steps", report(PROVED, findings=["short-steps"]))
    assert (row.outcome, row.speedup.low, row.loss, row.is_misplaced) == ("proved", 2.5, 0.001, False)


@pytest.mark.parametrize(
    ("verdict", "reason", "outcome", "why"),
    [
        ("broken", "the script fails with it: TypeError: float", "crashed", "TypeError: float"),
        ("broken", "With the change, the loss is not a finite number", "broken", "With the change, the loss is not"),
        ("same", "measured on this machine: 1x", "not faster", ""),
        ("slower", "measured on this machine: 0.5x", "not faster", ""),
    ],
)
def test_a_change_that_was_tried_in_vain(step_advice, verdict, reason, outcome, why):
    tried = {"rule": "full-precision", "verdict": verdict, "measured": None}
    made = report(tried, rejected=[("full-precision", reason)])
    row = step_advice.row_of("script", "full-precision", made)
    assert row.outcome == outcome and row.why.startswith(why) and not row.is_misplaced


@pytest.mark.parametrize(
    ("made", "outcome"),
    [
        (report(rejected=[("retracing", "on this machine the product takes as long")]), "not tried"),
        (report(hints=[("retracing", None)]), "not written"),
        (report(hints=[("retracing", "--- a")]), "not measured"),
        (report(hints=[("no-xla", None)]), "no advice"),
    ],
)
def test_a_change_that_was_not_tried(step_advice, made, outcome):
    assert step_advice.row_of("script", "retracing", made).outcome == outcome


def test_advice_among_the_findings_that_was_not_proved_is_counted(step_advice):
    row = step_advice.row_of("script", "no-xla", report(hints=[("no-xla", "--- a")], findings=["no-xla"]))
    assert row.is_misplaced
    assert "among the findings: 1." in step_advice.counts([row])[0]


def test_the_table_of_the_corpus_counts_what_was_tried(step_advice):
    rows = [step_advice.Row(str(place), "retracing", outcome) for place, outcome in enumerate(step_advice.OUTCOMES)]
    (line,) = (line for line in step_advice.counts(rows) if line.startswith("| retracing"))
    assert line == f"| retracing | 4 | {' | '.join(['1'] * len(step_advice.OUTCOMES))} |"


def test_rows_are_kept(step_advice, tmp_path, monkeypatch):
    script = step_advice.Script("short_steps", ("x.py",), tmp_path, {}, ("short-steps",))
    monkeypatch.setattr(step_advice, "fixed", lambda script, budget: report(PROVED))
    measured = step_advice.rows_of(script, {}, "1min", tmp_path / "rows.jsonl")
    assert step_advice.read_rows(tmp_path / "rows.jsonl") == {"short_steps": measured}


def test_every_rule_has_an_example_and_a_section(step_advice):
    assert all((EXAMPLES / f"{name}.py").exists() for name in step_advice.EXAMPLES.values())
    assert "<!-- step-advice: begin -->" in (REPOSITORY / "docs" / "benchmarks.md").read_text()
