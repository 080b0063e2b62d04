"""Where the definition of another function goes; that it computes the same is tested in `test_snippets.py`."""

from __future__ import annotations

from advisor.model.edits import SetFunction
from tests.rewrite.source_text import rewritten

CUT = SetFunction("flat_map", "def cut(rows):\n    return tf.data.Dataset.range(3)\n")
HEAD = "import tensorflow as tf\n"


def test_the_body_of_a_class_gets_no_definition() -> None:
    assert rewritten(f"{HEAD}class A:\n    ds = ds.flat_map(f)\n", CUT) is None


def test_a_comment_in_a_text_is_no_comment_of_the_statement() -> None:
    before = f'{HEAD}text = """\n# rows"""\nds = ds.flat_map(f)\n'
    assert rewritten(before, CUT) == (
        f'{HEAD}text = """\n# rows"""\n\n\ndef cut(rows):\n    return tf.data.Dataset.range(3)\n\n\nds = ds.flat_map(cut)\n'
    )


def test_the_first_statement_of_a_block_keeps_its_indentation() -> None:
    before = f"{HEAD}def f(ds):\n  if ds: ds = ds.flat_map(g)\n  return ds\n"
    assert rewritten(before, CUT) == (
        f"{HEAD}def f(ds):\n  def cut(rows):\n    return tf.data.Dataset.range(3)\n\n"
        "  if ds: ds = ds.flat_map(cut)\n  return ds\n"
    )
