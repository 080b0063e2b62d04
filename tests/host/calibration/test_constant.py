"""The constants of `advisor.host.calibration`: each has an origin, and none is left over."""

from __future__ import annotations

import ast
from pathlib import Path

import pytest

from advisor.host.calibration import analysis, capture, hosts, live, offload, prediction, proof, window
from advisor.host.calibration.constant import CHOSEN, JUDGEMENT, Constant

ADVISOR = Path(__file__).parents[3] / "advisor"
MODULES = (analysis, capture, hosts, live, offload, prediction, proof, window)
NAMED = [(module, name) for module in MODULES for name, value in vars(module).items() if isinstance(value, Constant)]


def ids(pair):
    return f"{pair[0].__name__.rsplit('.', 1)[1]}.{pair[1]}"


@pytest.mark.parametrize("pair", NAMED, ids=ids)
def test_every_constant_has_a_unit_and_an_origin(pair):
    constant = getattr(*pair)
    assert constant.unit
    assert constant.how.endswith(".")
    assert (constant.machine == CHOSEN) or constant.how != JUDGEMENT, "measured, but nobody says how"


def test_every_constant_is_used():
    used = set()
    texts = (path.read_text("utf-8") for path in ADVISOR.rglob("*.py"))
    for text in texts:
        for node in ast.walk(ast.parse(text)) if "calibration" in text else ():
            if isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
                used.add(node.value.id if node.attr == "value" else node.attr)
    assert {ids(pair) for pair in NAMED if pair[1] not in used} == set()
