"""A report in a notebook: short, without a script, every text of the run escaped."""

from __future__ import annotations

import subprocess
import sys

import pytest

import advisor.report  # noqa: F401  fills in how notebooks show a report
from tests.report.made_reports import empty_report, evil, healthy_report, proved_report, slow_report


def test_cell_says_verdict_proof_and_change():
    cell = proved_report()._repr_html_()
    for text in (
        "waiting for input",
        "2.5x (2.4x to 2.6x)",
        "Parallelise map(decode)",
        "num_parallel_calls=4",
        "/tmp/run/report.html",
    ):
        assert text in cell


@pytest.mark.parametrize("made", [slow_report, healthy_report, empty_report, proved_report])
def test_cell_is_small_and_has_no_script(made):
    cell = evil(made())._repr_html_()
    assert len(cell) < 60_000
    assert "<script" not in cell
    assert "\x1b" not in cell


def test_markup_of_the_run_is_escaped():
    import dataclasses

    report = slow_report()
    finding = dataclasses.replace(report.findings[0], title="<img src=x onerror=alert(1)>")
    cell = dataclasses.replace(report, findings=(finding,))._repr_html_()
    assert "<img" not in cell
    assert "&lt;img src=x" in cell


@pytest.mark.long
def test_analysing_alone_brings_the_view_along():
    code = (
        "import advisor, sys\n"
        "report = advisor.analyze('tests/data/keras_fit', out=sys.argv[1])\n"
        "assert 'keras_fit.py:16' in report._repr_html_()"
    )
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        subprocess.run([sys.executable, "-c", code, folder], check=True)
