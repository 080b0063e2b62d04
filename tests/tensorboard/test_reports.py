"""Reports made in the child process: what they show, that they are kept, and what a hostile run costs."""

from __future__ import annotations

import json
import os
import shutil
import time

import pytest

import advisor.tensorboard.reports as reports_module
from advisor.engine import load_rules
from advisor.model.settings import Settings
from advisor.report.report_json import REPORT_NAME, report_to_bytes, report_to_dict
from advisor.tensorboard.reports import Reports, version_of
from advisor.tensorboard.run_finder import RunFinder
from advisor.tensorboard.worker_messages import NoPage, Page
from advisor.workflows.analyze import analyze_run
from tests.tensorboard.logdirs import broken, foreign, recorded


def made(logdir, reports=None):
    """What is made of the newest run."""
    finder = RunFinder(str(logdir))
    return (reports or Reports()).of(finder.listing().runs[0], finder.root)


def fresh_report(run):
    return analyze_run(run, load_rules([], Settings()), Settings())


def text_of(answer):
    assert isinstance(answer, Page), answer
    return answer.html.decode()


@pytest.mark.long
def test_a_recorded_run_names_its_lines(tmp_path):
    recorded("keras_fit", tmp_path)
    assert "keras_fit.py:16" in text_of(made(tmp_path))


@pytest.mark.long
def test_a_foreign_profile_of_several_hosts(tmp_path):
    foreign(tmp_path, hosts=3)
    text = text_of(made(tmp_path))
    assert "ParallelMapV2" in text
    assert all(f"host{number}" in text for number in range(3))


@pytest.mark.long
def test_a_run_without_a_profile(tmp_path):
    run = recorded("keras_fit", tmp_path)
    shutil.rmtree(run / "plugins")
    recording = json.loads((run / "recording.json").read_bytes())
    (run / "recording.json").write_text(
        json.dumps({**recording, "calls": [], "consumers": [], "steps": [], "models": []})
    )
    assert "<title>" in text_of(made(tmp_path))


@pytest.mark.long
def test_a_broken_profile_is_one_sentence(tmp_path):
    folder = broken(tmp_path)
    answer = made(tmp_path)
    assert isinstance(answer, NoPage)
    assert str(folder) in answer.sentence and "Traceback" not in answer.sentence
    assert answer.is_final


@pytest.mark.long
def test_a_report_is_kept_until_a_file_of_its_run_changes(tmp_path, monkeypatch):
    run = recorded("keras_fit", tmp_path)
    reports = Reports()
    first = made(tmp_path, reports)
    monkeypatch.setattr(Reports, "_make", lambda *_: pytest.fail("made again"))
    assert made(tmp_path, reports) is first
    monkeypatch.undo()
    before = version_of(RunFinder(str(tmp_path)).listing().runs[0])
    os.utime(run / "recording.json", ns=(0, time.time_ns() + 10**9))
    assert version_of(RunFinder(str(tmp_path)).listing().runs[0]) != before
    assert made(tmp_path, reports) is not first


def test_only_so_many_reports_are_kept(tmp_path, monkeypatch):
    for number in range(3):
        foreign(tmp_path, f"job{number}")
    finder = RunFinder(str(tmp_path))
    runs = finder.listing().runs
    reports = Reports()
    monkeypatch.setattr(reports, "_ask", lambda job, name: Page(b"x" * 100, "", ()))
    monkeypatch.setattr(reports_module, "MAX_KEPT_BYTES", 250)
    first = reports.of(runs[0], finder.root)
    for run in runs[1:]:
        reports.of(run, finder.root)
    assert reports.of(runs[2], finder.root) is reports.of(runs[2], finder.root)
    assert reports.of(runs[0], finder.root) is not first


def test_an_analysis_that_takes_too_long_is_stopped(tmp_path):
    recorded("zip_filter", tmp_path)
    answer = made(tmp_path, Reports(seconds=0.02))
    assert isinstance(answer, NoPage)
    assert "took longer than 20 ms and was stopped" in answer.sentence
    assert not answer.is_final, "a new attempt may succeed"


@pytest.mark.long
def test_an_analysis_that_needs_too_much_memory_is_one_sentence(tmp_path):
    recorded("zip_filter", tmp_path)
    answer = made(tmp_path, Reports(memory_bytes=64 << 20))
    assert isinstance(answer, NoPage)
    assert answer.sentence.endswith(".") and "\n" not in answer.sentence


@pytest.mark.parametrize(
    ("code", "says"),
    [
        ("raise ImportError('planned')", "error in tfdata-advisor (ImportError: planned)"),
        ("import os; os._exit(3)", "ended early (exit code 3"),
        ("import os, signal; os.kill(os.getpid(), signal.SIGKILL)", "lack of memory"),
    ],
)
def test_a_child_that_fails_is_one_sentence(tmp_path, monkeypatch, code, says):
    (tmp_path / "modules").mkdir()
    (tmp_path / "modules/msgspec.py").write_text(f"{code}\n")
    monkeypatch.setenv("PYTHONPATH", str(tmp_path / "modules"))
    foreign(tmp_path / "logs")
    answer = made(tmp_path / "logs")
    assert isinstance(answer, NoPage)
    assert says in answer.sentence
    assert not answer.is_final


@pytest.mark.long
def test_a_recording_cannot_show_files_outside_of_the_logdir(tmp_path):
    secret = tmp_path / "secret.py"
    secret.write_text(
        "\n" * 13 + "password = 'hunter2'\n\n" + " " * 14 + ".map(augment)\n"
    )  # where the recording has it
    run = recorded("keras_fit", tmp_path / "logs")
    text = (run / "recording.json").read_text().replace("scripts/keras_fit.py", str(secret))
    (run / "recording.json").write_text(text)
    shown = json.dumps(report_to_dict(fresh_report(run))["sources"])
    assert "hunter2" in shown, "the command line shows the lines around a recorded call"
    assert "hunter2" not in text_of(made(tmp_path / "logs"))


@pytest.mark.long
def test_the_report_of_the_run_folder_is_shown(tmp_path):
    run = recorded("keras_fit", tmp_path)
    document = json.loads(report_to_bytes(fresh_report(run)))
    (run / REPORT_NAME).write_text(json.dumps({**document, "target": "told by the file.py"}))
    assert "told by the file.py" in text_of(made(tmp_path))


@pytest.mark.parametrize(
    "damage",
    [
        lambda document: "{",
        pytest.param(lambda document: "[" * 100_000, marks=pytest.mark.long),
        pytest.param(lambda document: json.dumps({**document, "schema_version": 99}), marks=pytest.mark.long),
        pytest.param(
            lambda document: json.dumps({**document, "pipelines": [{}], "target": "spoiled.py"}), marks=pytest.mark.long
        ),
        pytest.param(
            lambda document: json.dumps({**document, "verdict": None, "target": "spoiled.py"}), marks=pytest.mark.long
        ),
    ],
)
def test_a_damaged_report_is_made_again(tmp_path, damage):
    run = recorded("keras_fit", tmp_path)
    document = json.loads(report_to_bytes(fresh_report(run)))
    (run / REPORT_NAME).write_text(damage(document))
    text = text_of(made(tmp_path))
    assert "keras_fit.py:16" in text and "spoiled.py" not in text


@pytest.mark.long
def test_nothing_is_written_into_the_logdir(tmp_path):
    recorded("keras_fit", tmp_path)
    foreign(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    finder = RunFinder(str(tmp_path))
    for run in finder.listing().runs:
        assert isinstance(Reports().of(run, finder.root), Page)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.long
def test_markup_in_names_stays_text(tmp_path):
    foreign(tmp_path, "<img src=x onerror=alert(1)>")
    text = text_of(made(tmp_path))
    assert "<img" not in text and "&lt;img" in text


def test_too_many_requests_are_turned_away(tmp_path, monkeypatch):
    foreign(tmp_path)
    monkeypatch.setattr(reports_module, "MAX_WAITING", 0)
    answer = made(tmp_path)
    assert isinstance(answer, NoPage) and not answer.is_final and "try again" in answer.sentence
