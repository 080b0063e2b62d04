"""`advisor prove` from the command line to the verdict, on real scripts."""

from __future__ import annotations

import json
import textwrap
from pathlib import Path

import jsonschema
import pytest

from advisor.cli import main
from advisor.report.change_json import load_schema

SLOW = """
    import time
    import tensorflow as tf

    def work(x):
        time.sleep(0.004)
        return x * 2

    def slow(x):
        y = tf.numpy_function(work, [x], tf.int64)
        y.set_shape(())
        return y

    dataset = tf.data.Dataset.range(120).map(slow).batch(4)
    for epoch in range(100_000):
        for batch in dataset:
            time.sleep(0.002)
    """


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(textwrap.dedent(SLOW))
    return tmp_path


def proved(project, capsys, old, new, *options, code=0):
    text = (project / "train.py").read_text()
    assert old in text
    (project / "other.py").write_text(text.replace(old, new))
    before = sorted(path.name for path in project.iterdir())
    assert main(["prove", "--json", "-", *options, "--with", "other.py", "train.py"]) == code
    data = json.loads(capsys.readouterr().out)
    jsonschema.Draft202012Validator(load_schema()).validate(data)
    assert sorted(path.name for path in project.iterdir()) == before
    assert (project / "train.py").read_text() == text
    return data


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.timed
@pytest.mark.parametrize(
    ("old", "new", "verdict"),
    [
        (".map(slow)", ".map(slow).cache()", "equal and faster"),
        pytest.param(".map(slow)", ".map(slow, num_parallel_calls=8)", "equal and faster", marks=pytest.mark.slow),
        pytest.param("slow", "costly", "same", marks=pytest.mark.slow),
        pytest.param("time.sleep(0.004)", "time.sleep(0.012)", "slower", marks=pytest.mark.slow),
        pytest.param("return x * 2", "return x * 3", "different data", marks=pytest.mark.slow),
        pytest.param(
            "time.sleep(0.004)\n    return x * 2",
            "return x * 2 + 1",
            "faster but different data",
            marks=pytest.mark.slow,
        ),
    ],
)
def test_verdicts_on_the_pipeline_alone(old, new, verdict, project, capsys):
    data = proved(project, capsys, old, new, "--pipeline-only")
    assert data["verdict"] == verdict, data
    assert data["pipeline_only"] and data["runs"] in (2, 3)


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.timed
def test_a_cache_on_the_whole_script(project, capsys):
    data = proved(project, capsys, ".map(slow)", ".map(slow).cache()", "--seconds", "2")
    assert data["verdict"] == "equal and faster", data
    assert data["speedup"]["low"] > 1.5 and data["turns"] >= 3
    assert data["before"]["step_time_ms"] > data["after"]["step_time_ms"]
    assert data["datasets"][0]["safety"] == "exact" and data["datasets"][0]["is_complete"]


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_change_with_which_the_script_fails(project, capsys):
    (project / "other.py").write_text("import tensorflow\nraise ValueError('no')\n")
    assert main(["prove", "--pipeline-only", "--with", "other.py", "train.py"]) == 3
    assert "With the change: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["train.py"], "--with OTHER.py, --patch FILE and --rev REV"),
        (["--with", "a.py", "--rev", "main", "train.py"], "one of --with"),
        (["--with", "train.py", "train.py"], "nothing to prove"),
        (["--with", "missing.py", "train.py"], "missing.py cannot be read"),
        (["--with", "train.py", "missing.py"], "There is no missing.py"),
        (["--with", "train.py", "-m", "train"], "--patch or --rev"),
        (["--budget", "5s", "--with", "train.py", "train.py"], "too short"),
        (["--json", "train.py", "--with", "train.py", "train.py"], "names a source file"),
    ],
)
def test_errors_before_anything_is_run(args, message, project, capsys):
    assert main(["prove", *args]) == 2
    assert message in capsys.readouterr().err


@pytest.mark.parametrize(
    "args",
    [
        ["--with", "other.py", "--pipeline-only", "train.py", "--fast", "--with", "x"],
        ["train.py", "--with", "other.py", "--pipeline-only", "--fast", "--with", "x"],
        ["--pipeline-only", "train.py", "--with=other.py", "--fast", "--with", "x"],
    ],
)
def test_the_change_may_follow_the_script(args, project, monkeypatch):
    from advisor.workflows import prove as workflow

    (project / "other.py").write_text("x = 1\n")
    seen = []

    def prove(request, settings, on_progress):
        seen.append(request)
        raise KeyboardInterrupt

    monkeypatch.setattr(workflow, "prove", prove)
    assert main(["prove", *args]) == 130
    assert seen[0].texts.label == "--with other.py" and seen[0].is_pipeline_only
    assert seen[0].script.path == Path("train.py") and seen[0].script.args == ("--fast", "--with", "x")


KERAS = """
    import keras
    import tensorflow as tf

    def augment(x):
        return tf.random.normal([64]) + tf.cast(x, tf.float32) / 640, tf.cast(x, tf.float32) / 640

    data = tf.data.Dataset.range(640).map(augment).batch(8)
    model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(8), keras.layers.Dense(1)])
    model.compile(keras.optimizers.SGD(1e-3), "mse")
    model.fit(data, epochs=1000, verbose=0)
    """


@pytest.mark.tensorflow
@pytest.mark.slow
@pytest.mark.parametrize(
    ("old", "new", "is_moved"), [(", verbose=0", ", verbose=2", False), ("SGD(1e-3)", "SGD(2e-3)", True)]
)
def test_losses_of_a_script_without_seeds_side_by_side(old, new, is_moved, project, capsys):
    """All runs start with the same seeds, so the same elements and the same initial weights give the same losses."""
    (project / "train.py").write_text(textwrap.dedent(KERAS))
    data = proved(project, capsys, old, new, "--seconds", "1")
    assert data["data"] == "equal" and data["datasets"][0]["safety"] == "exact", data
    assert [point["batches"] for point in data["losses"]][:3] == [1, 2, 3]
    assert data["loss"]["between_runs"] < 0.001, data["loss"]
    assert (data["loss"]["relative"] > 0.01) is is_moved
    assert any("the change affects the training" in note for note in data["notes"]) is is_moved
