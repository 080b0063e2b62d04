from __future__ import annotations

import dataclasses
import io
import re

import pytest
from rich.console import Console

from advisor.report.report_text import print_report
from tests.report.made_reports import EVIL, empty_report, evil, healthy_report, proved_report, slow_report

REPORTS = [slow_report, healthy_report, empty_report, proved_report]


def printed(report, width=100, **options):
    file = io.StringIO()
    print_report(report, Console(file=file, width=width, **options))
    return file.getvalue()


def test_order_is_the_readers():
    text = printed(slow_report())
    marks = ["waiting for input", "Bottleneck", "Where the wait comes from", "Already done by tf.data",
             "What to change", "Not proposed", "Rules that failed", "Warnings", "Measured:", "Run folder:"]  # fmt: skip
    places = [text.index(mark) for mark in marks]
    assert places == sorted(places)


def test_finding_says_what_gain_where_why_and_how():
    text = printed(slow_report())
    assert "1. Parallelise map(decode)  predicted 3.1x (2.4x to 3.6x)" in text
    assert "6 of 8 cores are idle" in text
    assert "blame 90 %; time per element 5 ms" in text
    assert "-ds.map(decode)\n" in text
    assert "+ds.map(decode, num_parallel_calls=4)\n" in text
    assert "--- train.py" not in text
    assert "Data: exact (the same elements in the same order). Memory: 12 MiB more." in text
    assert "advisor explain serial-map" in " ".join(text.split())


@pytest.mark.parametrize("is_provable", [True, False])
def test_finding_says_that_a_fix_which_nothing_can_prove_is_left_to_the_reader(is_provable):
    report = slow_report()
    findings = tuple(
        dataclasses.replace(each, fix=each.fix and dataclasses.replace(each.fix, is_provable=is_provable))
        for each in report.findings
    )
    text = " ".join(printed(dataclasses.replace(report, findings=findings)).split())
    assert ("does not apply it" in text) is not is_provable


def test_healthy_is_short():
    report = dataclasses.replace(healthy_report(), run_folder="/tmp/run")
    lines = printed(report).splitlines()
    assert len(lines) <= 4
    assert lines[0] == report.analysis.verdict.sentence


def test_bottleneck_is_named_by_its_line():
    report = slow_report()
    main = report.analysis.main
    site = main.iterator(main.bottleneck.iterator_id).main_call.site
    assert f"{site.file}:{site.line} .map(augment)  " in printed(report)


@pytest.mark.parametrize("width", [20, 40, 60, 80, 200])
@pytest.mark.parametrize("made", REPORTS, ids=lambda made: made.__name__)
def test_any_width(made, width):
    lines = printed(made(), width).splitlines()
    assert not any(line != line.rstrip() for line in lines), "blanks at line ends"
    assert all(len(line) <= max(width, 25) for line in lines if not line.startswith("Run folder"))


def test_no_color_has_no_color(monkeypatch):
    monkeypatch.setenv("NO_COLOR", "1")
    text = printed(slow_report(), force_terminal=True)
    assert not re.findall(r"\x1b\[[0-9;]*3[0-7][;m]", text)


def test_pipe_has_no_escapes():
    assert "\x1b" not in printed(slow_report())


def test_place_is_a_link_on_a_terminal(tmp_path):
    report = slow_report()
    site = dataclasses.replace(report.findings[0].site, file=str(tmp_path / "my train.py"))
    finding = dataclasses.replace(report.findings[0], site=site)
    text = printed(dataclasses.replace(report, findings=(finding,)), force_terminal=True, color_system="truecolor")
    assert f"file://{tmp_path}/my%20train.py#{site.line}" in text


@pytest.mark.parametrize("made", REPORTS, ids=lambda made: made.__name__)
@pytest.mark.parametrize("width", [40, 120])
def test_hostile_names_cannot_reach_the_terminal(made, width):
    report = evil(made())
    plain = printed(report, width)
    assert not set(EVIL) & set(plain) & set("\x1b\x07\r\u202e\u2066\x9b\x00\ud800")
    terminal = printed(report, width, force_terminal=True, color_system="truecolor", legacy_windows=False)
    ours = re.compile(r"\x1b\[[0-9;]*m|\x1b\]8;[^\x1b]*\x1b\\")
    assert not re.search(r"[\x00-\x09\x0b-\x1f\x7f-\x9f\u202e\u2066\ud800]", ours.sub("", terminal))
    if made is slow_report and width == 120:
        assert "[bold red]V[/bold red]" in plain, "markup is text"


def test_every_pipeline_and_warning_has_its_limit():
    report = slow_report()
    main = report.analysis.main
    others = tuple(dataclasses.replace(main, id=f"p{n}", is_main=False) for n in range(1, 60))
    analysis = dataclasses.replace(report.analysis, pipelines=(main, *others), warnings=tuple(map(str, range(300))))
    text = printed(dataclasses.replace(report, analysis=analysis))
    assert "59 pipelines in total" in text
    assert "301 warnings in total" in text
    assert len(text.splitlines()) < 90


def test_where_no_verdict_is_possible_the_pipelines_are_shown():
    report = slow_report()
    verdict = dataclasses.replace(report.analysis.verdict, level="unknown", is_input_bound=False)
    analysis = dataclasses.replace(report.analysis, verdict=verdict)
    text = printed(dataclasses.replace(report, analysis=analysis), width=200)
    assert "TFRecord -> ParallelMapV2 -> MapAndBatch -> Prefetch -> Root" in text
