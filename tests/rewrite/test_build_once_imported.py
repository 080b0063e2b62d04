"""A dataset that a function of a module beside the script makes moves before the loop, unless the module may make another one."""

# ruff: noqa: E501 - whole scripts, a line each

from __future__ import annotations

import ast
from dataclasses import replace

import pytest

from advisor.model.edits import BuildOnce
from advisor.rewrite.cannot_rewrite import CannotRewrite, CannotRewriteError
from advisor.rewrite.patch import Patch, patch_for
from advisor.rewrite.source import rewritten
from tests.rewrite.test_build_once import recorded, site_of

MODULE = """\
import tensorflow as tf

SIZE = 2 * 16
LABELS = ("a", "b")


def scale(row):
    return tf.cast(row, tf.float32) / SIZE


def make_dataset(count):
    return tf.data.Dataset.range(count).map(scale).batch(SIZE)
"""
SCRIPT = """\
from data import make_dataset

for epoch in range(3):
    for batch in make_dataset(32):
        print(batch)
"""
AFTER = SCRIPT.replace("for epoch", "dataset = make_dataset(32)\nfor epoch").replace(
    "in make_dataset(32)", "in dataset"
)


def once(script=SCRIPT, module=MODULE, folder="", **others):
    """The script after the edit."""
    own, place = f"{folder}train.py", f"{folder}data.py"
    calls, _ = recorded(f"{module}\nfor _ in ds:\n    pass\n")
    calls = {key: replace(call, site=replace(call.site, file=place)) for key, call in calls.items()}
    loops = [node for node in ast.walk(ast.parse(script)) if isinstance(node, ast.For)]
    node = loops[-1].iter
    name = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
    edit = BuildOnce(max(calls), site_of(node, name, own))
    texts = {place: module, **{f"{folder}{key}.py": text for key, text in others.items()}}
    return rewritten(script, (edit,), calls, others=texts)


@pytest.mark.parametrize("folder", ["", "/home/me/project/"])
def test_a_function_of_a_module_beside_the_script(folder):
    assert once(folder=folder) == AFTER


def test_the_module_itself_is_imported_and_the_dataset_has_a_name():
    script = "import data as d\n\nfor epoch in range(3):\n    ds = d.make_dataset(d.SIZE)\n    for batch in ds:\n        print(batch)\n"
    after = "import data as d\n\nds = d.make_dataset(d.SIZE)\nfor epoch in range(3):\n    for batch in ds:\n        print(batch)\n"
    assert once(script) == after


def test_functions_that_the_module_imports_from_another_one():
    module = MODULE.replace("import tensorflow as tf\n", "import tensorflow as tf\nfrom ops import half\n").replace(
        "/ SIZE", "* half(SIZE)"
    )
    assert once(module=module, ops="def half(x):\n    return 1 / x\n") == AFTER


REFUSED = {
    "a module that is not beside the script": ({"script": SCRIPT.replace("from data", "from other")}, "make_dataset is called"),
    "a list of the module": (
        {"module": MODULE.replace("SIZE = 2 * 16", "SIZE = len([1] * 32)")}, "In data.py: SIZE is not a number or a string"),
    "a variable that is assigned twice": ({"module": MODULE + "SIZE = 8\n"}, "In data.py: SIZE is not a number or a string"),
    "a variable that a function assigns": (
        {"module": MODULE + "def more():\n    global SIZE\n    SIZE = 8\n"}, "SIZE is declared global"),
    "a function that counts its calls": (
        {"module": MODULE.replace("    return tf.data", "    LABELS.append(count)\n    return tf.data")}, "LABELS.append is called"),
    "a function that prints": (
        {"module": MODULE.replace("    return tf.data", "    print(count)\n    return tf.data")}, "In data.py: print is called"),
    "a decorator": ({"module": MODULE.replace("def make", "@cached\ndef make")}, "has a decorator"),
    "a class": ({"module": MODULE + "class make_dataset:\n    pass\n"}, "make_dataset is not a plain function of data.py"),
    "a star import in the module": ({"module": "from numpy import *\n" + MODULE}, "data.py imports all names of a module"),
    "a variable that the script changes": (
        {"script": "import data\n" + SCRIPT + "    data.SIZE = epoch\n"}, "The script assigns to data.SIZE"),
    "a function that another module replaces": (
        {"patches": "import data\ndata.scale = abs\n"}, "patches.py assigns to data.scale, which may be that of data.py"),
    "setattr": ({"script": "import data\n" + SCRIPT + "    setattr(data, 'SIZE', epoch)\n"}, "uses setattr"),
    "a module that is loaded again": (
        {"script": "import data, importlib\n" + SCRIPT + "    importlib.reload(data)\n"}, "uses importlib.reload"),
    "an argument of the loop": ({"script": SCRIPT.replace("(32)", "(epoch)")}, "epoch is assigned in the loop"),
    "a dataset of another function": (
        {"module": MODULE + "\n\ndef other():\n    return tf.data.Dataset.range(3).skip(1)\n"}, "does not show that the dataset comes from skip"),
}  # fmt: skip


@pytest.mark.parametrize(("changed", "why"), REFUSED.values(), ids=REFUSED)
def test_a_module_that_may_make_another_dataset_is_left_alone(changed, why):
    with pytest.raises(CannotRewriteError) as error:
        once(**changed)
    assert why in str(error.value)


def test_the_patch_changes_the_script_and_reads_the_modules_beside_it(tmp_path):
    (tmp_path / "train.py").write_text(SCRIPT)
    (tmp_path / "data.py").write_text(MODULE)
    calls, _ = recorded(f"{MODULE}\nfor _ in ds:\n    pass\n")
    calls = {key: replace(call, site=replace(call.site, file=str(tmp_path / "data.py"))) for key, call in calls.items()}
    node = ast.parse(SCRIPT).body[1].body[0].iter
    edit = BuildOnce(max(calls), site_of(node, "make_dataset", str(tmp_path / "train.py")))
    patch = patch_for((edit,), calls, tmp_path)
    assert isinstance(patch, Patch), patch
    assert {path.name: after.decode() for path, (_, after) in patch.files.items()} == {"train.py": AFTER}
    (tmp_path / "patches.py").write_text("import data\ndata.SIZE = 4\n")
    refused = patch_for((edit,), calls, tmp_path)
    assert isinstance(refused, CannotRewrite) and "patches.py assigns to data.SIZE" in refused.reason
