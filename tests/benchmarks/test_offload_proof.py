"""The benchmark of more workers: which bytes it counts, which rows it keeps, and that its storage is slow."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

import pytest

from tests.examples.conftest import REPOSITORY

HEADER = "Inter-|   Receive\n face |bytes    packets\n"


@pytest.fixture(autouse=True)
def benchmarks(monkeypatch):
    monkeypatch.syspath_prepend(str(REPOSITORY / "benchmarks"))


def samples(*stretches):
    """Samples every 0.25 s of stretches of (seconds, bytes/s)."""
    instant, total, made = 0.0, 0, [(0.0, 0)]
    for seconds, rate in stretches:
        for _ in range(round(seconds / 0.25)):
            instant, total = instant + 0.25, total + round(rate / 4)
            made.append((instant, total))
    return made


def test_the_counter_is_that_of_the_interface():
    from received_bytes import received

    text = HEADER + "    lo: 11 2 0\ntfdata0: 4711 3 0\n"
    assert received(text, "tfdata0") == 4711
    with pytest.raises(ValueError, match="no interface eth0"):
        received(text, "eth0")


def test_only_the_last_runs_count():
    from received_bytes import steady_rate

    fast, first, second = (6, 90e6), (5, 10e6), (5, 12e6)
    read = samples(fast, (4, 1e3), (0.5, 9e6), (3, 1e3), first, (4, 1e3), second, (2, 0))
    assert steady_rate(read, 2) == pytest.approx(11e6)
    assert steady_rate(read, 4) is None, "the half second is no run"
    assert steady_rate(read, 0) is None and steady_rate([], 1) is None


def test_an_interval_holds_whole_batches():
    from received_bytes import steady_rate

    read = samples((1, 0), (0.25, 3e6), *[(0.5, rate) for rate in [7e6, 7e6, 8e6] * 4], (0.25, 1e6), (2, 0))
    assert steady_rate(read, 1) == pytest.approx(22e6 / 3), "neither 7e6 nor the cut intervals at both ends"


def test_rows_of_earlier_runs_are_kept(tmp_path):
    from offload_proof import Results, Row, missing_rows, read_results

    path = tmp_path / "results.json"
    assert read_results(path).rows == []
    results = Results({"sentence": "s"}, [Row(1, 25.0, 25.0, [1.0, 0.9, 1.1], True, "same", 6.5e6, True)])
    results.save(path)
    assert read_results(path) == results
    assert missing_rows([1, 8]) == "2, 4"


def test_bytes_that_were_not_measured_are_marked():
    from offload_proof import Row

    assert "6.5 MB/s |" in Row(1, 25.0, 25.0, [1.0, 0.9, 1.1], True, "same", 6.5e6, True).cells()
    assert "6.5 MB/s (computed) |" in Row(1, 25.0, 25.0, [1.0, 0.9, 1.1], True, "same", 6.5e6).cells()


def test_a_table_without_all_rows_is_not_written(tmp_path):
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"sizing": {}, "rows": []}))
    command = [sys.executable, str(REPOSITORY / "benchmarks/offload_proof.py"), "--workers", "8", "--write-docs"]
    done = subprocess.run([*command, "--results", str(path)], capture_output=True, text=True)
    assert done.returncode == 2 and "1, 2, 4 are missing" in done.stderr


def test_only_files_below_the_folder_are_slow(tmp_path):
    from slow_storage import slow_storage, why_not

    if why_not():
        pytest.skip(why_not())
    folder = tmp_path / "data"
    folder.mkdir()
    for path in (folder / "slow", tmp_path / "data-of-others"):
        path.write_bytes(b"x")
    program = (
        "import os, sys, time\n"
        "for name in sys.argv[1:]:\n"
        "    file = os.open(name, os.O_RDONLY)\n"
        "    for read in (lambda: os.pread(file, 1, 0), lambda: os.read(file, 1)):\n"
        "        began = time.monotonic()\n"
        "        assert read() == b'x'\n"
        "        print(time.monotonic() - began)\n"
    )
    command = [sys.executable, "-c", program, str(folder / "slow"), str(tmp_path / "data-of-others")]
    environment = {**os.environ, **slow_storage(folder, 300_000, tmp_path)}
    began = time.monotonic()
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    seconds = [float(line) for line in done.stdout.split()]
    assert min(seconds[:2]) >= 0.3, seconds
    assert time.monotonic() - began > sum(seconds[:2]) and max(seconds[2:]) < 0.3, seconds


@pytest.mark.parametrize(
    ("added", "is_right"),
    [
        ('+ds = ds.map(f).repeat().apply(tf.data.experimental.service.distribute("a", "grpc://b:1")).unbatch()', True),
        ('+ds = ds.map(f).apply(tf.data.experimental.service.distribute("a", "grpc://b:1")).unbatch().repeat()', False),
        ('-ds = ds.map(f).repeat().apply(tf.data.experimental.service.distribute("a", "grpc://b:1")).unbatch()', False),
    ],
)
def test_a_decision_without_the_change_that_it_takes_is_wrong(added, is_right):
    from offload_decisions import Decision
    from offload_pipelines import Pipeline

    truth = Pipeline("p", "w", "", written=("ds.map(f).repeat()....unbatch()",))
    decision = Decision(truth, "movable", "batch", "", 0, 0, "equal", f"--- a\n+++ b\n{added}\n")
    assert decision.is_right == is_right
    assert ("without the change of the script" in decision.cells()) != is_right
