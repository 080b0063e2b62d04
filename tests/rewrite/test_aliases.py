"""Assignments that a change leaves with nothing but another name for the value before are joined with that."""

from __future__ import annotations

import pytest

from advisor.rewrite.aliases import without_aliases

BEFORE = """\
def dataset(n):
    rows = tf.data.Dataset.range(n)
    windows = rows.window(3)
    pairs = windows.map(f)  # pairs
    return pairs.batch(2)
"""


def test_the_last_name_is_assigned_at_once() -> None:
    after = """\
def dataset(n):
    rows = (
        tf.data.Dataset.range(n)
    )
    windows = rows
    pairs = windows
    return pairs.batch(2)
"""
    assert (
        without_aliases(BEFORE, after)
        == """\
def dataset(n):
    pairs = (
        tf.data.Dataset.range(n)
    )
    return pairs.batch(2)
"""
    )


@pytest.mark.parametrize(
    "rest",
    [
        "    windows = rows  # why\n    return windows\n",
        "    # why\n    windows = rows\n    return windows\n",
        "    print()\n    windows = rows\n    return windows\n",
        "    windows = rows\n    return windows, rows\n",
        "    windows = rows\n    return lambda: rows\n",
        "    windows = rows\n    return f'{rows}'\n",
        "    windows = rows\n    return locals()\n",
        "    windows = rows; del n\n    return windows\n",
        "    windows = other = rows\n    return windows\n",
        "    if n:\n        windows = rows\n    return windows\n",
        "    windows: Dataset = rows\n    return windows\n",
        "    rows = rows\n    return rows\n",
    ],
)
def test_a_name_that_may_be_used_stays(rest: str) -> None:
    after = f"def dataset(n):\n    rows = tf.data.Dataset.range(n)\n{rest}"
    assert without_aliases(BEFORE, after) == after


def test_lines_that_the_change_did_not_make_stay() -> None:
    text = "def dataset(n):\n    rows = tf.data.Dataset.range(n)\n    windows = rows\n    return windows\n"
    assert without_aliases(text, text.replace("range(n)", "range(n).cache()")) == text.replace(
        "range(n)", "range(n).cache()"
    )


def test_names_of_a_module_and_of_a_class_stay() -> None:
    for indent, head in (("", ""), ("    ", "class Data:\n"), ("        ", "def f():\n    class Data:\n")):
        after = f"{head}{indent}rows = tf.data.Dataset.range(9)\n{indent}windows = rows\n"
        assert without_aliases(BEFORE, after) == after


def test_a_name_that_the_value_reads_is_assigned_again() -> None:
    after = "def dataset(rows):\n    more = rows.map(f)\n    rows = more\n    return rows\n"
    assert without_aliases(BEFORE, after) == "def dataset(rows):\n    rows = rows.map(f)\n    return rows\n"


def test_other_line_ends_and_letters_stay() -> None:
    after = "def d(n):\r\n\trows = [n, 'ä']\r\n\tgröße = rows\r\n\treturn größe\r\n"
    assert without_aliases(BEFORE, after) == "def d(n):\r\n\tgröße = [n, 'ä']\r\n\treturn größe\r\n"
