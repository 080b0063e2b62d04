"""Windows of a whole run: the script trains on, and what changes in it is found."""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest

from advisor.live.view import summary
from advisor.live.watched_run import WatchedRun
from advisor.live.window_plan import WindowPlan
from advisor.model.live import BottleneckStretch, SlowPeriod
from advisor.workflows.analyze import Request, load
from advisor.workflows.watch_script import watch_script

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

TWO_PHASES = """import os, time
import tensorflow as tf

def first(x):
    time.sleep(0.004)
    return x

def second(x):
    time.sleep(0.02 if slow else 0.0005)
    return x

slow = False
data = tf.data.Dataset.range(10**9)
data = data.map(lambda x: tf.numpy_function(first, [x], tf.int64))
data = data.map(lambda x: tf.numpy_function(second, [x], tf.int64))
begun = time.time()
for step, x in enumerate(data):
    time.sleep(0.002)
    slow = time.time() - begun > SLOW_FROM
    if os.path.exists("enough") or time.time() - begun > 150:
        break
print("steps", step + 1)
"""
FIRST_LINE, SECOND_LINE = 14, 15


def watched(folder, text, plan, is_enough=lambda run, told: False):
    """Run a script, until what was seen is enough; return the outcome, the run and everything that was told."""
    script = folder / "train.py"
    script.write_text(text)
    request = Request(path=script)
    rules, settings = load(request)
    run, told = WatchedRun(), []

    def on_sample(sample, changes):
        told.extend(changes)
        if is_enough(run, told):
            (folder / "enough").touch()

    outcome = watch_script(request, rules, settings, run, lambda progress: None, on_sample, plan=plan)
    return outcome, run, told


def stretches_in(told):
    return [change for change in told if isinstance(change, BottleneckStretch)]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("TMPDIR", str(tmp_path / "tmp"))
    (tmp_path / "tmp").mkdir()
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_the_bottleneck_of_a_slow_period_is_found_while_the_script_runs(folder, capfd):
    text = TWO_PHASES.replace("SLOW_FROM", "20")
    outcome, run, told = watched(folder, text, WindowPlan(every_s=None), lambda run, told: len(stretches_in(told)) == 2)
    assert outcome.exit_code == 0 and outcome.problem == "" and outcome.report is not None
    assert capfd.readouterr().out.startswith("steps ")
    periods = [change for change in told if isinstance(change, SlowPeriod)]
    assert periods and periods[0].is_input
    first, second = stretches_in(told)
    assert (
        f"train.py:{FIRST_LINE}" in first.finding.bottleneck and f"train.py:{SECOND_LINE}" in second.finding.bottleneck
    )
    assert run.bottlenecks.windows == 2, "the run's own window, and one at the beginning of the slow period"
    assert second.first_step > periods[0].after_step
    lines = summary(run)
    assert any(line.startswith("Since step ") and f"train.py:{SECOND_LINE}" in line for line in lines), lines
    assert any(line.startswith("2 profiled windows took ") for line in lines)
    assert 0 < run.window_share < 0.5 and run.bottlenecks.analysis_cpu_ns > 0
    main = outcome.report.analysis.main
    site = main.iterator(main.bottleneck.iterator_id).main_call.site
    assert site.line == FIRST_LINE, "the report at the end is on the run's own window"
    assert list((folder / "tmp").glob("advisor-window-*")) == [], "nothing is left of the windows"


def test_windows_from_time_to_time_and_a_session_of_the_script(folder):
    text = TWO_PHASES.replace("SLOW_FROM", "1e9").replace(
        "    time.sleep(0.002)\n",
        "    time.sleep(0.002)\n"
        "    if step == 1500: tf.profiler.experimental.start('own')\n"
        "    if step == 2000: tf.profiler.experimental.stop()\n",
    )
    own = "plugins/profile/*/*.xplane.pb"

    def is_enough(run, told):
        return run.bottlenecks.windows >= 3 and any((folder / "own").glob(own))

    outcome, run, told = watched(folder, text, WindowPlan(every_s=4.0, max_share=1.0), is_enough)
    assert outcome.exit_code == 0 and outcome.report is not None
    assert run.bottlenecks.windows >= 3
    (stretch,) = stretches_in(told)
    assert run.bottlenecks.current.windows >= 2
    assert stretch.finding.is_input_bound
    assert list(Path("own").glob(own)), "the script's own profile is whole"
    assert not [problem for problem in run.bottlenecks.problems if "own profiler" not in problem], (
        run.bottlenecks.problems
    )


@pytest.mark.slow
def test_the_steps_are_the_same_with_and_without_windows(folder, capfd):
    script = """import tensorflow as tf
total, data = 0, tf.data.Dataset.range(200_000).map(lambda x: x * 3).batch(4)
for x in data:
    total += int(tf.reduce_sum(x))
print("total", total)
"""
    outcome, run, _ = watched(folder, script, WindowPlan(every_s=1.0, max_share=1.0))
    assert outcome.exit_code == 0
    assert capfd.readouterr().out == f"total {3 * sum(range(200_000))}\n"
    assert run.main.latest.steps == 50_000
