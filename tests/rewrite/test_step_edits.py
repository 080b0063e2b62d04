"""Changes of the training step are written where the text is plain, and nowhere else."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.model.calls import Site
from advisor.model.edits import (
    DecorateFunction,
    InsertAfter,
    SetBatchSize,
    SetCompileArgument,
    SetFunctionArgument,
    SetPolicy,
    StepEdit,
)
from advisor.model.finding import Fix, Safety
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.combined_edits import combine
from advisor.rewrite.fix_plan import make_plan
from advisor.rewrite.patch import Patch, patch_for
from tests.rewrite.source_text import calls_in

KERAS = "import keras\n"
POLICY = 'keras.mixed_precision.set_global_policy("mixed_bfloat16")\n'


def compile_of(text: str, name: str = "steps_per_execution", value: object = 32, file: str = "train.py") -> StepEdit:
    return SetCompileArgument(site_of(text, "compile", file), "", name, value)


def site_of(text: str, method: str, file: str) -> Site:
    site = calls_in(text, file)[method].site
    assert site is not None
    return site


def step_fix(*edits: StepEdit) -> Fix:
    return Fix((), Safety.NUMERICS, is_auto=False, step_edits=edits)


def after(text: str, *edits: StepEdit, tmp_path: Path) -> str:
    """The changed text, or why there is none."""
    path = tmp_path / "train.py"
    path.write_bytes(text.encode())
    patch = patch_for((), {}, tmp_path, step_edits=edits)
    if isinstance(patch, CannotRewrite):
        return patch.reason
    return patch.files[path][1].decode()


@pytest.mark.parametrize(
    ("call", "changed"),
    [
        ('model.compile("adam", "mse")', 'model.compile("adam", "mse", steps_per_execution=32)'),
        ("model.compile(optimizer=opt)", "model.compile(optimizer=opt, steps_per_execution=32)"),
        ("model.compile()", "model.compile(steps_per_execution=32)"),
        ("model.compile(loss=f(a, b))", "model.compile(loss=f(a, b), steps_per_execution=32)"),
        ("model.compile(steps_per_execution=1, loss=f)", "model.compile(steps_per_execution=32, loss=f)"),
        ("super().compile(loss=f)", "super().compile(loss=f, steps_per_execution=32)"),
        (
            "model.compile(\n    loss=f,  # the usual one\n    optimizer=opt,\n)",
            "model.compile(\n    loss=f,  # the usual one\n    optimizer=opt,\n    steps_per_execution=32,\n)",
        ),
    ],
)
def test_an_argument_of_compile(call, changed, tmp_path):
    text = f"import keras\n{call}\nmodel.fit(ds)\n"
    assert after(text, compile_of(text), tmp_path=tmp_path) == text.replace(call, changed)


@pytest.mark.parametrize(
    ("call", "says"),
    [
        ("model.compile(**settings)", "* or **, which may contain steps_per_execution"),
        ("model.compile(*settings)", "* or **"),
        ('model.compile("sgd", "mse", None, None, None, False, 1)', "passed by position"),
    ],
)
def test_arguments_that_cannot_be_seen_are_not_added_to(call, says, tmp_path):
    text = f"{KERAS}{call}\n"
    assert says in after(text, compile_of(text), tmp_path=tmp_path)


def test_a_file_that_has_changed_is_left_alone(tmp_path):
    edit = compile_of("\n\nmodel.compile(loss=f)\n")
    assert "the file has changed" in after("model.compile(loss=f)\n", edit, tmp_path=tmp_path)
    (same_place,) = [SetCompileArgument(edit.site, ".compile(loss=f)", "jit_compile", True)]
    assert "a different call" in after("\n\nmodel.compile(loss=g)\n", same_place, tmp_path=tmp_path)


@pytest.mark.parametrize(
    ("imports", "line"),
    [
        ("import keras\n", "keras."),
        ("import keras as k\n", "k."),
        ("import tensorflow as tf\n", "tf.keras."),
        ("from tensorflow import keras\n", "keras."),
        ("import tensorflow.keras as tk\n", "tk."),
        ("import tf_keras as keras\n", "keras."),
        ("import tensorflow as tf\nfrom tensorflow.keras import layers\n", "tf.keras."),
        ("import os\nimport tensorflow as tf\nimport keras, sys\nfrom pathlib import Path\n", "keras."),
        ('"""A script."""\nimport os\nos.environ["A"] = "1"\nimport tensorflow as tf\nimport numpy\n', "tf.keras."),
    ],
)
def test_a_policy_follows_the_imports(imports, line, tmp_path):
    text = f"{imports}\nmodel = build()\n"
    policy = POLICY.replace("keras.", line, 1)
    assert (
        after(text, SetPolicy("train.py", "mixed_bfloat16"), tmp_path=tmp_path)
        == f"{imports}{policy}\nmodel = build()\n"
    )


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (
            KERAS + 'keras.mixed_precision.set_global_policy("float32")\n',
            "chooses the types of its layers itself (line 2)",
        ),
        (KERAS + 'keras.config.set_dtype_policy("float32")\n', "chooses the types"),
        ("from keras import layers\n", "No import at the top"),
        ("def main():\n    import keras\n", "No import at the top"),
        ("try:\n    import keras\nexcept ImportError:\n    keras = None\n", "No import at the top"),
        (KERAS + "keras = other(keras)\n", "No import at the top"),
    ],
)
def test_a_policy_is_not_set_twice_or_by_guess(text, says, tmp_path):
    assert says in after(text, SetPolicy("train.py", "mixed_bfloat16"), tmp_path=tmp_path)


def test_a_policy_at_the_end_of_a_text_without_a_last_line_break(tmp_path):
    changed = after("import keras", SetPolicy("train.py", "mixed_bfloat16"), tmp_path=tmp_path)
    assert changed == f"import keras\n{POLICY.rstrip()}"


FUNCTION = "def train_step(x):\n    return x\n"


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (f"import tensorflow as tf\n@tf.function\n{FUNCTION}", "@tf.function(reduce_retracing=True)"),
        (f"import tensorflow as tf\n@tf.function()\n{FUNCTION}", "@tf.function(reduce_retracing=True)"),
        (
            f"import tensorflow as tf\n@tf.function(jit_compile=True)\n{FUNCTION}",
            "@tf.function(jit_compile=True, reduce_retracing=True)",
        ),
        (f"from tensorflow import function\n@function\n{FUNCTION}", "@function(reduce_retracing=True)"),
    ],
)
def test_an_argument_of_a_decorator(text, changed, tmp_path):
    edit = SetFunctionArgument("train.py", "train_step", "reduce_retracing", True)
    lines = text.splitlines(keepends=True)
    assert after(text, edit, tmp_path=tmp_path) == "".join([lines[0], f"{changed}\n", *lines[2:]])


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (FUNCTION, "has 0 decorators"),
        (f"import tensorflow as tf\n@tf.function\n{FUNCTION}@tf.function\n{FUNCTION}", "defines 2 functions"),
        ("import tensorflow as tf\n", "defines 0 functions"),
        (f"import tensorflow as tf\n@log\n@tf.function\n{FUNCTION}", "has 2 decorators"),
        (f"@compiled\n{FUNCTION}", "does not show that train_step is a tf.function"),
        (f"import tensorflow as tf\n@tf.function(input_signature=s)\n{FUNCTION}", "already sets input_signature"),
        (f"import tensorflow as tf\n@tf.function(reduce_retracing=False)\n{FUNCTION}", "already sets reduce_retracing"),
        (f"import tensorflow as tf\n@tf.function(**how)\n{FUNCTION}", "* or **"),
    ],
)
def test_what_is_no_plain_decorator_is_left_alone(text, says, tmp_path):
    edit = SetFunctionArgument("train.py", "train_step", "reduce_retracing", True)
    assert says in after(text, edit, tmp_path=tmp_path)


STEP = """def train_step(batch):
    with tf.GradientTape() as tape:
        hidden = batch
        for weight in weights:
            hidden = tf.nn.relu(hidden @ weight)
        loss = tf.reduce_mean(tf.square(hidden - batch))
    for variable, gradient in zip(weights, tape.gradient(loss, weights)):
        variable.assign_sub(rate * gradient)
    return loss
"""
BEFORE_STEP = "import tensorflow as tf\nimport keras\nrate = 0.001\nweights = [tf.Variable(1.0)]\n\n\n"


def decorated(before: str, step: str, tmp_path: Path) -> str:
    line = before.count("\n") + 1
    return after(f"{before}{step}", DecorateFunction("train.py", "train_step", line), tmp_path=tmp_path)


def test_an_eager_step_is_decorated(tmp_path):
    assert decorated(BEFORE_STEP, STEP, tmp_path) == f"{BEFORE_STEP}@tf.function\n{STEP}"
    other = BEFORE_STEP.replace("tensorflow as tf", "tensorflow").replace("tf.", "tensorflow.")
    step = STEP.replace("tf.", "tensorflow.")
    assert decorated(other, step, tmp_path) == f"{other}@tensorflow.function\n{step}"


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ("    return loss", "    print(loss)\n    return loss", "uses print, whose value or effects"),
        ("    return loss", "    history.append(loss)\n    return loss", "uses .append (line 15)"),
        ("    return loss", "    return loss.numpy()", "uses .numpy"),
        ("    return loss", "    keras.count = loss\n    return loss", "changes an object in line 15"),
        ("    return loss", "    losses[0] = loss\n    return loss", "changes an object"),
        ("    return loss", "    global last\n    last = loss\n    return loss", "more than a training step (line 15)"),
        ("    return loss", "    log(loss)\n    return loss", "uses log"),
        ("def train_step", "@tf.function\ndef train_step", "is not defined once, in line 7"),
        ("rate *", "decay() *", "uses decay"),
        ("rate *", "np.random.rand() *", "uses np"),
    ],
)
def test_a_step_with_effects_in_python_stays_eager(old, new, says, tmp_path):
    assert says in decorated(BEFORE_STEP, STEP.replace(old, new), tmp_path)


@pytest.mark.parametrize(
    "later",
    [
        "rate = 0.01\n",
        "for rate in rates:\n    pass\n",
        "for _ in data:\n    rate *= 0.9\n",
        "def f(rate):\n    pass\n",
    ],
)
def test_a_value_that_may_change_keeps_the_step_eager(later, tmp_path):
    assert "uses rate, whose value or effects" in decorated(BEFORE_STEP, f"{STEP}{later}", tmp_path)


@pytest.mark.parametrize(
    "maker", ["logging.getLogger()", "Meter()", "make_meter(tf.zeros(2))", "[Meter() for _ in range(2)]"]
)
def test_methods_of_unknown_objects_keep_the_step_eager(maker, tmp_path):
    before = BEFORE_STEP.replace("rate =", f"meter = {maker}\nrate =")
    step = STEP.replace("    return loss", "    meter.log(loss)\n    return loss")
    assert "uses meter, whose value or effects" in decorated(before, step, tmp_path)
    assert decorated(before.replace(maker, "keras.metrics.Mean()"), step, tmp_path).endswith(f"@tf.function\n{step}")


def test_a_value_that_a_loop_assigns_keeps_the_step_eager(tmp_path):
    before = BEFORE_STEP.replace("rate = 0.001\n", "for _ in range(2):\n    rate = 0.001\n")
    assert "uses rate" in decorated(before, STEP, tmp_path)
    inside = f"def main():\n    {STEP.replace(chr(10), chr(10) + '    ')}\n"
    edit = DecorateFunction("train.py", "train_step", 2)
    assert "not a function at the top" in after(inside, edit, tmp_path=tmp_path)


def test_a_batch_size_that_is_a_number(tmp_path):
    def changed(text: str) -> str:
        return after(text, SetBatchSize(site_of(text, "batch", "train.py"), "", 64), tmp_path=tmp_path)

    assert (
        changed("ds = ds.map(f).batch(32, drop_remainder=True)\n") == "ds = ds.map(f).batch(64, drop_remainder=True)\n"
    )
    assert changed("ds = ds.batch(batch_size=32)\n") == "ds = ds.batch(batch_size=64)\n"
    assert "other code may depend on it" in changed("ds = ds.batch(SIZE)\n")
    assert "other code may depend on it" in changed("ds = ds.batch(4 * 8)\n")


def test_changes_of_the_step_and_of_the_data_are_one_patch(tmp_path):
    path = tmp_path / "train.py"
    text = f"{KERAS}ds = ds.map(f)\nmodel.compile(loss=f)\n"
    path.write_text(text)
    edits = (
        SetPolicy(str(path), "mixed_bfloat16"),
        compile_of(text, file=str(path)),
        compile_of(text, "jit_compile", True),
    )
    patch = patch_for([InsertAfter("map", "cache")], calls_in(text, str(path)), tmp_path, step_edits=edits)
    assert isinstance(patch, Patch)
    changed = "ds = ds.map(f).cache()\nmodel.compile(loss=f, steps_per_execution=32, jit_compile=True)\n"
    assert patch.files[path][1].decode() == f"{KERAS}{POLICY}{changed}"


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_undo_restores_every_byte(newline, script, run_folder, tmp_path):
    text = "import keras\nmodel.compile(\n    loss=f,  # ü\n)\n".replace("\n", newline)
    script.write_bytes(text.encode())
    edits = SetPolicy(str(script), "mixed_bfloat16"), compile_of(text, file=str(script))
    patch = patch_for((), {}, script.parent, step_edits=edits)
    assert isinstance(patch, Patch)
    write_patch(patch, run_folder)
    assert script.read_bytes() == patch.files[script][1] != text.encode()
    assert script.read_bytes().count(b"\r\n") == (6 if newline == "\r\n" else 0)
    undo(script)
    assert script.read_bytes() == text.encode()


def test_two_values_of_one_argument_conflict():
    text = "model.compile(loss=f)\n"
    one, two = step_fix(compile_of(text)), step_fix(compile_of(text, value=8))
    with pytest.raises(ValueError, match="both set the same argument or policy"):
        combine([one, two])
    assert combine([one, step_fix(compile_of(text, "jit_compile", True))]) == ()


def test_nothing_but_allow_numerics_tries_a_change_of_the_step():
    from advisor.model.finding import Finding

    finding = Finding("short-steps", "Run several steps", "", fix=step_fix(compile_of("model.compile()\n")))
    for allow, only in ((frozenset(), frozenset()), (frozenset({Safety.REORDERED}), frozenset({"short-steps"}))):
        (left,) = make_plan([finding], {}, allow, only=only).left_out
        assert left.reason == "The arithmetic or the schedule of training would change; --allow numerics tries it."
    assert make_plan([finding], {}, frozenset({Safety.NUMERICS})).findings == (finding,)
