"""Calls that a change made too long are broken as Black breaks them, and nothing else is."""

from __future__ import annotations

import ast
import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.rewrite.line_breaks import LINE_LENGTH, break_long_lines

LONG = ".map(decode_and_augment, num_parallel_calls=tf.data.AUTOTUNE).batch(64, drop_remainder=True)"

WRAPPED = "lambda rows: tf.vectorized_map(scale_and_normalize, rows, fallback_to_while_loop=False)"


def formatted(text: str) -> str:
    """Return the text as Ruff formats it, which is as Black does."""
    command = [sys.executable, "-m", "ruff", "format", "--isolated", "-"]
    return subprocess.run(command, input=text, capture_output=True, text=True, check=True).stdout


def test_a_returned_chain_is_broken_like_black():
    before = "def dataset():\n    return tf.data.Dataset.list_files(pattern)\n"
    after = before.replace("(pattern)", f"(pattern){LONG}")
    assert break_long_lines(before, after) == (
        "def dataset():\n"
        "    return (\n"
        "        tf.data.Dataset.list_files(pattern)\n"
        "        .map(decode_and_augment, num_parallel_calls=tf.data.AUTOTUNE)\n"
        "        .batch(64, drop_remainder=True)\n"
        "    )\n"
    )


@pytest.mark.parametrize(
    "statement",
    [
        f"ds = ds.shuffle(1_000){LONG}",
        f"ds: tf.data.Dataset = ds.shuffle(1_000){LONG}",
        f"data.train = data.raw.shuffle(1_000){LONG}",
        f"for batch in ds.shuffle(1_000){LONG}:\n    step(batch)",
        f"ds = make(a, b).shuffle(1_000){LONG}",
        f"ds = (a if b else c).shuffle(1_000){LONG}",
        f"model.fit(ds.shuffle(1_000){LONG})",
        f"model.fit(ds.shuffle(1_000){LONG}, epochs=3, callbacks=[callback])",
        "history = model.fit(ds, epochs=3, callbacks=[first_callback, second_callback, third])",
        f"ds = {'a' * LINE_LENGTH}(b)",
        f"ds = ds.map({WRAPPED})",
        f"ds = make({WRAPPED}, {WRAPPED})",
        f"ds = make(first=({'a' * 60} + 1), *{'b' * 30}, **{'c' * 30})",
        f"ds = make({'a' * 60}, {'b' * 30},)",
        f"ds = ds.map(({'a' * 60})({'b' * 40}))",
    ],
)
def test_statements_are_broken_like_black(statement):
    assert break_long_lines("", f"{statement}\n") == formatted(f"{statement}\n")


def test_long_arguments_of_a_chain_get_lines_of_their_own():
    statement = f"ds = ds.batch(64).map({WRAPPED}, num_parallel_calls=tf.data.AUTOTUNE)\n"
    assert break_long_lines("", statement) == (
        "ds = (\n"
        "    ds.batch(64)\n"
        "    .map(\n"
        "        lambda rows: tf.vectorized_map(\n"
        "            scale_and_normalize, rows, fallback_to_while_loop=False\n"
        "        ),\n"
        "        num_parallel_calls=tf.data.AUTOTUNE,\n"
        "    )\n"
        ")\n"
    )


@pytest.mark.parametrize(
    "statement",
    [
        "ds = ds.shuffle(1_000).batch(64)",  # short
        f"if fast: ds = ds.shuffle(1_000){LONG}",
        f"a = 1; ds = ds.shuffle(1_000){LONG}",
        f"ds = ds.shuffle(1_000){LONG}; a = 1",
        f"ds = (ds.shuffle(1_000){LONG})",
        f"ds.shuffle(1_000){LONG}.save(path)",
        f'text = """\nds = ds.shuffle(1_000){LONG}\n"""',
        f"# ds = ds.shuffle(1_000){LONG}",
        f"ds = make({'a' * 50} for {'b' * 50} in c)",
        f"ds = {'a' * LINE_LENGTH}()",
        f"ds = ds.shuffle(\n    1_000){LONG}",
    ],
)
def test_others_stay(statement):
    assert break_long_lines("", f"{statement}\n") == f"{statement}\n"


def test_lines_that_were_there_stay():
    line = f"ds = ds.shuffle(1_000){LONG}\n"
    assert break_long_lines(line, f"import os\n{line}") == f"import os\n{line}"


def test_an_author_of_long_lines_keeps_lines_of_that_length():
    line = f"ds = ds.shuffle(1_000){LONG}\n"
    assert break_long_lines(line, line.replace("1_000", "2_000")) == line.replace("1_000", "2_000")
    longer = line.replace("1_000", "1_000, seed=1")
    assert break_long_lines(line, longer).count("\n") == 5


def test_comments_tabs_line_ends_and_other_letters_are_kept():
    before = "def f():\r\n\treturn größe\r\n"
    after = f"def f():\r\n\treturn größe.shuffle(1_000){LONG}  # ö\r\n"
    assert break_long_lines(before, after) == (
        "def f():\r\n\treturn (\r\n\t\tgröße.shuffle(1_000)\r\n"
        "\t\t.map(decode_and_augment, num_parallel_calls=tf.data.AUTOTUNE)\r\n"
        "\t\t.batch(64, drop_remainder=True)\r\n\t)  # ö\r\n"
    )


def test_a_last_line_without_an_end():
    assert break_long_lines("", f"ds = ds.shuffle(1_000){LONG}").endswith("\n)")


ARGUMENTS = st.sampled_from(
    [
        "",
        "1",
        "(a := 1), *b, c=(2), **d",
        "x for x in y",
        "(lambda: (1))(), ((2)),",
        "u(v(w), (z))",
        "lambda x: x.y(2).z",
        "'a.b(c)'",
        "f(g).h(i)",
        "a=[b.c()]",
        "*d.e()",
        "'''ü'''",
    ]
)
LINKS = st.lists(st.tuples(st.sampled_from(["map", "ü", "batch"]), ARGUMENTS), max_size=4)
ROOTS = st.sampled_from(["ds", "tf.data", "make()", "(a.b(1) + c)", "x[0]", "'text'", "a.b.c(1).d", "(yield)"])
HEADS = st.sampled_from(["return ", "x = ", "x[a.b(1)] = ", "x: int = ", "", "x = y = ", "for x in ", "await "])


@given(HEADS, ROOTS, LINKS, st.booleans(), st.sampled_from(["", "  # a.b(1).c(2)", " "]))
def test_the_syntax_tree_stays(head, root, links, is_spaced, tail):
    dot = " . " if is_spaced else "."
    chain = root + "".join(f"{dot}{name}({arguments})" for name, arguments in links)
    end = ":\n        pass" if head.startswith("for") else ""
    text = f"async def f():\n    {head}{chain}{'' if end else tail}{end}\n    {'y' * LINE_LENGTH} = 1\n"
    long = text.replace("map(", f"map_{'m' * LINE_LENGTH}(").replace("w), (z", f"w), ({'z' * LINE_LENGTH}")
    try:
        tree = ast.dump(ast.parse(long))
    except SyntaxError:
        return
    assert ast.dump(ast.parse(break_long_lines("", long))) == tree


@pytest.mark.parametrize("unit", ["  ", "\t", "        "])
def test_the_indentation_is_that_of_most_blocks(unit):
    table = "table = {\n    'a':\n          1,\n}\n"
    before = f"{table}def f():\n{unit}if a:\n{unit}{unit}b()\n{unit}return ds\n"
    after = before.replace("return ds", f"return ds.shuffle(1_000){LONG}")
    assert f"\n{unit}return (\n{unit}{unit}ds.shuffle(1_000)\n{unit}{unit}.map(" in break_long_lines(before, after)
