"""Every example is a script of its own, says what is bad in it, and marks the guilty line."""

import ast
import re

import pytest

from advisor.engine import load_rules
from advisor.model.settings import Settings
from tests.examples.conftest import EXAMPLES

REALISTIC = {
    "flowers_like": "train.map(decode)",
    "image_folder": "dataset.map(load)",
    "text_lines": "dataset.map(to_word_ids)",
}
"""Script -> the call that its training waits for, found by leaving out the cost of each call in turn."""
SECOND = {"retracing_shapes": "retracing"}
"""Second example of a rule -> the rule: the fix of the first one is no edit."""
MODULES = {"sample_data", "flowers_like_dataset"}
SCRIPTS = sorted(path for path in EXAMPLES.glob("*.py") if path.stem not in MODULES)
RULE_SCRIPTS = [path for path in SCRIPTS if path.stem not in {*REALISTIC, "tuned"}]


def rule_of(path):
    return SECOND.get(path.stem) or path.stem.replace("_", "-")


def marked_lines(source):
    marks = ((number, re.search(r"# <- ([\w-]+)", line)) for number, line in enumerate(source.splitlines(), 1))
    return {number: marker[1] for number, marker in marks if marker}


def test_every_rule_has_an_example():
    rules = {loaded.id for loaded in load_rules([], Settings()) if loaded.is_shipped}
    assert {rule_of(path) for path in RULE_SCRIPTS if path.stem not in SECOND} == rules
    assert set(SECOND) < {path.stem for path in RULE_SCRIPTS} and set(SECOND.values()) < rules


@pytest.mark.parametrize("path", SCRIPTS, ids=lambda path: path.stem)
def test_script_is_a_users_script(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    imported = {
        alias.name.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names
    }
    imported |= {
        node.module.split(".")[0] for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and node.module
    }
    assert "advisor" not in imported
    assert {"argparse", "tensorflow"} <= imported, "bounded in time by arguments, and about TensorFlow"


@pytest.mark.parametrize("path", RULE_SCRIPTS, ids=lambda path: path.stem)
def test_rule_example_marks_one_call(path):
    source = path.read_text(encoding="utf-8")
    rule = rule_of(path)
    assert ast.get_docstring(ast.parse(source)).startswith(f"{rule}: ")
    markers = marked_lines(source)
    assert list(markers.values()) == [rule]
    (line,) = markers
    calls = [node for node in ast.walk(ast.parse(source)) if isinstance(node, ast.Call)]
    assert any(call.lineno <= line <= call.end_lineno for call in calls), "the marker stands on a call"


def test_tuned_and_realistic_examples_are_unmarked():
    for name in (*REALISTIC, "tuned"):
        assert not marked_lines((EXAMPLES / f"{name}.py").read_text(encoding="utf-8"))


@pytest.mark.parametrize("name", REALISTIC)
def test_realistic_example_has_one_known_bottleneck(name):
    source = (EXAMPLES / f"{name}.py").read_text(encoding="utf-8")
    assert source.count(REALISTIC[name]) == 1
    assert REALISTIC[name].split(".", 1)[1] in ast.get_docstring(ast.parse(source))
