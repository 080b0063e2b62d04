"""Tests of the text of vectorised maps."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.calls import Call
from advisor.model.edits import MoveAfter, Vectorize
from advisor.rewrite.source import rewrite
from tests.in_one_line import in_one_line
from tests.rewrite.source_text import calls_in, fix, rewritten

VECTORIZE = (MoveAfter("map", "batch"), Vectorize("map"))


def test_a_vectorised_function_uses_names_that_the_file_does_not():
    script = "import tensorflow as tf\nrows = row = 3\nds = ds.map(f).batch(rows)\n"
    per_row = "lambda row_2: tf.function(f)(*row_2)"
    per_batch = f"lambda *rows_2: tf.vectorized_map({per_row}, rows_2, fallback_to_while_loop=False)"
    after = rewritten(script, *VECTORIZE)
    assert after is not None
    assert in_one_line(after) == script.replace("ds.map(f).batch(rows)", f"ds.batch(rows).map({per_batch})")


def companion(rows: str = "*rows", body: str = "lambda row: tf.function(f)(*row)", items: str = "rows") -> str:
    """A function of a batch beside `f`."""
    return f"\n\ndef f_batch({rows}):\n    return tf.vectorized_map({body}, {items}, fallback_to_while_loop=False)\n"


def test_a_function_of_the_module_gets_a_companion_whatever_calls_it():
    script = "import tensorflow as tf\n\ndef f(x):\n    return x\n\ndef make(ds):\n    return ds.map(f).batch(4)\n"
    after = rewritten(script, *VECTORIZE)
    assert after is not None
    assert in_one_line(after) == script.replace("    return x\n", f"    return x\n{companion()}").replace(
        ".map(f).batch(4)", ".batch(4).map(f_batch)"
    )


def test_two_maps_share_a_companion_unless_they_pass_other_arguments():
    script = "import tensorflow as tf\ndef f(x):\n    return x\na = one.map(f)\nb = two.map(f)\n"
    both = Vectorize("first"), Vectorize("second")
    named = calls_in(script.replace("two.map", "two.mop"))  # the same columns
    calls = {"first": Call("first", "map", named["map"].site), "second": Call("second", "map", named["mop"].site)}
    after = in_one_line(rewrite(script, fix(*both), calls))
    assert after == script.replace("    return x\n", f"    return x\n{companion()}").replace(".map(f)", ".map(f_batch)")
    spec = "TensorSpec(shape=(), dtype=tf.int64, name=None)"
    calls["rows"] = Call("rows", "range", None, element_spec=spec)
    calls["second"] = replace(calls["second"], inputs=("rows",))
    after = in_one_line(rewrite(script, fix(*both), calls))
    alone = "lambda rows: tf.vectorized_map(tf.function(f), rows, fallback_to_while_loop=False)"
    assert after == script.replace("    return x\n", f"    return x\n{companion()}").replace(
        "one.map(f)", "one.map(f_batch)"
    ).replace("two.map(f)", f"two.map({alone})")


@pytest.mark.parametrize(
    "definition",
    [
        "from functions import f",
        "def f(x):\n    return x\nf = wrap(f)",
        "if debug:\n    def f(x):\n        return x",
        "f = lambda x: x",
    ],
)
def test_a_function_that_may_be_another_one_gets_no_companion(definition):
    after = rewritten(f"import tensorflow as tf\n{definition}\nds = ds.map(f).batch(4)\n", *VECTORIZE)
    assert after is not None
    assert "f_batch" not in after and "tf.function(f)(*row)" in after


@pytest.mark.parametrize(
    "script",
    [
        "ds = ds.map(*functions).batch(4)",
        "ds = ds.map(**options).batch(4)",
        "ds = ds.map(f := make()).batch(4)",
        "async def run(ds):\n    return ds.map(await f()).batch(4)",
        "def run(ds):\n    return ds.map((yield)).batch(4)",
        "class Data:\n    def f(x): return x\n    ds = source.map(f).batch(4)",
        "ds = ds.map(lambda x: (\n    x  # as it is\n)).batch(4)",
        "ds = ds.map().batch(4)",
    ],
)
def test_a_function_that_means_something_else_in_a_lambda_is_not_vectorised(script):
    assert rewritten(f"import tensorflow as tf\n{script}\n", MoveAfter("map", "batch")) is not None
    assert rewritten(f"import tensorflow as tf\n{script}\n", *VECTORIZE) is None
