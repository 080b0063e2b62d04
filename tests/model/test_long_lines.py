"""Lines too long to read are shortened wherever they come out."""

from __future__ import annotations

import io
import subprocess
import sys

import pytest
from rich.console import Console

from advisor.capture.request import CaptureRequest
from advisor.capture.script_process import copy_to_stderr
from advisor.model.calls import Call, Site
from advisor.model.long_lines import MAX_OUTPUT_LINE, shorten_line, shorten_lines
from advisor.report.places import source_line
from advisor.report.report_text import print_report
from tests.report.made_reports import slow_report

LONG = "x" * 200_000


def test_short_text_is_untouched():
    assert shorten_lines("a\r\nb\n\nc") == "a\r\nb\n\nc"
    assert shorten_line("a" * 400) == "a" * 400


def test_only_long_lines_are_shortened():
    text = shorten_lines(f"Traceback:\n  {LONG}\r\nValueError: a\n")
    first, second, third = text.splitlines(keepends=True)
    assert (first, third) == ("Traceback:\n", "ValueError: a\n")
    assert second == f"  {'x' * (MAX_OUTPUT_LINE - 2)}... (198,002 more characters)\r\n"


def test_a_traceback_with_a_long_source_line(tmp_path, capsys):
    (tmp_path / "script.err").write_text(f"Traceback\n    {LONG}\nValueError: a\n")
    copy_to_stderr(CaptureRequest(tmp_path))
    err = capsys.readouterr().err
    assert err.endswith("ValueError: a\n") and len(err) < 3_000


def test_a_source_line_in_a_report(tmp_path):
    script = tmp_path / "long.py"
    script.write_text(f"ds = ds.map(f)  # {LONG}\n")
    line = source_line(Call("c0", "map", Site(str(script), 1, 9, 1, 15)))
    assert line.startswith("ds = ds.map(f)  # xxx") and len(line) < 500


def test_a_diff_in_a_report():
    from dataclasses import replace

    report = slow_report()
    findings = tuple(replace(finding, diff=f"-{LONG}\n+{LONG}") for finding in report.findings)
    file = io.StringIO()
    print_report(replace(report, findings=findings), Console(file=file, width=100))
    assert "more characters" in file.getvalue() and len(file.getvalue()) < 10_000


@pytest.mark.long
@pytest.mark.parametrize("kind", ["rule", "option"])
def test_an_error_that_quotes_it(kind, tmp_path):
    (tmp_path / "bad.py").write_text(f"raise ValueError('{LONG}')")
    args = ["rules", "--rules", str(tmp_path)] if kind == "rule" else ["explain", LONG[:100_000]]
    done = subprocess.run([sys.executable, "-m", "advisor", *args], capture_output=True, text=True)
    assert done.returncode == 2
    assert len(done.stderr) < 3_000
