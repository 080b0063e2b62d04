"""Scripts with different problems, made faster by an agent that has nothing but the JSON and the rules of SKILL.md."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import textwrap
import time
from contextlib import suppress
from pathlib import Path

import pytest

from tests.workflows.scripted_agent import JOURNAL, KEPT, Agent

ROOT = Path(__file__).parents[2]
START = """
import time
import numpy as np
import tensorflow as tf

{pipeline}

for epoch in range(100_000):
    for batch in dataset:
        time.sleep(0.001)
"""
SCRIPTS = {
    "repeated-work": """
        def work(x):
            for _ in range(6):
                x = tf.linalg.matmul(x, x) / tf.reduce_max(x)
            return tf.reduce_mean(x)

        dataset = tf.data.Dataset.from_tensor_slices(tf.ones([64, 200, 200]))
        dataset = dataset.map(work).batch(8)
        """,
    "serial-map": """
        def fetch(x):
            time.sleep(0.004)
            return x * 2

        def work(x):
            y = tf.numpy_function(fetch, [x], tf.int64)
            y.set_shape(())
            return y

        dataset = tf.data.Dataset.range(10_000_000)
        dataset = dataset.map(work).batch(4)
        """,
    "scalar-map": """
        def work(x):
            return tf.cast(x % 1000, tf.float32) * 0.25 - 1.0

        dataset = tf.data.Dataset.range(1_000_000_000)
        dataset = dataset.map(work).batch(2048)
        """,
    "vectorizable-map": """
        SCALES = np.arange(32, dtype=np.float32)

        def work(x):
            row = tf.cast(x % 1000, tf.float32) * SCALES
            row -= tf.reduce_max(row)
            row = tf.abs(row) + tf.roll(row, 1, 0)
            return tf.clip_by_value(row, -200.0, 200.0)

        dataset = tf.data.Dataset.range(1_000_000_000)
        dataset = dataset.map(work).batch(512)
        """,
    "unbatch-rebatch": """
        def work(x):
            return tf.cast(tf.range(x * 20_000, (x + 1) * 20_000), tf.float32)

        dataset = tf.data.Dataset.range(1_000_000)
        dataset = dataset.map(work)
        dataset = dataset.unbatch()
        dataset = dataset.batch(8192)
        """,
}
"""Rule whose change helps -> the pipeline."""
SEEDED = """
    def fetch(x):
        time.sleep(0.004)
        return x * 2

    def work(x):
        y = tf.numpy_function(fetch, [x], tf.int64)
        y.set_shape(())
        return tf.cast(y, tf.float32) + tf.random.uniform(())

    tf.random.set_seed(7)
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(work).batch(4)
    """
"""Parallel calls are faster, and draw other numbers than those that the seed stands for."""


def script_of(pipeline):
    """The text of a script with this pipeline, which becomes `train.py` in the current folder."""
    text = START.format(pipeline=textwrap.dedent(pipeline).strip())
    Path("train.py").write_text(text)
    return text


def entries():
    """The lines of the journal."""
    return [json.loads(line) for line in Path(JOURNAL).read_text().splitlines()] if Path(JOURNAL).exists() else []


def events():
    return [entry["event"] for entry in entries()]


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.parametrize(
    ("rule", "is_total_proved"),
    [
        (rule, False) if rule == "serial-map" else pytest.param(rule, True, marks=pytest.mark.slow) for rule in SCRIPTS
    ],  # that of the other one is proved in the test below
)
def test_the_loop_ends_with_a_proved_script_and_does_nothing_twice(rule, is_total_proved, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = script_of(SCRIPTS[rule])
    script = Path("train.py")
    agent = Agent()
    agent.search()
    final = script.read_text()
    assert rule in agent.kept, [proof["sentence"] for proof in agent.proofs]
    assert final != original
    for proof in agent.proofs:
        is_kept = proof["verdict"] == KEPT
        assert is_kept == (proof["data"] == "equal" and proof["speed"] == "faster")
        assert proof["judged_before"] is None
        assert not is_kept or proof["speedup"]["low"] > 1
    assert [proof["verdict"] for proof in agent.proofs].count(KEPT) == len(agent.kept)
    assert events() == ["began", "judged"] * len(agent.proofs)
    if is_total_proved:
        check_total(agent.prove_total())
    journal = Path(JOURNAL).read_bytes()

    again = Agent()  # after a crash: the same loop again, from what is stored
    again.search()
    assert again.runs == agent.runs
    assert script.read_text() == final
    assert again.kept == agent.kept
    assert [proof["verdict"] for proof in again.proofs] == [proof["verdict"] for proof in agent.proofs]
    assert all(proof["judged_before"] for proof in again.proofs)
    if is_total_proved:
        assert again.prove_total()["judged_before"]
    assert Path(JOURNAL).read_bytes() == journal


def check_total(total):
    """The last word of the loop is on the training, with all changes together."""
    assert (total["verdict"], total["pipeline_only"]) == (KEPT, False), total["sentence"]
    assert total["speedup"]["low"] > 1 and total["turns"] >= 3
    assert [phase["name"] for phase in total["phases"]] == ["first runs", "elements", "whole script"]


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.slow
def test_an_agent_that_is_killed_in_a_proof_goes_on_and_ends_with_one_of_the_whole_script(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = script_of(SCRIPTS["serial-map"])
    agent = subprocess.Popen(
        [sys.executable, "-m", "tests.workflows.scripted_agent"], env={**os.environ, "PYTHONPATH": str(ROOT)}
    )
    try:
        wait_until(lambda: (events() == ["began"] and started_by(agent.pid)) or agent.poll() is not None)
        assert agent.poll() is None
        time.sleep(3)  # the script starts TensorFlow
        runs = started_by(agent.pid)
    finally:
        agent.kill()
        agent.wait()
    assert runs
    wait_until(lambda: not any(map(is_alive, runs)))
    assert events() == ["began"] and Path("train.py").read_text() == original
    saved = [Path("run0", name).read_bytes() for name in ("recording.json", "report.json")]

    again = Agent()
    total = again.run()
    check_total(total)
    assert again.kept == ["serial-map"]
    assert [Path("run0", name).read_bytes() for name in ("recording.json", "report.json")] == saved
    first = again.proofs[0]
    assert first["judged_before"] is None and "has no end in the journal" in " ".join(first["notes"])
    assert events() == ["began"] + ["began", "judged"] * (len(again.proofs) + 1)
    assert len({entry["diff"] for entry in entries()[:3]}) == 1
    assert "num_parallel_calls" in Path("train.py").read_text()


def wait_until(is_done):
    deadline = time.monotonic() + 120
    while not is_done():
        assert time.monotonic() < deadline, "it did not happen"
        time.sleep(0.1)


def started_by(pid):
    """The processes below a process."""
    parents = {}
    for path in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            parents[int(path.parent.name)] = int(path.read_text().rpartition(")")[2].split()[1])
    below = {pid}
    while more := {child for child, parent in parents.items() if parent in below} - below:
        below |= more
    return below - {pid}


def is_alive(pid):
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] not in "ZX"
    except OSError:
        return False


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.slow
def test_a_faster_change_of_the_data_is_dropped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = script_of(SEEDED)
    agent = Agent()
    assert agent.run() is None
    assert {proof["data"] for proof in agent.proofs} == {"different"}
    assert agent.kept == [] and Path("train.py").read_text() == original
