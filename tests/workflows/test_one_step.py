"""The profile that Keras' TensorBoard callback takes of a single batch, as most people take it, has a verdict."""

from __future__ import annotations

import subprocess
import sys

import pytest

from advisor.engine import load_rules
from advisor.model.settings import Settings
from advisor.workflows.analyze import analyze_run

SCRIPT = """
import os, sys, time
os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
import keras, tensorflow as tf

def rows():
    while True:
        time.sleep(0.01)
        yield tf.zeros(2000), tf.zeros(1)

def constant(index):
    return tf.zeros(2000), tf.zeros(1)

signature = (tf.TensorSpec(2000), tf.TensorSpec(1))
slow = tf.data.Dataset.from_generator(rows, output_signature=signature).batch(16)
fast = tf.data.Dataset.range(10**6).map(constant).batch(256).prefetch(4)
wide = [keras.layers.Dense(2000, activation="relu") for _ in range(8 if sys.argv[2] == "fast" else 0)]
model = keras.Sequential([keras.layers.Input((2000,)), *wide, keras.layers.Dense(1)])
model.compile("sgd", "mse")
callback = keras.callbacks.TensorBoard(sys.argv[1], profile_batch=int(sys.argv[3]))
model.fit({"slow": slow, "fast": fast}[sys.argv[2]], steps_per_epoch=8, verbose=0, callbacks=[callback])
"""


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize(
    ("input_", "level", "bottleneck"),
    [("slow", "high", "Generator"), ("fast", "none", None)],
)
def test_one_batch_of_keras_has_a_verdict(input_, level, bottleneck, tmp_path):
    pytest.importorskip("keras")
    subprocess.run([sys.executable, "-c", SCRIPT, str(tmp_path / "logs"), input_, "5"], check=True, timeout=300)
    report = analyze_run(tmp_path / "logs", load_rules([], Settings()), Settings())
    verdict, main = report.analysis.verdict, report.analysis.main
    assert (verdict.level, verdict.certainty) == (level, "low"), verdict.sentence
    assert verdict.steps.count == 1 and "in the only step of the profile" in verdict.sentence
    if bottleneck is not None:
        assert report.findings
        # a batch that was begun before the profile leaves no event, and then nothing upstream of the buffer is known
        is_seen = not any(it.is_upstream_unseen for it in main.iterators)
        assert (main.bottleneck is not None) == is_seen
        assert not is_seen or bottleneck in main.iterator(main.bottleneck.iterator_id).name
