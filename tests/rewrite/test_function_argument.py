"""`jit_compile=True` is added to the `tf.function` that a step becomes, however that is written, if it becomes one once."""

from __future__ import annotations

import pytest

from advisor.model.edits import SetFunctionArgument
from advisor.rewrite.apply.undo import undo
from advisor.rewrite.apply.write import write_patch
from advisor.rewrite.cannot_rewrite import CannotRewrite
from advisor.rewrite.patch import Patch, patch_for

IMPORT = "import tensorflow as tf\n\n\n"
STEP = "def train_step(batch):\n    return model(batch)\n"


def patch_of(text, tmp_path, line=0, name="jit_compile"):
    path = tmp_path / "train.py"
    path.write_bytes(text.encode())
    return path, patch_for(
        (), {}, tmp_path, step_edits=[SetFunctionArgument("train.py", "train_step", name, True, line)]
    )


def after(text, tmp_path, line=0, name="jit_compile"):
    """The changed text, or why there is none."""
    path, patch = patch_of(text, tmp_path, line, name)
    return patch.reason if isinstance(patch, CannotRewrite) else patch.files[path][1].decode()


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        (f"@tf.function\n{STEP}", f"@tf.function(jit_compile=True)\n{STEP}"),
        (f"@tf.function  # once\n{STEP}", f"@tf.function(jit_compile=True)  # once\n{STEP}"),
        (f"@(tf.function)\n{STEP}", f"@(tf.function)(jit_compile=True)\n{STEP}"),
        (f"@tf.function()\n{STEP}", f"@tf.function(jit_compile=True)\n{STEP}"),
        (f"@tf . function(  )\n{STEP}", f"@tf . function(jit_compile=True  )\n{STEP}"),
        (
            f"@tf.function(reduce_retracing=True, )\n{STEP}",
            f"@tf.function(reduce_retracing=True, jit_compile=True, )\n{STEP}",
        ),
        (
            f"@tf.function(input_signature=[spec])\n{STEP}",
            f"@tf.function(input_signature=[spec], jit_compile=True)\n{STEP}",
        ),
        (
            f"@tf.function(\n    autograph=False,  # plain TensorFlow\n)\n{STEP}",
            f"@tf.function(\n    autograph=False,  # plain TensorFlow\n    jit_compile=True,\n)\n{STEP}",
        ),
        (f"{STEP}step = tf.function(train_step)\n", f"{STEP}step = tf.function(train_step, jit_compile=True)\n"),
        (
            f"{STEP}step = tf.function(func=train_step)\n",
            f"{STEP}step = tf.function(func=train_step, jit_compile=True)\n",
        ),
        (
            f"{STEP}s = tf.function(\n    train_step,  # the step\n    reduce_retracing=True\n)\n",
            f"{STEP}s = tf.function(\n    train_step,  # the step\n    reduce_retracing=True,\n    jit_compile=True\n)\n",
        ),
        (
            f"{STEP}step = tf.function(reduce_retracing=True)(train_step)\n",
            f"{STEP}step = tf.function(reduce_retracing=True, jit_compile=True)(train_step)\n",
        ),
        (f"{STEP}step = tf.function()(train_step)\n", f"{STEP}step = tf.function(jit_compile=True)(train_step)\n"),
        (f"{STEP}tf.function(train_step)(batch)\n", f"{STEP}tf.function(train_step, jit_compile=True)(batch)\n"),
    ],
)
def test_it_is_added(text, changed, tmp_path):
    assert after(IMPORT + text, tmp_path) == IMPORT + changed


def test_a_method_that_is_wrapped_in_the_constructor(tmp_path):
    trainer = """class Trainer:
    def __init__(self):
        self.step = tf.function(self.train_step)

    def train_step(self, batch):
        return batch
"""
    changed = trainer.replace("(self.train_step)", "(self.train_step, jit_compile=True)")
    assert after(IMPORT + trainer, tmp_path, line=8) == IMPORT + changed


@pytest.mark.parametrize("line", [4, 5])
def test_the_line_of_the_decorator_or_of_the_function(line, tmp_path):
    """Python counts a function from its first decorator."""
    assert "jit_compile" in after(f"{IMPORT}@tf.function\n{STEP}", tmp_path, line)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        (f"@tf.function(jit_compile=None)\n{STEP}", "already sets jit_compile"),
        (f"@tf.function(experimental_compile=False)\n{STEP}", "already sets experimental_compile"),
        (f"{STEP}step = tf.function(train_step, jit_compile=False)\n", "already sets jit_compile"),
        (f"{STEP}step = tf.function(jit_compile=False)(train_step)\n", "already sets jit_compile"),
        (f"{STEP}step = tf.function(train_step, **how)\n", "* or **"),
        (f"{STEP}step = tf.function(train_step, None, True, True)\n", "passed by position"),
        (f"@tf.function(None, None, True)\n{STEP}", "passed by position"),
        (f"@tf.function\n{STEP}again = tf.function(train_step)\n", "in 2 places"),
        (f"{STEP}one = tf.function(train_step)\ntwo = tf.function(train_step)\n", "in 2 places"),
        (f"@tf.function\n{STEP}\n\n@tf.function\n{STEP}", "defines 2 functions"),
        (f"@log\n@tf.function\n{STEP}", "has 2 decorators"),
        (f"@compiled\n{STEP}", "does not show that train_step is a tf.function"),
        (f"{STEP}step = compiled(train_step)\n", "no tf.function(train_step)"),
        (f"{STEP}step = tf.function(lambda batch: train_step(batch))\n", "no tf.function(train_step)"),
        (f"{STEP}step = tf.function(other)(train_step)\n", "no tf.function(train_step)"),
        (f"@tf.function\n{STEP}ds = ds.map(train_step)\n", "for the elements of a dataset (map in line 7)"),
        (f"@tf.function\n{STEP}ds = ds.filter(lambda x: train_step(x) > 0)\n", "(filter in line 7)"),
        (f"{STEP}step = tf.function(train_step)\nds = ds.map(step)\n", "(map in line 7)"),
        (f"{STEP}step = tf.function(train_step)\nds = ds.reduce(0, lambda s, b: s + step(b))\n", "(reduce in line 7)"),
    ],
)
def test_what_is_unclear_is_refused_with_the_reason(text, says, tmp_path):
    assert says in after(IMPORT + text, tmp_path)


def test_a_function_that_is_elsewhere_now_is_refused(tmp_path):
    assert "no longer defined in line 9" in after(f"{IMPORT}@tf.function\n{STEP}", tmp_path, line=9)


def test_another_name_of_tensorflow(tmp_path):
    text = f"from tensorflow import function as compiled\n\n\n@compiled\n{STEP}"
    assert "@compiled(jit_compile=True)" in after(text, tmp_path)
    assert "does not show" in after(f"{IMPORT}tf = other\n@tf.function\n{STEP}", tmp_path)


def test_reduce_retracing_is_added_to_a_call_too(tmp_path):
    text = f"{IMPORT}{STEP}step = tf.function(train_step)\n"
    assert "tf.function(train_step, reduce_retracing=True)" in after(text, tmp_path, name="reduce_retracing")


@pytest.mark.parametrize("newline", ["\n", "\r\n"])
@pytest.mark.parametrize("how", [f"@tf.function  # ü\n{STEP}", f"{STEP}step = tf.function(\n  train_step, # ü\n\n)"])
def test_undo_restores_every_byte(how, newline, script, run_folder):
    text = (IMPORT + how).replace("\n", newline)
    script.write_bytes(text.encode())
    edit = SetFunctionArgument(str(script), "train_step", "jit_compile", True)
    patch = patch_for((), {}, script.parent, step_edits=[edit])
    assert isinstance(patch, Patch)
    write_patch(patch, run_folder)
    assert script.read_bytes() == patch.files[script][1] != text.encode()
    assert b"jit_compile=True" in script.read_bytes()
    undo(script)
    assert script.read_bytes() == text.encode()
