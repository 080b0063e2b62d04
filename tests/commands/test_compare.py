"""`advisor compare` on recorded runs, and on two scripts whose runs are interleaved."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import jsonschema
import pytest

from advisor.cli import main
from advisor.report.comparison_json import load_schema

DATA = Path(__file__).parents[1] / "data"


@pytest.fixture
def runs(tmp_path):
    return [str(shutil.copytree(DATA / name, tmp_path / name)) for name in ("keras_fit", "model_bound")]


def compared(capsys, *args):
    assert main(["compare", "--json", "-", *args]) == 0
    out, err = capsys.readouterr()
    data = json.loads(out)
    jsonschema.Draft202012Validator(load_schema()).validate(data)
    return data, err


def test_schema_is_sound_and_closed():
    schema = load_schema()
    jsonschema.Draft202012Validator.check_schema(schema)
    for part in [schema, *schema["$defs"].values()]:
        assert part["additionalProperties"] is False
        assert set(part["required"]) == set(part["properties"])


def test_run_against_itself_is_no_difference(runs, capsys):
    data, err = compared(capsys, runs[1], runs[1])
    assert data["verdict"] == "same"
    assert data["step_time"]["speedup"] == 1.0
    assert data["step_time"]["low"] < 1 < data["step_time"]["high"]
    assert 2 <= data["before"]["stretches"] == data["after"]["stretches"] <= 10
    assert "segments" in err
    assert all(node["before"] == node["after"] for node in data["nodes"])
    assert "No significant difference" in err


def test_a_short_run_with_steps_of_many_lengths_gives_no_verdict(runs, capsys):
    data, err = compared(capsys, runs[0], runs[0])
    assert data["verdict"] == "unknown"
    assert data["step_time"]["low"] < 0.8 and data["step_time"]["high"] > 1.25
    assert "The step times give no verdict" in err and "The runs vary too much for a verdict" in err


def test_figures_and_nodes_of_two_runs(runs, capsys):
    data, err = compared(capsys, *runs)
    assert data["before"]["input_wait_share"] > data["after"]["input_wait_share"]
    assert data["turns"] == 0
    methods = {node["method"]: node for node in data["nodes"]}
    assert methods["shuffle"]["after"] is None  # gone
    assert methods["prefetch"]["before"] is None  # new
    assert methods["range"]["before"]["name"] == methods["range"]["after"]["name"] == "Range"
    assert "removed" in err
    assert data["step_time"] is None  # batches of 8 and of 2
    assert "A step takes 8 elements before and 2 after" in err


def test_ratio_is_turned_over_with_the_runs(runs, tmp_path, capsys):
    pair = [runs[0], str(shutil.copytree(DATA / "mirrored", tmp_path / "mirrored"))]  # batches of 8 both
    there, _ = compared(capsys, *pair)
    back, _ = compared(capsys, *reversed(pair))
    assert there["step_time"]["speedup"] != 1
    assert back["step_time"]["speedup"] == pytest.approx(1 / there["step_time"]["speedup"])


def test_nothing_is_written_beside_the_runs(runs, capsys):
    before = sorted(Path(runs[0]).parent.rglob("*"))
    compared(capsys, *runs)
    assert sorted(Path(runs[0]).parent.rglob("*")) == before


@pytest.mark.parametrize(
    ("args", "says"),
    [
        (["compare", "x.py"], "AFTER"),
        (["compare", "/not/there", "/not/either"], "/not/there"),
        (["compare", "--out", "o", "RUN", "RUN"], "--out"),
        (["compare", "RUN", "SCRIPT"], "cannot be compared with a saved run"),
        (["compare", "--steps", "3", "RUN", "RUN"], "--steps applies only to scripts"),
    ],
)
def test_mistakes(args, says, runs, tmp_path, capsys):
    script = tmp_path / "s.py"
    script.write_text("raise SystemError('ran')")
    names = {"RUN": runs[0], "SCRIPT": str(script)}
    assert main([names.get(arg, arg) for arg in args]) == 2
    assert says in capsys.readouterr().err


SCRIPT = """import sys, time
import tensorflow as tf
def work(x):
    return tf.py_function(lambda v: time.sleep(float(sys.argv[1])) or v, [x], tf.int64)
for x in tf.data.Dataset.range(100_000).map(work):
    time.sleep(0.001)
"""


@pytest.mark.timed
@pytest.mark.slow
@pytest.mark.tensorflow
def test_two_scripts_by_turns(tmp_path, capsys, monkeypatch):
    """Runs of a second or two each: the ratio of sleeps is found, arguments in one word."""
    (tmp_path / "train.py").write_text(SCRIPT)
    monkeypatch.chdir(tmp_path)
    data, err = compared(capsys, "--steps", "60", "--warmup", "20", "train.py 0.012", "train.py 0.004")
    assert "run 4 to 9 times" in err
    assert 3 <= data["turns"] <= 8
    assert data["verdict"] == "faster"
    assert 1.3 < data["step_time"]["low"] <= data["step_time"]["speedup"] <= data["step_time"]["high"]
    assert data["step_time"]["speedup"] < 3.5, "the ratio of the sleeps is 3, and all else is the same"
    assert data["before"]["target"] == "train.py 0.012"
