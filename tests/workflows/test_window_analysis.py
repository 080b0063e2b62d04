"""Analyses of windows beside a training: what they find, what they leave, and what becomes of a window that is damaged."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

from advisor.host.process_limits import NICENESS
from advisor.model.live import LiveWindow
from advisor.workflows import window_analysis, window_worker
from advisor.workflows.window_analysis import WindowAnalysis

DATA = Path(__file__).parents[1] / "data"


def window(folder, **others):
    return LiveWindow(str(folder), "c1", "train.py:7", "for", 10, 20, 0, 1, 2, **others)


@pytest.fixture
def saved(tmp_path):
    folder = tmp_path / "1"
    shutil.copytree(DATA / "generator", folder)
    return folder


def result(analysis):
    """The finding of the only window."""
    end_at = time.monotonic() + 60
    while time.monotonic() < end_at:
        for _, finding in analysis.finished():
            return finding
        time.sleep(0.05)
    raise AssertionError("no finding")


@pytest.mark.long
def test_a_window_is_analysed_and_its_folder_removed(saved):
    with WindowAnalysis() as analysis:
        analysis.add(window(saved))
        bottleneck = result(analysis)
        assert analysis.finished() == []
    assert bottleneck.problem == ""
    assert bottleneck.steps > 0 and 0 < bottleneck.wait_share <= 1 and bottleneck.step_ns > 0
    assert bottleneck.is_input_bound and 0 < bottleneck.blame_share <= 1 and ".py:" in bottleneck.bottleneck
    assert bottleneck.cpu_ns > 0
    assert not saved.exists()


@pytest.mark.long
def test_the_runs_own_window_is_kept(saved):
    before = sorted(saved.rglob("*"))
    with WindowAnalysis() as analysis:
        analysis.add(window(saved, is_first=True))
        assert result(analysis).problem == ""
    assert sorted(saved.rglob("*")) == before


@pytest.mark.long
def test_a_damaged_window_is_a_sentence_and_the_next_one_is_analysed(saved, tmp_path):
    damaged = tmp_path / "2"
    damaged.mkdir()
    (damaged / "recording.json").write_text("{")
    with WindowAnalysis() as analysis:
        analysis.add(window(damaged))
        analysis.add(window(saved))
        analysis.wait(60)
        (_, first), (_, second) = analysis.finished()
    assert "damaged" in first.problem and second.problem == ""
    assert not damaged.exists()


def test_a_window_without_a_profile_is_only_removed(saved):
    with WindowAnalysis() as analysis:
        analysis.add(window(saved, problem="The process was being profiled already."))
        assert analysis.finished() == []
    assert not saved.exists()


def test_windows_that_come_too_fast_are_left_out(tmp_path, monkeypatch):
    monkeypatch.setattr(
        WindowAnalysis, "_analysed", lambda self, window: time.sleep(0.5) or window_worker.WindowFinding()
    )
    folders = [tmp_path / str(number) for number in range(20)]
    with WindowAnalysis() as analysis:
        for folder in folders:
            folder.mkdir()
            analysis.add(window(folder))
        left_out = [skipped for _, skipped in analysis.finished()]
    assert len(left_out) >= len(folders) - window_analysis.MAX_WAITING - 1
    assert {skipped.problem for skipped in left_out} == {"Windows came faster than they could be analysed."}


def test_leaving_ends_the_analysis_at_once(saved):
    began = time.monotonic()
    with WindowAnalysis() as analysis:
        analysis.add(window(saved))
        time.sleep(0.3)
    assert time.monotonic() - began < 5
    analysis._thread.join(10)
    assert not analysis._thread.is_alive()


@pytest.mark.long
def test_the_process_gives_way_to_the_training_and_has_limits(saved):
    program = f"""
import os, resource, signal
from pathlib import Path
from advisor.workflows.window_worker import Job, work
found = work(Job(Path({str(saved)!r}), seconds=50.0))
print(found.problem)
print(os.nice(0), resource.getrlimit(resource.RLIMIT_AS)[0] != resource.RLIM_INFINITY)
print(0 < signal.getitimer(signal.ITIMER_REAL)[0] <= 50)
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    problem, limits, has_timer = done.stdout.splitlines()
    assert (problem, has_timer) == ("", "True")
    assert int(limits.split()[0]) >= NICENESS and limits.endswith("True")
