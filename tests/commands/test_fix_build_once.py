"""`advisor fix` on a script that makes its dataset in every epoch: it moves before the loop, and comes back."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.commands.test_fix import fix

SCRIPT = """\
import sys

import tensorflow as tf

signals = tf.random.stateless_normal((512, 64), seed=(1, 2))


def features(signal):
    parts = []
    for shift in range(1, 60):
        parts.append(tf.reduce_mean(signal * tf.roll(signal, shift, axis=0)))
    return tf.stack(parts)


def make_dataset():
    dataset = tf.data.Dataset.from_tensor_slices(signals)
    dataset = dataset.map(features, num_parallel_calls=tf.data.AUTOTUNE).cache()
    return dataset.batch(32).prefetch(tf.data.AUTOTUNE)


epochs = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
for epoch in range(epochs):
    for batch in make_dataset():
        total = tf.reduce_sum(batch)
print(f"total {total:.4f}")
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    project = tmp_path / "project"
    project.mkdir()
    (project / "train.py").write_text(SCRIPT)
    return project


def last_line(folder):
    ended = subprocess.run([sys.executable, "train.py", "2"], cwd=folder, check=True, capture_output=True, text=True)
    return ended.stdout.splitlines()[-1]


@pytest.mark.slow
@pytest.mark.timed
@pytest.mark.tensorflow
def test_the_dataset_is_made_once_and_made_in_the_loop_again_after_undo(folder, validate):
    options = ["--only", "rebuilt-every-epoch", "--budget", "540s", "--write", "--json", "-"]
    code, out, err = fix(folder, *options, "train.py")
    assert code == 0, err
    report = json.loads(out)
    validate(report)
    (fixed,) = report["fixes"]
    assert (fixed["rule"], fixed["verdict"], fixed["safety_seen"]) == ("rebuilt-every-epoch", "faster", "exact")
    assert report["proof"]["proved_on"] == "training"
    assert "with its share of the time between epochs" in report["proof"]["sentence"]
    written = (folder / "train.py").read_text()
    before, _, after = SCRIPT.partition("for epoch in range(epochs):\n    for batch in make_dataset():\n")
    assert (
        written
        == f"{before}dataset_2 = make_dataset()\nfor epoch in range(epochs):\n    for batch in dataset_2:\n{after}"
    )
    total = last_line(folder)
    code, _, err = fix(folder, "--undo", "train.py")
    assert code == 0, err
    assert (folder / "train.py").read_text() == SCRIPT
    assert last_line(folder) == total
