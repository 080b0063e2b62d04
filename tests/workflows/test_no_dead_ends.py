"""Whoever is told that input is the problem is told what to do next, of every run that lies here or beside the checkout."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.errors import AdvisorError
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis, GapReadings
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, prefetch, source
from advisor.workflows.analyze import analyze_run

ROOT = Path(__file__).parents[2]
DATA = ROOT / "tests" / "data"
HOSTS = sorted(path.parent for path in (ROOT / "tests/hosts/data").glob("*/plugins"))
RUNS = sorted(
    [path.parent for path in DATA.glob("*/recording.json")] + list(DATA.glob("interleave_forms/*.xplane.pb.gz")) + HOSTS
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
    check_rejected(report)
    for finding in steps:
        assert any(character.isdigit() for character in finding.because), "no reason without a figure"


def check_rejected(report: Report) -> None:
    """Each change that was considered has a reason, with a figure in it or as its evidence."""
    for entry in report.rejected:
        assert entry.change and entry.reason, entry
        assert entry.evidence or any(character.isdigit() for character in entry.reason), entry


EXAMPLES = [
    pytest.param(example.pipeline.analysis, id=f"{loaded.id}-{number}")
    for loaded in RULES
    for number, example in enumerate(loaded.examples, start=1)
    if example.pipeline.analysis.verdict.is_input_bound
]


@pytest.mark.parametrize("analysis", EXAMPLES)
def test_an_input_bound_example_has_an_entry_even_if_all_others_are_ignored(analysis: Analysis) -> None:
    report = run_rules(analysis, RULES, Settings())
    assert not report.rule_errors
    assert report.findings
    check_rejected(report)
    ignored = Settings(ignore=tuple({finding.rule for finding in report.findings} - {"next-step"}))
    assert run_rules(analysis, RULES, ignored).findings


SERIAL = pipeline(source(), map_("augment", ms=5, random=True), batch(32), prefetch(), consumer_ms=20, cores=8)


def test_a_comment_that_silences_the_only_finding_leaves_a_next_step(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.chdir(tmp_path)
    Path("train.py").write_text(SERIAL.source.replace("map(augment)", "map(augment)  # advisor: ignore[serial-map]"))
    report = run_rules(SERIAL.analysis, RULES, Settings())
    assert report.silenced == 1
    assert {finding.rule for finding in report.findings} == {"next-step"}


def test_a_wait_that_no_profile_shows_has_a_next_step_with_its_figures() -> None:
    """As where the profiler could not be started, and Keras' steps were timed."""
    verdict = replace(SERIAL.analysis.verdict, input_wait_share=None, gaps=GapReadings(200, 40_000_000, 0.6))
    report = run_rules(replace(SERIAL.analysis, pipelines=(), verdict=verdict), RULES, Settings())
    assert not report.rule_errors
    (finding,) = report.findings
    assert finding.title == "Profile the steps that wait"
    assert "200 steps of 40 ms waited 60 % of their time" in finding.because


def test_some_of_these_runs_have_nothing_but_a_next_step():
    reports = {run.name: analyze_run(run, RULES, Settings()) for run in RUNS if run.name in ("keras_fit", "mirrored")}
    for report in reports.values():
        assert {finding.rule for finding in report.findings} == {"next-step"}
    first = reports["keras_fit"].findings[0]
    assert first.title == "Rewrite map(augment) for whole batches, by hand"
    assert "which of its ops have state was not recorded" in first.because
    cores = next(finding for finding in reports["mirrored"].findings if "core" in finding.title)
    assert "Use a machine with at least 3 cores" in cores.title
