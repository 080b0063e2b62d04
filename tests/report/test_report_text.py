from __future__ import annotations

import dataclasses
import io
import json
import re
from pathlib import Path

import pytest
from rich.console import Console

from advisor.model.calls import CodeLine
from advisor.model.finding import Evidence, Prediction, Rejected
from advisor.model.horizon import Horizon
from advisor.model.pipeline import LineCost
from advisor.model.recording import Window
from advisor.model.settings import Settings
from advisor.predict.run_gain import run_gain
from advisor.report.html import report_to_html
from advisor.report.report_json import report_to_bytes, report_to_dict
from advisor.report.report_text import print_report
from advisor.workflows.analyze import analyze_run
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


def test_a_change_of_two_files_names_both():
    report = slow_report()
    (finding,) = report.findings
    other = "--- a/lib/data.py\n+++ b/lib/data.py\n@@ -7 +7,2 @@\n     return x\n+def decode_batch(x):\n"
    report = dataclasses.replace(report, findings=(dataclasses.replace(finding, diff=finding.diff + other),))
    lines = [line.strip() for line in printed(report).splitlines()]
    start = lines.index("-ds.map(decode)")
    assert lines[start - 1 : start + 4] == [
        "train.py",
        "-ds.map(decode)",
        "+ds.map(decode, num_parallel_calls=4)",
        "lib/data.py",
        "+def decode_batch(x):",
    ]


@pytest.mark.parametrize(("file", "shown"), [("train.py", "12 "), ("lib/data.py", "lib/data.py:12 ")])
def test_lines_of_a_function_are_numbers_of_the_file_above_them(file, shown):
    report = slow_report()
    (main,) = report.analysis.pipelines
    costly = LineCost(CodeLine(file, 12, "decode", "x = f(x)"), 10, 1.0, ("Mul",), advice="Use g.")
    at = report.analysis.main.bottleneck.iterator_id
    iterators = tuple(dataclasses.replace(it, lines=(costly,) if it.id == at else ()) for it in main.iterators)
    analysis = dataclasses.replace(report.analysis, pipelines=(dataclasses.replace(main, iterators=iterators),))
    text = printed(dataclasses.replace(report, analysis=analysis))
    section = text[text.index("Inside the functions") :]
    assert f"\n    {shown}" in section
    assert f"{'Line 12' if file == 'train.py' else shown.strip()}: Use g." in section


@pytest.mark.parametrize("is_provable", [True, False])
def test_finding_says_that_a_fix_which_nothing_can_prove_is_left_to_the_reader(is_provable):
    report = slow_report()
    findings = tuple(
        dataclasses.replace(finding, fix=finding.fix and dataclasses.replace(finding.fix, is_provable=is_provable))
        for finding in report.findings
    )
    text = " ".join(printed(dataclasses.replace(report, findings=findings)).split())
    assert ("does not apply it" in text) is not is_provable


def test_healthy_is_short():
    report = dataclasses.replace(healthy_report(), run_folder="/tmp/run")
    lines = printed(report).splitlines()
    assert len(lines) <= 5
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
    others = tuple(dataclasses.replace(main, id=f"p{n}", is_main=False, consumer=None) for n in range(1, 60))
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
    assert "TFRecord -> ParallelMapV2 -> MapAndBatch -> Root" in text


def test_rows_of_bookkeeping_are_not_in_the_table_of_waits():
    report = slow_report()
    main = report.analysis.main
    root, *others = main.iterators
    root = dataclasses.replace(root, name="Root", calls=(), blame_share=0.3, blame_ns=10**9)
    options = dataclasses.replace(root, id="p0.9", parent_id=root.id, name="MaxIntraOpParallelism")
    prefetch = dataclasses.replace(options, id="p0.10", name="Prefetch", injected_by_tensorflow=True)
    main = dataclasses.replace(main, iterators=(root, options, prefetch, *others))
    report = dataclasses.replace(report, analysis=dataclasses.replace(report.analysis, pipelines=(main,)))
    html = report_to_html(report_to_dict(report)).decode()
    rows = html[html.index("Where the wait comes from") : html.index("What to change")]
    for table in (_section(printed(report), "Where the wait comes from"), rows):
        assert "Root" not in table and "MaxIntraOpParallelism" not in table
        assert "added by tf.data" in table and "augment" in table


def _section(text, title):
    return text.split(f"{title}\n")[1].split("\n\n")[0]


def test_the_command_that_permits_fixes_is_the_second_line_and_in_one_piece():
    sentence = "2 fixes need your permission: advisor fix --allow rerandomized " + "train.py --a-long-option=1 " * 5
    lines = printed(dataclasses.replace(slow_report(), permission=sentence.strip()), width=60).splitlines()
    assert sentence.strip() in lines, "a command that is broken into lines cannot be copied"
    assert lines.index(sentence.strip()) < lines.index("Bottleneck")


def test_rejected_changes_are_listed_shortly_and_completely_in_json(validate):
    entries = tuple(
        Rejected("serial-map", f"Parallelise map {number}", "no core is free", (Evidence("free_cores", 0.1, "cores"),))
        for number in range(9)
    )
    report = dataclasses.replace(slow_report(), rejected=entries)
    section = _section(printed(report), "Considered and rejected")
    assert "- Parallelise map 0: no core is free (serial-map)" in section
    assert "map 5" in section and "map 6" not in section and "9 changes in total" in section
    document = json.loads(report_to_bytes(report))
    validate(document)
    assert document["rejected"][8] == {
        "rule": "serial-map",
        "change": "Parallelise map 8",
        "reason": "no core is free",
        "evidence": {"free_cores": {"value": 0.1, "unit": "cores"}},
        "site": None,
    }
    assert "Parallelise map 8" in report_to_html(document).decode()


CACHE = Prediction(71, 50, 90, first_pass=1.0)


def with_horizon(over: Horizon):
    """The report whose finding is a cache in a run with these passes."""
    report = slow_report()
    (finding,) = report.findings
    gain = run_gain(CACHE, over, 1e6)
    return dataclasses.replace(report, findings=(dataclasses.replace(finding, prediction=CACHE, over_run=gain),))


def test_a_cache_is_shown_with_its_gain_over_the_run():
    text = " ".join(printed(with_horizon(Horizon("known", "epochs=3 of fit", 3, 10))).split())
    assert "predicted 2.9x (2.9x to 2.9x) over 3 epochs" in text
    assert "71x (50x to 90x) from the second epoch on; breaks even in epoch 2." in text


def test_a_cache_in_a_run_of_unknown_length_is_shown_as_before_and_the_report_says_so():
    text = " ".join(printed(with_horizon(Horizon("unknown", "nobody counts", None, 10))).split())
    assert "predicted 71x (50x to 90x) from the second epoch on" in text
    assert "The number of epochs is unknown (nobody counts)" in text


def test_text_json_and_html_agree_on_the_run():
    report = with_horizon(Horizon("known", "epochs=3 of fit", 3, 10))
    document = report_to_dict(report)
    run = document["findings"][0]["over_run"]
    assert run["predicted_speedup"]["value"] == pytest.approx(3 / (1 + 2 / 71))
    assert (run["passes"], run["basis"], run["saved_per"], run["break_even_pass"]) == (3, "known", "run", 2)
    assert document["findings"][0]["predicted_speedup"]["value"] == 71
    assert run["sentence"] in " ".join(printed(report, width=1000).split())
    html = report_to_html(document).decode()
    assert run["sentence"] in html and "2.9x (2.9x to 2.9x) over 3 epochs" in html


@pytest.mark.parametrize(
    ("closed_by", "why"), [("seconds", "there was no time for later ones"), ("script ended", "the script ended")]
)
def test_a_profile_of_early_steps_is_said_to_be_one(closed_by, why):
    s = 1_000_000_000
    report = analyze_run(Path(__file__).parent.parent / "data" / "short_steps", [], Settings())
    assert report.analysis.recording is not None and report.analysis.recording.window is not None
    assert "early step" not in printed(report, 1000) and "then profiled for" in printed(report, 1000)
    window = Window(10 * s, 15 * s, 4, 1, closed_by, plain_start_ns=16 * s, plain_end_ns=31 * s, plain_steps=3)
    recording = dataclasses.replace(report.analysis.recording, window=window)
    early = dataclasses.replace(report, analysis=dataclasses.replace(report.analysis, recording=recording))
    text = printed(early, 1000)
    assert (
        f"timed for 15 s without the profiler after 4 warm-up steps, profiled before that, in 1 early step (5 s), because {why}."
        in text
    )
    assert report_to_dict(early)["window"]["is_profile_early"] is True
