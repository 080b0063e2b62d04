"""TensorFlow's own writers, which no Python hook of the file system sees: the tree stays as it was."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.sandbox.namespace import REFUSE
from tests.sandbox.conftest import tree_of

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]
TRAINS = """
from pathlib import Path
import tensorflow as tf

for folder in (Path(__file__).parent, Path({elsewhere!r})):
    step = tf.Variable(0, dtype=tf.int64)
    checkpoint = tf.train.Checkpoint(step=step)
    manager = tf.train.CheckpointManager(checkpoint, str(folder / "checkpoints"), max_to_keep=1)
    print("resumed at", int(checkpoint.restore(manager.latest_checkpoint) and step), flush=True)
    writer = tf.summary.create_file_writer(str(folder / "logs"))
    with writer.as_default():
        for batch in tf.data.Dataset.range(20).batch(2):
            tf.summary.scalar("loss", 1.0, step.assign_add(1))
    manager.save()
    step.assign(0)
    checkpoint.restore(manager.latest_checkpoint)
    print("restored", int(step))
    model = tf.keras.Sequential([tf.keras.Input([2]), tf.keras.layers.Dense(1)])
    model.save(Path(__file__).parent / "model.keras")
    model.save_weights("model.weights.h5")
"""


@pytest.mark.parametrize("refused", ["", "namespace"])
def test_checkpoints_and_summaries_are_thrown_away(
    project: Callable[[str], Path], temporary: Path, home: Path, monkeypatch: pytest.MonkeyPatch, refused: str
) -> None:
    monkeypatch.setenv(REFUSE, refused)
    elsewhere = home / "elsewhere"
    (elsewhere / "checkpoints").mkdir(parents=True)
    folder = project(TRAINS.format(elsewhere=str(elsewhere)))
    before = tree_of(folder)
    out = folder.parent / "run"
    capture(CaptureRequest(out=out, script=folder / "train.py"), lambda progress: None)
    assert (out / "script.out").read_text() == "resumed at 0\nrestored 10\n" * 2
    assert tree_of(folder) == before
    assert not [path for path in elsewhere.rglob("*") if path.suffix in (".index", ".v2") or "data-" in path.name]
