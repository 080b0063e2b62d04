"""Whoever is told that input is the problem is told what to do next, of every run that lies here or beside the checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.engine import load_rules
from advisor.model.errors import AdvisorError
from advisor.model.settings import Settings
from advisor.workflows.analyze import analyze_run

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
RUNS = sorted(
    [path.parent for path in DATA.glob("*/recording.json")] + list(DATA.glob("interleave_forms/*.xplane.pb.gz"))
)
SHARED = sorted(path for path in (ROOT / "../shared/profiles").glob("*") if path.is_dir())
RULES = load_rules((), Settings())


@pytest.mark.parametrize(
    "run",
    [*RUNS, *(pytest.param(path, marks=pytest.mark.long) for path in SHARED)],
    ids=lambda path: path.name,
)
def test_an_input_bound_run_has_an_entry_and_a_healthy_one_no_next_step(run):
    try:
        report = analyze_run(run, RULES, Settings())
    except AdvisorError:
        pytest.skip("it holds no profile that can be read")
    assert not report.rule_errors
    steps = [finding for finding in report.findings if finding.rule == "next-step"]
    if report.analysis.verdict.is_input_bound:
        assert report.findings, report.analysis.verdict.sentence
    else:
        assert not steps
    for finding in steps:
        assert any(character.isdigit() for character in finding.because), "no reason without a figure"


def test_some_of_these_runs_have_nothing_but_a_next_step():
    reports = {run.name: analyze_run(run, RULES, Settings()) for run in RUNS if run.name in ("keras_fit", "mirrored")}
    for report in reports.values():
        assert {finding.rule for finding in report.findings} == {"next-step"}
    first = reports["keras_fit"].findings[0]
    assert first.title == "Rewrite map(augment) for whole batches, by hand"
    assert "which of its ops have state was not recorded" in first.because
    cores = next(finding for finding in reports["mirrored"].findings if "core" in finding.title)
    assert "Use a machine with at least 3 cores" in cores.title
