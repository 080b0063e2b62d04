"""The benchmark of service sides: what it counts as right, and that reports of live services name the planted side."""

from __future__ import annotations

import json
import os
import subprocess
import sys

import pytest

from tests.examples.conftest import REPOSITORY

BENCHMARK = REPOSITORY / "benchmarks" / "service_sides.py"


@pytest.fixture
def sides(monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK.parent))
    import service_sides

    return service_sides


def test_a_side_is_right_if_it_was_planted_or_left_open(sides, monkeypatch):
    right = sides.Row("c", "storage", "storage", "s")
    wrong = sides.Row("c", "storage", "workers", "s")
    left_open = sides.Row("c", "storage", "workers", "s", is_open=True)
    absent = sides.Row("c", "client", "", "", "There is no tc.")
    assert [row.is_right for row in (right, wrong, left_open, absent)] == [True, False, True, True]
    assert "**workers**" in wrong.cells() and "workers, or storage" in left_open.cells()
    lines = "\n".join(sides.report([right, wrong, left_open, absent], True, 1.0))
    assert "in 2 of 3 cases, in 1 of them beside another one" in lines and "There is no tc." in lines


def test_only_a_sentence_that_says_so_leaves_a_side_open(sides, monkeypatch):
    cause = next(cause for cause in sides.CAUSES if cause.also)
    monkeypatch.setattr(sides, "captured", lambda *_: None)
    for sentence, is_right in ((sides.OPEN, True), ("The workers are slow.", False)):
        monkeypatch.setattr(sides, "limit", lambda _, found=sentence: {"side": cause.also, "sentence": found})
        assert sides.row_of(cause, True, None).is_right is is_right


@pytest.mark.tensorflow
@pytest.mark.slow
def test_reports_of_live_services_name_the_planted_side(tmp_path):
    results = tmp_path / "results.json"
    names = ("slow-step", "slow-link", "serial-map", "slow-files")
    command = [sys.executable, str(BENCHMARK), "--results", str(results), *(f"--case={name}" for name in names)]
    environment = {**os.environ, "PYTHONPATH": str(REPOSITORY)}
    done = subprocess.run(command, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads(results.read_text())
    assert {name: row["why_not"] or row["said"] for name, row in rows.items()} == {
        name: row["why_not"] or row["planted"] for name, row in rows.items()
    }
    assert sum(not row["why_not"] for row in rows.values()) >= 2  # without networks or a compiler, these two remain
