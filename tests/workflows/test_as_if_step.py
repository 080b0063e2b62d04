"""A training step replaced by a wait: the report is that of a training with such steps, and the model is not run."""

from __future__ import annotations

import json

import pytest

from advisor.cli import main

SCRIPT = """import pathlib, time
import tensorflow as tf

def slow(x):
    return tf.numpy_function(pause, [x], tf.int64)

def pause(x):
    time.sleep(0.002)
    return x

dataset = tf.data.Dataset.range(10_000).map(slow).batch(8).prefetch(2)
for epoch in range(100):
    for batch in dataset:
        pathlib.Path("trained").write_text("a step")
        time.sleep(0.03)
"""


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    return tmp_path


def analyzed(capsys, *options):
    assert main(["analyze", "--in-place", "--json", "-", *options, "train.py"]) == 0
    return json.loads(capsys.readouterr().out)


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_step_of_a_given_length(project, capsys, validate):
    """A batch takes at least 16 ms; steps of 4 ms wait for at least 3/4 of the time, as the step includes the wait."""
    report = analyzed(capsys, "--as-if-step", "4ms")
    validate(report)
    verdict = report["verdict"]
    assert verdict["sentence"].startswith("As if a step took 4 ms on a device of its own (accelerator utilisation ")
    assert verdict["input_bound"]
    assert verdict["input_wait_share"] > 0.6
    (main_pipeline,) = (pipeline for pipeline in report["pipelines"] if pipeline["is_main"])
    (bottleneck,) = (iterator for iterator in main_pipeline["iterators"] if iterator["is_bottleneck"])
    assert "map" in [call["method"] for call in bottleneck["calls"]]
    assert not (project / "trained").exists()
    assert report["outlook"]["headroom"] is None
    assert verdict["sentence"].endswith("The pipeline is the one that is read at train.py:13.")


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_step_that_the_pipeline_can_feed(project, capsys):
    report = analyzed(capsys, "--as-if-step", "60ms")
    assert not report["verdict"]["input_bound"]
    assert report["outlook"]["headroom"]["step_speedup"] > 1.5
    assert report["verdict"]["step_time_ms"]["median"] == pytest.approx(60, rel=0.2)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--as-if-step", "5ms", "--as-if-speedup", "2"], "--as-if-step and --as-if-speedup are mutually exclusive."),
        (["--as-if-step", "5ms", "--ceiling"], "--ceiling needs the training, which an imagined step replaces."),
        (["--as-if-step", "5ms", "--headroom"], "--headroom needs the training, which an imagined step replaces."),
        (["--as-if-step", "5ms", "--steps", "20"], "--steps has no effect on an imagined step"),
        (["--as-if-step", "0"], "'0' must be more than zero"),
        (["--as-if-step", "5min"], "--as-if-step is at most 30 s."),
        (["--as-if-speedup", "0"], "0.0 is not in the range x>0"),
        (["--as-if-step", "fast"], "fast"),
    ],
)
def test_what_cannot_be_imagined_is_refused_before_anything_runs(options, message, project, capsys):
    assert main(["analyze", *options, "train.py"]) == 2
    assert message in capsys.readouterr().err


TWO_LOOPS = """import time
import tensorflow as tf

def slow(x):
    return tf.numpy_function(pause, [x], tf.int64)

def pause(x):
    time.sleep(0.002)
    return x

for batch in tf.data.Dataset.range(30).batch(3):
    batch.numpy()

dataset = tf.data.Dataset.range(10_000).map(slow).batch(8).prefetch(2)
for epoch in range(100):
    for batch in dataset:
        time.sleep(0.03)
"""


@pytest.mark.tensorflow
@pytest.mark.slow
def test_a_speedup_is_that_of_the_training_and_of_its_pipeline(project, capsys):
    """The script reads another dataset first."""
    (project / "train.py").write_text(TWO_LOOPS)
    report = analyzed(capsys, "--as-if-speedup", "10")
    (main_pipeline,) = (pipeline for pipeline in report["pipelines"] if pipeline["is_main"])
    methods = {call["method"] for iterator in main_pipeline["iterators"] for call in iterator["calls"]}
    assert "map" in methods
    assert report["verdict"]["sentence"].endswith("The pipeline is the one that is read at train.py:16.")
    assert report["verdict"]["input_wait_share"] > 0.5
    assert report["window"] is not None


PEEKING = """import time, tqdm
import tensorflow as tf

def slow(x):
    return tf.numpy_function(pause, [x], tf.int64)

def pause(x):
    time.sleep(0.002)
    return x

files = tf.data.Dataset.range(10_000)
print(next(iter(files)))
dataset = files.map(slow).batch(8).prefetch(2)
for batch in dataset.take(5_000):
    print(batch.shape)
    break
for epoch in range(100):
    for batch in tqdm.tqdm(dataset):
        time.sleep(0.03)
"""


@pytest.mark.tensorflow
@pytest.mark.long
def test_looks_at_the_first_element_are_not_the_training(project, capsys):
    """But a loop over a progress bar, which reads the dataset for the script, is."""
    (project / "train.py").write_text(PEEKING)
    report = analyzed(capsys, "--as-if-step", "4ms")
    (main_pipeline,) = (pipeline for pipeline in report["pipelines"] if pipeline["is_main"])
    methods = {call["method"] for iterator in main_pipeline["iterators"] for call in iterator["calls"]}
    assert "map" in methods and "take" not in methods
    assert report["verdict"]["sentence"].endswith("The pipeline is the one that is read at train.py:18.")


COMPILED = """import tensorflow as tf

def work(x):
    words = tf.strings.as_string(tf.range(20_000, dtype=tf.int64) + x)
    return tf.strings.length(tf.strings.reduce_join(words))

dataset = tf.data.Dataset.range(10_000).map(work).batch(8)
for epoch in range(100):
    for batch in dataset:
        pass
"""


@pytest.mark.tensorflow
@pytest.mark.slow
def test_fix_leaves_what_tf_data_runs_in_parallel_already(project, capsys, validate):
    """No Python function is in the pipeline, so that tf.data has fused map and batch: the imagined step waits all the same."""
    (project / "train.py").write_text(COMPILED)
    options = ["--as-if-step", "1ms", "--only", "serial-map", "--budget", "3min", "--json", "-"]
    assert main(["fix", *options, "train.py"]) == 0
    report = json.loads(capsys.readouterr().out)
    validate(report)
    assert report["verdict"]["input_bound"] and report["verdict"]["input_wait_share"] > 0.5
    (main_pipeline,) = (pipeline for pipeline in report["pipelines"] if pipeline["is_main"])
    assert any("into one MapAndBatch" in sentence for sentence in main_pipeline["already_done"])
    assert report["fixes"] == [] and report["findings"] == []
    assert any("a wait of 1 ms, which takes no core, replaced each step" in note for note in report["proof"]["notes"])
    assert (project / "train.py").read_text() == COMPILED
