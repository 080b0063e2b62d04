"""Every way of collecting that the profiler guide describes leads to the report: each example, run for real."""

from __future__ import annotations

import ast
import json
import os

import pytest

import advisor
from tests.collecting import EXAMPLES, run_script

LOGDIR_WRITERS = ("start_stop", "profile_context", "trace_steps", "iterator_outside_trace", "tensorboard_callback")
LEFT_TO_ALL = ("start_stop", "profile_context", "trace_steps")
"""Left to `make test-all`: the other two write a logdir with the same profiler."""
WATCHERS = ("advisor_callback", "watch_loop")
SCRIPTS = sorted(path.stem for path in EXAMPLES.glob("*.py"))
ANTI_PATTERN = "exclude the input"


@pytest.fixture(scope="module")
def analysed(tmp_path_factory):
    """The report on what an example wrote; each runs once."""
    reports = {}

    def analyse(name):
        if name not in reports:
            logdir = tmp_path_factory.mktemp(name) / "logs"
            done = run_script(EXAMPLES / f"{name}.py", "--logdir", logdir)
            assert done.returncode == 0, done.stderr
            reports[name] = advisor.analyze(logdir)
        return reports[name]

    return analyse


@pytest.mark.parametrize("name", SCRIPTS)
def test_an_example_is_a_script_that_says_how_to_run_it(name):
    tree = ast.parse((EXAMPLES / f"{name}.py").read_text())
    assert f"python {name}.py" in (ast.get_docstring(tree) or "")


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.slow] * (name in LEFT_TO_ALL)) for name in LOGDIR_WRITERS],
)
def test_a_logdir_leads_to_the_report(name, analysed):
    if name == "tensorboard_callback":
        pytest.importorskip("tensorboard")
    report = analysed(name)
    verdict, main = report.analysis.verdict, report.analysis.main
    assert verdict.is_input_bound and verdict.input_wait_share > 0.3
    assert 30 <= main.steps.count <= 40
    assert main.iterator(main.bottleneck.iterator_id).name == "MapAndBatch"
    assert any(ANTI_PATTERN in text for text in report.analysis.warnings) == (name == "iterator_outside_trace")


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_wait_that_the_marks_leave_out_is_found_all_the_same(analysed):
    report = analysed("iterator_outside_trace")
    (warning,) = [text for text in report.analysis.warnings if ANTI_PATTERN in text]
    assert "next(iterator)" in warning and "Trace('train', step_num=step, _r=1)" in warning
    assert report.analysis.main.wait_share > 0.5


@pytest.mark.long
@pytest.mark.tensorflow
def test_marked_steps_are_the_steps(analysed):
    assert analysed("trace_steps").analysis.main.steps.count == 40, "one for each Trace, the last one included"


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("name", WATCHERS)
def test_watched_from_inside_as_by_analyze(name, tmp_path):
    logdir = tmp_path / "logs"
    done = run_script(EXAMPLES / f"{name}.py", "--logdir", logdir)
    assert done.returncode == 0, done.stderr
    (folder,) = logdir.glob("advisor-*")
    assert f"Run folder: {folder}" in done.stdout and "Input is the problem" in done.stdout
    assert {"recording.json", "host.json", "report.json", "plugins"} <= {path.name for path in folder.iterdir()}
    report = json.loads((folder / "report.json").read_text())
    source = (EXAMPLES / f"{name}.py").read_text().splitlines()
    site = report["pipelines"][0]["bottleneck"]["site"]
    assert site["file"].endswith(f"{name}.py") and ".map(distort)" in source[site["line"] - 1]
    assert report["verdict"]["step_time_ms"]["count"] == 20
    again = advisor.analyze(logdir)
    assert again.run_folder == str(folder) and again.analysis.verdict.input_wait_share == pytest.approx(
        report["verdict"]["input_wait_share"]
    )
    assert (
        again.analysis.recording.window.warmup_steps == 10 and again.analysis.recording.script_exit.kind == "finished"
    )


@pytest.mark.long
@pytest.mark.tensorflow
def test_four_workers_at_the_same_time(tmp_path):
    logdir = tmp_path / "logs"
    done = run_script(EXAMPLES / "several_workers.py", "--out", logdir)
    assert done.returncode == 0, done.stderr
    assert len(list(logdir.glob("plugins/profile/*/*.xplane.pb"))) == 4
    assert len(list(logdir.glob("plugins/profile/*"))) == 1, "one run"
    report = advisor.analyze(logdir)
    assert len(report.analysis.hosts.hosts) == 4
    assert all(os.sep not in host.hostname and "localhost_60" in host.hostname for host in report.analysis.hosts.hosts)
