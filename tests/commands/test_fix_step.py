"""Changes of the training step in real scripts: written, run, judged and taken back; one with which the script fails."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from advisor.host.machine import describe_host
from tests.examples.conftest import EXAMPLES

pytestmark = [pytest.mark.long, pytest.mark.tensorflow]

SCRIPT = """import keras
import tensorflow as tf

features = tf.random.stateless_normal((1024, 16), (1, 2))
dataset = tf.data.Dataset.from_tensor_slices((features, tf.reduce_sum(features, 1, keepdims=True)))
dataset = dataset.batch(16, drop_remainder=True).cache().repeat().prefetch(2)
keras.utils.set_random_seed(1)
model = keras.Sequential([keras.Input((16,)), keras.layers.Dense(8, "relu"), keras.layers.Dense(1)])
model.compile("sgd", "mse"{more})
model.fit(dataset, steps_per_epoch=100_000, verbose=0)
"""
LAYER = '''class Scale(keras.layers.Layer):
    """A layer that keeps its weights in 32 bit itself."""

    def __init__(self):
        super().__init__()
        self.scale = tf.Variable(tf.ones(8))

    def call(self, inputs):
        return tf.multiply(inputs, self.scale)


model ='''
ADAPTED = SCRIPT.replace(
    "model =",
    "normalization = keras.layers.Normalization()\n"
    "normalization.adapt(tf.data.Dataset.from_tensor_slices(features).batch(64))\n"
    "model =",
    1,
).replace("keras.Input((16,)), ", "keras.Input((16,)), normalization, ")
"""A model that learns mean and variance of its input from a dataset before it trains."""
LOOP = """import tensorflow as tf

data = tf.data.Dataset.range(1 << 40).map(lambda x: tf.ones([8 + x % 4096, 4])).prefetch(2)
weights = tf.Variable(tf.ones([4, 4]))


@tf.function
def train_step(batch):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(batch @ weights - batch))
    weights.assign_sub(0.01 * tape.gradient(loss, weights))
    return loss


for batch in data:
    train_step(batch)
"""
RULE = '''"""A rule that always proposes one change of the training step."""
from dataclasses import dataclass
from typing import ClassVar
from advisor.model.edits import (SetFunctionArgument)
from advisor.rule import *

@dataclass(frozen=True, kw_only=True)
class Planted(Rule):
    """Planted."""
    needs_input_bound: ClassVar[bool] = False
    is_hint: ClassVar[bool] = True

    def check(self, analysis):
        edit = {edit}
        yield self.finding("Change the step", "Planted.", site=step_site(analysis), fix=step_fix(edit), code="code")

EXAMPLES = ()
'''


@pytest.fixture
def project(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    folder = tmp_path / "project"
    (folder / "rules").mkdir(parents=True)
    return folder


def fix(folder, text, edit, *options):
    """Run `advisor fix --allow numerics` with a rule that proposes nothing but this change; the report and stderr."""
    (folder / "train.py").write_text(text)
    (folder / "rules" / "planted.py").write_text(RULE.format(edit=edit))
    command = [sys.executable, "-m", "advisor", "fix", "--allow", "numerics", "--rules", "rules", "--only", "planted"]
    limits = ["--seconds", "2", "--warmup", "30", "--budget", "6min", "--json", "-", *options, "train.py"]
    done = subprocess.run([*command, *limits], cwd=folder, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


def outcome_of(report):
    (outcome,), (details,) = report["fixes"], report["proof"]["fixes"]
    assert details["end_to_end"] and details["of_step"]
    return outcome, details


@pytest.mark.timed
@pytest.mark.slow
def test_several_steps_per_call_are_proved_written_and_undone(project, validate):
    text = SCRIPT.format(more="")
    report, err = fix(project, text, 'compile_edit(analysis, "steps_per_execution", 16)', "--write")
    validate(report)
    outcome, details = outcome_of(report)
    assert (outcome["verdict"], outcome["applied"], outcome["proved_on"]) == ("faster", True, "training"), err
    assert outcome["measured"]["low"] > 1.05
    assert details["loss"]["batches"] == 64
    assert details["loss"]["relative"] < 0.01  # the steps are the same
    assert "with the same element spec" in details["note"]
    assert any("step times are per batch" in note for note in report["proof"]["notes"])
    assert [finding["rule"] for finding in report["findings"]] == ["planted"] and not report["hints"]
    changed = (project / "train.py").read_text()
    assert changed == SCRIPT.format(more=", steps_per_execution=16")
    undone = subprocess.run([sys.executable, "-m", "advisor", "fix", "--undo", "train.py"], cwd=project, check=True)
    assert undone.returncode == 0
    assert (project / "train.py").read_text() == text


@pytest.mark.slow
def test_sixteen_bit_is_run_and_judged(project, validate):
    report, err = fix(project, SCRIPT.format(more=""), 'policy_edit(analysis, "mixed_bfloat16")')
    validate(report)
    outcome, details = outcome_of(report)
    assert outcome["verdict"] in ("faster", "same", "slower"), err
    assert details["loss"]["relative"] > 0  # other arithmetic
    assert 'keras.mixed_precision.set_global_policy("mixed_bfloat16")' in (report["findings"] or [{}])[0].get(
        "diff", ""
    ) or [entry["rule"] for entry in report["rejected"]] == ["planted"]


@pytest.mark.slow
def test_xla_is_run_and_judged(project, validate):
    report, err = fix(project, SCRIPT.format(more=""), 'compile_edit(analysis, "jit_compile", True)')
    validate(report)
    outcome, details = outcome_of(report)
    assert outcome["verdict"] in ("faster", "same", "slower"), err
    assert details["loss"]["relative"] < 0.05


@pytest.mark.timed
@pytest.mark.slow
def test_a_step_in_graph_mode_is_faster_than_an_eager_one(project, validate):
    text = SCRIPT.format(more=", run_eagerly=True")
    report, err = fix(project, text, 'compile_edit(analysis, "run_eagerly", False, is_given=True)')
    validate(report)
    outcome, _ = outcome_of(report)
    assert outcome["verdict"] == "faster", err
    assert "run_eagerly=False" in report["proof"]["diff"]


@pytest.mark.slow
def test_a_function_that_is_traced_for_every_shape(project, validate):
    edit = 'SetFunctionArgument(step_site(analysis).file, "train_step", "reduce_retracing", True)'
    report, err = fix(project, LOOP, edit)
    validate(report)
    outcome, details = outcome_of(report)
    assert outcome["verdict"] in ("faster", "same", "slower"), err
    assert details["loss"]["relative"] < 0.05


@pytest.mark.slow
@pytest.mark.parametrize("how", ["@tf.function", "tf.function(train_step)"])
def test_the_step_of_a_loop_is_compiled_by_xla_and_judged(how, project, validate):
    """The function that ran in the steps and took a gradient gets the argument; whether it helps is measured."""
    text, changed = LOOP.replace("8 + x % 4096", "8"), "+@tf.function(jit_compile=True)"
    if how != "@tf.function":
        text = text.replace("@tf.function\n", "").replace("for batch", f"step = {how}\nfor batch")
        text, changed = (
            text.replace("    train_step(batch)", "    step(batch)"),
            "+step = tf.function(train_step, jit_compile=True)",
        )
    report, err = fix(project, text, 'graph_step_edit(analysis, "jit_compile", True)[0]', "--write")
    validate(report)
    outcome, details = outcome_of(report)
    assert outcome["verdict"] in ("faster", "same", "slower"), err
    assert details["loss"]["relative"] < 0.05
    if outcome["applied"]:
        assert changed in report["proof"]["diff"]
        subprocess.run([sys.executable, "-m", "advisor", "fix", "--undo", "train.py"], cwd=project, check=True)
    else:
        assert [entry["rule"] for entry in report["rejected"]] == ["planted"]
    assert (project / "train.py").read_text() == text


@pytest.mark.timed
@pytest.mark.slow
def test_an_eager_step_of_a_loop_of_its_own(project, validate):
    """The function that opens the tape was seen, and its text shows nothing that a graph would do only once."""
    report, err = fix(
        project, LOOP.replace("@tf.function\n", "").replace("8 + x % 4096", "8"), "decorated_edit(analysis)"
    )
    validate(report)
    outcome, _ = outcome_of(report)
    assert outcome["verdict"] == "faster", err
    assert "+@tf.function" in report["proof"]["diff"]


def test_a_script_that_fails_with_the_change_rejects_it(project, validate):
    """A layer whose own variable stays in 32 bit cannot take 16-bit inputs."""
    text = (
        SCRIPT.format(more="")
        .replace("model =", LAYER, 1)
        .replace("keras.layers.Dense(1)]", "Scale(), keras.layers.Dense(1)]")
    )
    report, err = fix(project, text, 'policy_edit(analysis, "mixed_bfloat16")', "--write")
    validate(report)
    assert report["fixes"][0]["verdict"] == "broken"
    (entry,) = report["rejected"]
    assert entry["change"] == "Change the step"
    assert entry["reason"].startswith("the script fails with it: ") and "float" in entry["reason"], entry
    assert not report["hints"] and not report["findings"] and not report["rule_errors"]
    assert "Rejected" in err
    assert (project / "train.py").read_text() == text


@pytest.mark.slow
def test_a_layer_that_adapts_to_the_data_cannot_do_so_in_sixteen_bit(project, validate):
    """Keras sums the means of the batches, which are in 16 bit, in 32 bit."""
    report, err = fix(project, ADAPTED.format(more=""), 'policy_edit(analysis, "mixed_bfloat16")')
    validate(report)
    assert report["fixes"][0]["verdict"] == "broken", err
    (entry,) = report["rejected"]
    assert entry["reason"].startswith("the script fails with it: ") and "bfloat16" in entry["reason"], entry
    assert not report["hints"] and not report["findings"]


def fix_example(folder, name, rule):
    """Run `advisor fix --allow numerics` on an example with its own rule; the report and stderr."""
    (folder / "train.py").write_text((EXAMPLES / f"{name}.py").read_text())
    command = [sys.executable, "-m", "advisor", "fix", "--allow", "numerics", "--only", rule, "--budget", "8min"]
    done = subprocess.run(
        [*command, "--json", "-", "train.py"], cwd=folder, capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout), done.stderr


@pytest.mark.timed
@pytest.mark.slow
def test_the_example_of_varying_shapes_is_proved(project, validate):
    report, err = fix_example(project, "retracing_shapes", "retracing")
    validate(report)
    outcome, _ = outcome_of(report)
    assert (outcome["rule"], outcome["verdict"], outcome["proved_on"]) == ("retracing", "faster", "training"), err
    assert "+@tf.function(reduce_retracing=True)" in report["proof"]["diff"]
    assert [finding["rule"] for finding in report["findings"]] == ["retracing"] and not report["hints"]


@pytest.mark.timed
@pytest.mark.slow
def test_the_example_of_full_precision_is_proved_or_rejected_with_what_was_measured(project, validate):
    """Whether 16 bit is faster depends on the processor. Without such units the rule is silent; the change is planted then."""
    if describe_host().has_bfloat16:
        report, err = fix_example(project, "full_precision", "full-precision")
    else:
        text = (
            (EXAMPLES / "full_precision.py").read_text().replace("2048", "256").replace("default=400", "default=5000")
        )
        report, err = fix(project, text, 'policy_edit(analysis, "mixed_bfloat16")')
    validate(report)
    if not report["fixes"]:  # the largest product is too slow in 16 bit, so the script was not run with it
        assert len(report["rejected"]) == 1, (report["verdict"], report["findings"], report["proof"], err)
        (entry,) = report["rejected"]
        assert entry["reason"].startswith("on this machine the model's largest product (MatMul of "), entry
        return
    outcome, details = outcome_of(report)
    assert details["loss"]["relative"] > 0
    if outcome["verdict"] == "faster":
        assert '+keras.mixed_precision.set_global_policy("mixed_bfloat16")' in report["proof"]["diff"]
        return
    (entry,) = report["rejected"]
    assert entry["reason"].startswith("measured on this machine: "), err
