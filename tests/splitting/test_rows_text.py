"""Copies of functions that make rows of a given length, for a batch of lengths: their text, and why others are not copied."""

from __future__ import annotations

import textwrap

import pytest

from advisor.model.calls import Call, FunctionFacts, Site
from advisor.model.edits import FROM_ROW_LENGTHS, RAGGED_RANGE, REDUCE_SUM
from advisor.splitting import BatchText, CannotSplitError, batched_rows

SCALAR = "TensorSpec(shape=(), dtype=tf.int32, name=None)"
PAIR = f"({SCALAR}, {SCALAR})"


def copied(text: str, spec: str = SCALAR, length: int = 0, rows: tuple[bool, ...] = ()) -> BatchText:
    """The copy of the function that the text defines, which the last line passes to `map`."""
    text, call = textwrap.dedent(text), "ds = ds.map(rows)"
    line, end = text.count("\n") + 1, len(call) + 1
    defined = next(number for number, row in enumerate(text.split("\n"), 1) if row.startswith(("def ", "@")))
    function = FunctionFacts("rows", Site("train.py", defined, 1, defined, 2), is_stateful=False)
    recorded = Call("map", "map", Site("train.py", line, 1, line, end), function=function)
    return batched_rows(f"{text}{call}\n", recorded, spec, length, rows)


def test_ranges_and_shapes_are_those_of_all_rows_and_the_result_is_cut():
    found = copied(
        "def rows(n):\n    é, row = 1, tf.range(n)  # of é\n    row += tf.random.uniform(shape=(n,), maxval=9, dtype=n.dtype)\n"
        "    return (\n        row + tf.range(0, n)\n    )\n"
    )
    assert found.text == (
        f"def rows_batch(n):\n    é, row = 1, {RAGGED_RANGE}(n).flat_values  # of é\n"
        f"    row += tf.random.uniform(shape=({REDUCE_SUM}(n),), maxval=9, dtype=n.dtype)\n    return (\n"
        f"        {FROM_ROW_LENGTHS}(row + {RAGGED_RANGE}(0, n).flat_values, n).to_tensor()\n    )\n"
    )
    assert (found.name, found.line, found.argument) == ("rows_batch", 1, "")


def test_of_a_tuple_only_the_rows_are_cut():
    found = copied("def rows(label, n):\n    return tf.range(n), label, [n]\n", PAIR, 1, (True, False, False))
    assert found.text == (
        f"def rows_batch(label, n):\n    return {FROM_ROW_LENGTHS}({RAGGED_RANGE}(n).flat_values, n).to_tensor(), label, [n]\n"
    )


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("@tf.function\ndef rows(n):\n    return tf.range(n)\n", "it has a decorator"),
        ("def rows(n):\n    if LONG:\n        return tf.range(n)\n    return tf.ones([n])\n", "it branches"),
        ("def rows(n):\n    for _ in range(2):\n        n = n + 1\n    return tf.range(n)\n", "it assigns `n`"),
        ("def rows(n):\n    return tf.range(n + 1)\n", "it does not make its rows of `n` itself"),
        ("def rows(n):\n    return tf.range(n, name='steps')\n", "it does not make its rows of `n` itself"),
        ("def rows(n):\n    tf.range(n)\n", "it does not return once, at its end"),
        ("def rows(n):\n    return tf.range(n), n\n", "not written as a tuple of tensors"),
        (f"def rows(n):\n    {RAGGED_RANGE} = n\n    return tf.range(n)\n", "a name that stands for another one"),
    ],
)
def test_what_is_not_copied(text, reason):
    with pytest.raises(CannotSplitError, match=reason):
        copied(text)


def test_a_dictionary_of_lengths_is_not_copied():
    with pytest.raises(CannotSplitError, match="unknown which of its parameters is the length"):
        copied("def rows(row):\n    return tf.range(row['n'])\n", length=1)
