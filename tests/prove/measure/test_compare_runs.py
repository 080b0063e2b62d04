"""Runs whose steps hold different numbers of elements are not called faster or slower."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine.run import run_rules
from advisor.model.outcome import Interval
from advisor.model.settings import Settings
from advisor.prove.measure.compare_runs import compare_reports
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.testing import batch, pipeline, prefetch, source


def report_of(size: int, ms: float, **keras: int):
    made = pipeline(source(), batch(size), prefetch(), consumer_ms=ms, keras=keras)
    return run_rules(made.analysis, [], Settings())


def test_steps_of_the_same_size_are_compared():
    comparison = compare_reports(report_of(32, 10), report_of(32, 5))
    assert comparison.step_speedup is not None
    assert comparison.step_speedup.value > 1.5


def test_a_larger_batch_is_not_called_slower():
    comparison = compare_reports(report_of(8, 10), report_of(64, 20))
    assert (comparison.step_speedup, comparison.verdict) == (None, "unknown")
    assert any("A step takes 8 elements before and 64 after" in note for note in comparison.notes)


def test_several_steps_per_call_are_not_called_slower():
    comparison = compare_reports(report_of(32, 1), report_of(32, 10, steps_per_execution=32))
    assert (comparison.step_speedup, comparison.verdict) == (None, "unknown")
    assert any("32 elements before and 1024 after" in note for note in comparison.notes)


def test_what_could_not_be_kept_from_the_disk_is_said_once():
    refused = "The kernel refused an overlay, so each run used a copy."
    reports = []
    for ms in (10, 5):
        report = run_rules(
            pipeline(source(), batch(32), prefetch(), consumer_ms=ms, is_finished=True).analysis, [], Settings()
        )
        recording = replace(report.analysis.recording, disk_notes=(refused,), warnings=(refused,))
        reports.append(replace(report, analysis=replace(report.analysis, recording=recording)))
    whole = EndToEnd("same", Interval(1.0, 0.9, 1.1))
    assert compare_reports(*reports, whole).notes.count(refused) == 1
    assert refused not in compare_reports(*reports).notes, "saved runs are only read"


@pytest.mark.parametrize(
    ("interval", "verdict"),
    [
        (Interval(1.0, 0.9, 1.1), "same"),
        (Interval(1.3, 0.6, 2.7), "unknown"),
        (Interval(1.0, 0.7, 1.02), "unknown"),
        (Interval(1.02, 1.01, 1.04), "same"),
    ],
)
def test_runs_that_vary_widely_are_not_called_the_same(interval, verdict):
    report = report_of(32, 1)
    comparison = compare_reports(report, report, EndToEnd("same", interval))
    assert comparison.verdict == verdict
    assert any("vary too much" in note for note in comparison.notes) == (verdict == "unknown")
