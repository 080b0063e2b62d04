"""An expression goes around the data of a source, if one call alone uses it; `test_snippets.py` tests what it computes."""

from __future__ import annotations

import pytest

from advisor.model.edits import InsertAfter, Number, Remove, WrapData
from tests.rewrite.source_text import rewritten

HEAD = "import tensorflow as tf\n"
SOURCE = "tf.data.Dataset.from_tensor_slices"
SIZE = Number("size", 3)
FRAMED = WrapData("from_tensor_slices", "window", "tf.signal.frame(data, size, 1)", (SIZE,))


def wrapped(text: str) -> str | None:
    """A text with all windows in the source, from the line after its import."""
    after = rewritten(f"{HEAD}{text}", FRAMED, Remove("window"))
    return None if after is None else after.removeprefix(HEAD)


@pytest.mark.parametrize("data", ["rows", "rows if rows else data", "data := rows", "lambda: rows", "[1,\n2,]"])
def test_an_expression_goes_around_the_whole_argument(data: str) -> None:
    assert wrapped(f"ds = {SOURCE}({data}).window(3)\n") == f"ds = {SOURCE}(tf.signal.frame({data}, 3, 1))\n"


def test_other_arguments_stay() -> None:
    assert wrapped(f"ds = {SOURCE}(rows, name='r').window(3)\n") == (
        f"ds = {SOURCE}(tf.signal.frame(rows, 3, 1), name='r')\n"
    )


def test_data_that_is_no_argument_of_the_call_is_not_wrapped() -> None:
    assert wrapped(f"ds = {SOURCE}(*rows).window(3)\n") is None
    assert wrapped(f"ds = {SOURCE}(**rows).window(3)\n") is None


@pytest.mark.parametrize(
    ("size", "written"),
    [
        ("n + 1", "n + 1"),
        ("self.size", "self.size"),
        ("-n // 2", "-n // 2"),
        ("pop()", "3"),
        ("n[0]", "3"),
        ("(n\n+ 1)", "(n\n+ 1)"),
        ("n\n+ 1", "3"),
    ],
)
def test_a_number_is_the_expression_that_was_passed_if_it_has_no_effect(size: str, written: str) -> None:
    assert wrapped(f"ds = {SOURCE}(rows).window({size})\n") == f"ds = {SOURCE}(tf.signal.frame(rows, {written}, 1))\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("ds = {}(rows)\nds = ds.window(n)\nprint(ds)\n", "ds = {}(tf.signal.frame(rows, 3, 1))\nprint(ds)\n"),
        ("ds = {}(x)\nn = 3\nds = ds.window(n)\n", "ds = {}(tf.signal.frame(x, 3, 1))\nn = 3\n"),
        ("rows = {}(x)\nds = rows.window(n)\n", "rows = {}(tf.signal.frame(x, 3, 1))\nds = rows\n"),
        ("rows = {}(x)\nif n:\n  ds = rows.window(n)\n", "rows = {}(tf.signal.frame(x, 3, 1))\nif n:\n  ds = rows\n"),
    ],
)
def test_a_dataset_with_a_name_that_one_call_alone_uses(before: str, after: str) -> None:
    """The number is that of the recording: names between the two lines may have changed."""
    assert wrapped(before.format(SOURCE)) == after.format(SOURCE)


@pytest.mark.parametrize(
    "text",
    [
        "rows = {}(x)\nsteps = len(rows)\nds = rows.window(n)\n",
        "rows = {}(x)\nds = rows.window(n)\nfor row in rows: pass\n",
        "ds = {}(x)\nsteps = len(ds)\nds = ds.window(n)\n",
        "ds = {}(x)\nds = ds.window(len(ds))\n",
        "ds = {}(x)\nds = other = ds.window(n)\nprint(ds)\n",
        "if n:\n  rows = {}(x)\nelse:\n  rows = y\nds = rows.window(n)\n",
        "rows, more = {}(x), y\nds = rows.window(n)\n",
        "self.rows = {}(x)\nds = self.rows.window(n)\n",
        "rows = cached({}(x))\nds = rows.window(n)\n",
        "def f():\n  global rows\n  rows = {}(x)\n  return rows.window(n)\n",
    ],
)
def test_a_dataset_that_something_else_may_use_stays(text: str) -> None:
    assert wrapped(text.format(SOURCE)) is None


def test_a_batch_instead_of_a_window_needs_a_single_use_of_the_rows_too() -> None:
    batch = InsertAfter("from_tensor_slices", "batch", (("", 3),), reader_id="window")
    for text, after in (
        (f"rows = {SOURCE}(x)\nsteps = len(rows)\nds = rows.window(3)\n", None),
        (f"rows = {SOURCE}(x)\nds = rows.window(3)\n", f"{HEAD}rows = {SOURCE}(x).batch(3)\nds = rows\n"),
    ):
        assert rewritten(f"{HEAD}{text}", batch, Remove("window")) == after
