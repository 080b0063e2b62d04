"""Second runs: `--headroom` measures the pipeline without training, and a failing second run never fails the analysis."""

from __future__ import annotations

import json

import pytest

from advisor.cli import main

SCRIPT = """import pathlib, time
import tensorflow as tf

{before}

def slow(x):
    return tf.numpy_function(pause, [x], tf.int64)

def pause(x):
    time.sleep(0.004)
    return x

dataset = tf.data.Dataset.range(10_000).map(slow).prefetch(2)
for epoch in range(100):
    for batch in dataset:
        time.sleep({step})
"""

ONLY_ONCE = """
started = pathlib.Path({marker!r})
if started.exists():
    raise RuntimeError("the data are gone")
started.touch()
"""


def analyzed(tmp_path, monkeypatch, capsys, step, *options, before=""):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "train.py").write_text(SCRIPT.format(step=step, before=before))
    code = main(["analyze", "--json", "-", "--steps", "20", "--warmup", "5", "--headroom", *options, "train.py"])
    out, err = capsys.readouterr()
    assert code == 0, err
    return json.loads(out), err


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_headroom_is_that_of_the_pipeline_alone(tmp_path, monkeypatch, capsys, validate):
    """An element takes 4 ms and a step 24 ms: the training could become nearly six times as fast."""
    report, err = analyzed(tmp_path, monkeypatch, capsys, 0.024)
    validate(report)
    headroom = report["outlook"]["headroom"]
    assert 4e6 < headroom["measured_ns"] < 16e6
    assert headroom["step_speedup"] == pytest.approx(report["outlook"]["step_ns"] / headroom["measured_ns"])
    assert "alone delivers " in headroom["sentence"] and "elements/s (measured)" in headroom["sentence"]
    assert headroom["sentence"] in " ".join(err.split())


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_second_run_that_fails_is_a_warning(tmp_path, monkeypatch, capsys):
    marker = str(tmp_path / "started")
    report, _ = analyzed(tmp_path, monkeypatch, capsys, 0.024, "--in-place", before=ONLY_ONCE.format(marker=marker))
    headroom = report["outlook"]["headroom"]
    assert headroom["measured_ns"] is None and "(predicted; --headroom measures it)" in headroom["sentence"]
    (warning,) = (warning for warning in report["warnings"] if warning.startswith("The headroom could not be measured"))
    assert "the data are gone" in warning
