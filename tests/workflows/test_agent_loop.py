"""Scripts with different problems, made faster by an agent that has nothing but the JSON and the rules of SKILL.md."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import pytest

from tests.workflows.scripted_agent import JOURNAL, KEPT, Agent

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


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.parametrize(
    "rule", [rule if rule == "serial-map" else pytest.param(rule, marks=pytest.mark.slow) for rule in SCRIPTS]
)
def test_the_loop_ends_with_a_proved_script_and_does_nothing_twice(rule, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = script_of(SCRIPTS[rule])
    script = Path("train.py")
    agent = Agent()
    agent.run()
    final = script.read_text()
    assert rule in agent.kept, [proof["sentence"] for proof in agent.proofs]
    assert final != original
    for proof in agent.proofs:
        is_kept = proof["verdict"] == KEPT
        assert is_kept == (proof["data"] == "equal" and proof["speed"] == "faster")
        assert proof["judged_before"] is None
        assert not is_kept or proof["speedup"]["low"] > 1
    assert [proof["verdict"] for proof in agent.proofs].count(KEPT) == len(agent.kept)
    journal = Path(JOURNAL).read_bytes()
    events = [json.loads(line)["event"] for line in journal.splitlines()]
    assert events == ["began", "judged"] * len(agent.proofs)

    script.write_text(original)  # a crash: the same loop again, from the runs that are stored
    again = Agent(saved_runs=agent.runs)
    again.run()
    assert script.read_text() == final
    assert again.kept == agent.kept
    assert [proof["verdict"] for proof in again.proofs] == [proof["verdict"] for proof in agent.proofs]
    assert all(proof["judged_before"] for proof in again.proofs)
    assert Path(JOURNAL).read_bytes() == journal


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.slow
def test_a_faster_change_of_the_data_is_dropped(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    original = script_of(SEEDED)
    agent = Agent()
    agent.run()
    assert {proof["data"] for proof in agent.proofs} == {"different"}
    assert agent.kept == [] and Path("train.py").read_text() == original
