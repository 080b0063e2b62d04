"""Advice on the step that nothing has proved stands below everything else, in one line, and is no finding."""

from __future__ import annotations

import dataclasses
import io
import json

from rich.console import Console

from advisor.engine import load_rules, run_rules
from advisor.model.calls import Site
from advisor.model.edits import SetCompileArgument
from advisor.model.finding import Fix, Safety
from advisor.model.outcome import FixOutcome, Interval, LossDeviation, Report
from advisor.model.proof_result import Proof
from advisor.model.settings import Settings
from advisor.report.html import report_to_html
from advisor.report.proof_text import print_proof
from advisor.report.report_json import report_to_bytes, report_to_dict
from advisor.report.report_text import print_report
from advisor.testing import batch, cpu, op, pipeline, prefetch, source
from tests.report.made_reports import slow_report

TITLE = "Hints on the training step, not proved"


def short_steps() -> Report:
    """A healthy pipeline before a small Keras model."""
    made = pipeline(
        source(), batch(32), prefetch(), consumer_ms=2, compiled=True, device=cpu(op("MatMul", 12, us=40), other=0.5),
        keras={"loop": "keras.fit", "steps_per_execution": 1, "run_eagerly": False},
    )  # fmt: skip
    return run_rules(made.analysis, load_rules([], Settings()), Settings())


def printed(print_it, report: Report, width: int = 150) -> str:
    file = io.StringIO()
    print_it(report, Console(file=file, width=width))
    return file.getvalue()


def test_a_hint_is_neither_the_only_finding_nor_the_first():
    report = short_steps()
    assert [hint.rule for hint in report.hints] == ["short-steps"]
    assert not report.findings and not report.permission
    text = printed(print_report, report)
    assert "What to change" not in text
    lines = text.splitlines()
    place = lines.index(TITLE)
    assert lines[place + 1] == (
        "  - train.py:6 Run several steps per call (steps_per_execution): model.compile(..., steps_per_execution=32) "
        "(short-steps)"
    )
    assert place > next(number for number, line in enumerate(lines) if "of the step time is spent waiting" in line)


def test_hints_follow_the_findings():
    hints = tuple(dataclasses.replace(hint, diff="+x\n") for hint in short_steps().hints)
    report = dataclasses.replace(slow_report(), hints=hints)
    text = printed(print_report, report)
    marks = ["What to change", "Parallelise map(decode)", "Not proposed", TITLE, "Warnings"]
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)
    assert "(short-steps; try `advisor fix --allow numerics`)" in " ".join(text.split())
    page = report_to_html(report_to_dict(report)).decode()
    assert page.index("<h2>What to change") < page.index(f"<h2>{TITLE}")
    assert "steps_per_execution=32" in page


def test_json_lists_hints_apart_from_findings(validate):
    document = json.loads(report_to_bytes(short_steps()))
    validate(document)
    assert document["findings"] == []
    (hint,) = document["hints"]
    assert (hint["rule"], hint["auto"], hint["safety"]) == ("short-steps", False, "numerics")
    assert "during 50 % of it nothing but Python ran" in hint["because"]


def test_fail_on_any_is_about_findings_and_a_name_about_both():
    from advisor.commands.output import is_matched

    report = short_steps()
    assert not is_matched(report, ["any"])
    assert is_matched(report, ["short-steps"])


def test_a_proof_of_the_step_shows_the_loss_and_says_that_the_data_are_untouched(validate):
    site = Site("/src/train.py", 5, 7, 5, 20)
    gain, loss = Interval(1.8, 1.7, 1.9), LossDeviation(64, 0.012, 0.003)
    fix = Fix((), Safety.NUMERICS, False, step_edits=(SetCompileArgument(site, "", "steps_per_execution", 32),))
    hint = dataclasses.replace(short_steps().hints[0], fix=fix)
    outcome = FixOutcome(
        hint.rule, site, None, gain, Safety.NUMERICS, Safety.NUMERICS, "faster", True, hint.title,
        "The loss of the first 64 batches differs by up to 1.2 %.", is_end_to_end=True, proved_on="training",
        is_of_step=True, loss=loss,
    )  # fmt: skip
    proof = Proof("faster", "Proved on the training.", proved_on="training", training="faster")
    report = dataclasses.replace(short_steps(), findings=(hint,), hints=(), fixes=(outcome,), proof=proof)
    text = printed(print_proof, report, 200)
    assert "untouched" in text and "differs by up to 1.2 %" in text
    document = json.loads(report_to_bytes(report))
    validate(document)
    (details,) = document["proof"]["fixes"]
    assert details["loss"] == {"batches": 64, "relative": 0.012, "between_runs": 0.003}
    assert details["of_step"] is True
