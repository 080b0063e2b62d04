"""A function does the same for elements of another spec if its text names only what has the same spec there."""

from __future__ import annotations

import ast
import textwrap

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.splitting import reads_alike

IMAGE = "TensorSpec(shape=(8, 8, 3), dtype=tf.float32, name=None)"
BYTES = "TensorSpec(shape=(), dtype=tf.string, name=None)"
LABEL = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
AFTER, BEFORE = f"({IMAGE}, {LABEL})", f"({BYTES}, {LABEL})"
DICT_AFTER, DICT_BEFORE = f"{{'image': {IMAGE}, 'label': {LABEL}}}", f"{{'image': {BYTES}, 'label': {LABEL}}}"


def is_alike(text: str, here: str = AFTER, there: str = BEFORE) -> bool:
    text = textwrap.dedent(text).lstrip("\n")
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    (node,) = (node for node in calls if isinstance(node.func, ast.Attribute) and node.func.attr == "filter")
    argument = node.args[0]
    defined = [inner for inner in ast.walk(tree) if isinstance(inner, ast.FunctionDef)]
    first = defined[0].lineno if isinstance(argument, ast.Name) else argument.lineno
    function = FunctionFacts("f", Site("train.py", first, 1, 99, 1), False)
    site = Site("train.py", node.end_lineno or 1, 1, node.end_lineno or 1, (node.end_col_offset or 0) + 1)
    return reads_alike(text, Call("filter_1", "filter", site, function=function), here, there)


@pytest.mark.parametrize(
    "text",
    [
        "ds = ds.filter(lambda image, label: label < 3)",
        "ds = ds.filter(lambda _, label: label < 3)",
        """
        def is_wanted(image, label, least=3):
            '''Not the image.'''
            return label < least
        ds = ds.filter(is_wanted)
        """,
    ],
)
def test_a_parameter_that_is_never_named_may_have_another_spec(text: str) -> None:
    assert is_alike(text)
    assert not is_alike(text, AFTER, f"({BYTES}, {BYTES})")


@pytest.mark.parametrize(
    "text",
    [
        "ds = ds.filter(lambda image, label: label < 3 if image.shape.rank == 3 else label < 2)",
        "ds = ds.filter(lambda image, label: (lambda: image.shape[0] > label)())",
        "ds = ds.filter(lambda *element: element[1] < 3)",
        """
        def is_wanted(image, label):
            return wanted(**locals())
        ds = ds.filter(is_wanted)
        """,
        """
        @checked
        def is_wanted(image, label):
            return label < 3
        ds = ds.filter(is_wanted)
        """,
        "ds = ds.filter(make_filter(3))",
    ],
)
def test_other_functions_may_look_at_what_differs(text: str) -> None:
    assert not is_alike(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("ds = ds.filter(lambda row: row['label'] < 3)", True),
        ("ds = ds.filter(lambda row: row['image'].shape.rank == 3)", False),
        ("ds = ds.filter(lambda row: row[KEY] < 3)", False),
        ("ds = ds.filter(lambda row: row['label'] < len(row))", False),
        ("ds = ds.filter(lambda row: is_wanted(row))", False),
    ],
)
def test_of_a_dictionary_the_keys_count(text: str, expected: bool) -> None:
    assert is_alike(text, DICT_AFTER, DICT_BEFORE) is expected


@pytest.mark.parametrize(
    ("here", "there"),
    [(LABEL, BYTES), (AFTER, f"({BYTES}, {LABEL}, {LABEL})"), (AFTER, DICT_BEFORE), (AFTER, "(Tens…")],
)
def test_specs_that_cannot_be_compared(here: str, there: str) -> None:
    assert not is_alike("ds = ds.filter(lambda image, label: label < 3)", here, there)
