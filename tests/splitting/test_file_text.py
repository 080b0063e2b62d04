"""Code that is put together from a syntax tree has the quotes of the file."""

from __future__ import annotations

import ast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from advisor.splitting.file_text import file_text

DOUBLE = 'import tensorflow as tf\n\nNAMES = ["a", "b"]\nOTHER = \'c\'\n'
SINGLE = DOUBLE.replace('"', "'") + '\n"""A text."""\n"""Another one."""\n"""A third one."""\n'


def unparsed(code: str, file: str) -> str:
    return file_text(file).unparsed(ast.parse(code).body[0])


@pytest.mark.parametrize(
    ("code", "written"),
    [
        ("x = row['a'][:4]", 'x = row["a"][:4]'),
        ("x = f(b'', key='a b', other='')", 'x = f(b"", key="a b", other="")'),
        ("x = '\"quoted\"'", "x = '\"quoted\"'"),
        ("x = 'one\\ntwo'", "x = 'one\\ntwo'"),
        ("x = ('ä', 'b') if y == 'é' else {'c': 'd'}", 'x = ("ä", "b") if y == "é" else {"c": "d"}'),
    ],
)
def test_texts_have_the_quotes_of_the_file(code: str, written: str) -> None:
    assert unparsed(code, DOUBLE) == written
    assert unparsed(code, SINGLE) == ast.unparse(ast.parse(code))


def test_an_item_inside_an_f_string_keeps_its_quotes() -> None:
    """Before Python 3.12, the quotes around the f-string are not allowed inside it."""
    code = "x = f\"{row['a']}\" + 'b'"
    first, _, last = unparsed(code, DOUBLE).partition(" + ")
    assert (first, last) == (ast.unparse(ast.parse(code)).partition(" + ")[0], '"b"')


@given(st.lists(st.text(), max_size=4), st.binary())
def test_the_code_stays_the_same(texts: list[str], data: bytes) -> None:
    code = f"x = f({', '.join(map(repr, [data, *texts]))})"
    assert ast.dump(ast.parse(unparsed(code, DOUBLE))) == ast.dump(ast.parse(code))
