"""The bottleneck benchmark can be judged by machine: every node it removes is marked, and its truth is decided as it says."""

import ast
import importlib.util
import sys

import pytest

from tests.examples.conftest import REPOSITORY

FOLDER = REPOSITORY / "benchmarks" / "bottlenecks"


@pytest.fixture(scope="module")
def accuracy():
    spec = importlib.util.spec_from_file_location("bottleneck_accuracy", FOLDER.parent / "bottleneck_accuracy.py")
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses look their module up
    spec.loader.exec_module(module)
    return module


def asked_nodes(tree):
    """Names in `without("...")`."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "without":
            yield node.args[0].value


def test_there_are_enough_cases(accuracy):
    assert len(accuracy.read_cases([])) >= 20


def test_every_removed_node_is_marked_on_a_call(accuracy):
    cases = accuracy.read_cases([])
    assert cases
    for case in cases:
        tree = ast.parse(case.script.read_text(encoding="utf-8"))
        assert ast.get_docstring(tree), case.name
        nodes = set(asked_nodes(tree))
        assert nodes and nodes <= set(case.lines), case.name
        calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
        called = {line for call in calls for line in range(call.lineno, call.end_lineno + 1)}
        for lines in case.lines.values():
            assert set(lines) <= called, case.name


def test_a_call_over_several_lines_is_its_node(accuracy):
    (case,) = accuracy.read_cases(["python_generator"])
    (line,) = case.lines["simulate"]
    assert case.node_at(line, line + 2) == "simulate"
    assert case.node_at(1, 2) is None


@pytest.mark.parametrize(
    ("without", "verdict"),
    [
        ({"decode": [30.0, 33.0, 10.0], "batch": [10.0, 11.0, 9.0]}, "decode"),
        ({"decode": [30.0], "augment": [29.0]}, "unclear"),
        ({"decode": [13.0], "augment": [10.0]}, "unclear"),
        ({"decode": [11.0], "augment": [10.0]}, "none"),
    ],
)
def test_truth_is_the_node_whose_removal_helps_most(accuracy, without, verdict):
    assert accuracy.Truth("", "", [10.0, 10.0, 9.0], without).verdict() == verdict


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_script_measures_its_own_truth(accuracy, monkeypatch):
    monkeypatch.setenv("BOTTLENECK_WARMUP_SECONDS", "0.2")
    monkeypatch.setenv("BOTTLENECK_MEASURE_SECONDS", "0.3")
    (case,) = accuracy.read_cases(["map_and_batch"])
    truth = accuracy.measure_truth(case, turns=1)
    assert set(truth.without) == {"read", "distort", "batch"}
    assert truth.verdict() == "distort"
