"""Functions of batches that are put together from lines: their text, what they compute, and why others are not written.

TensorFlow is not needed: what each line does to a batch is given, and arrays of NumPy stand for tensors.
"""

from __future__ import annotations

import ast
import textwrap

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model.calls import BatchLine, Call, FunctionFacts, Site
from advisor.model.edits import VECTORIZED_MAP
from advisor.splitting import BatchText, CannotSplitError, batch_text
from tests.effort import examples

OPS = {
    "lookup": "LookupTableFindV2",
    "upper": "StringUpper",
    "center": "Mean",
    "join": "ConcatV2",
    "scale": "Mul",
    "decode": "DecodePng",
    "draw": "RandomStandardNormal",
}
"""Function -> its op: only as it is (`lookup`, `upper`), only vectorised (`center`, `join`, `draw`), both (`scale`), neither."""
AS_IT_IS = ("lookup", "upper", "scale")
ROW = "TensorSpec(shape=(3,), dtype=tf.float32, name=None)"
PAIR = f"({ROW}, {ROW})"


def lines_of(function: ast.FunctionDef) -> tuple[BatchLine, ...]:
    """What capture would record, if each call of `OPS` makes one op, and each operator an `AddV2`."""
    lines: dict[tuple[int, str], BatchLine] = {}
    for statement in function.body:
        for node in ast.walk(statement):
            called = ast.unparse(node.func).rpartition(".")[2] if isinstance(node, ast.Call) else ""
            if called in OPS:
                lines[node.lineno, called] = BatchLine(node.lineno, called, {OPS[called]: 1}, called in AS_IT_IS)
            elif isinstance(node, ast.BinOp):
                lines[node.lineno, ""] = BatchLine(node.lineno, "", {"AddV2": 1}, True)
    return tuple(lines.values())


def put_together(text: str, spec: str = ROW, **facts: object) -> BatchText:
    text = textwrap.dedent(text).lstrip("\n")
    tree = ast.parse(text)
    node = next(
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr == "map"
    )
    named = [
        function
        for function in ast.walk(tree)
        if isinstance(function, ast.FunctionDef) and function.name == ast.unparse(node.args[0])
    ]
    function = named[0] if named else None
    first = function.lineno if function else 1
    lines = facts.pop("lines", None) or (lines_of(function) if function else (BatchLine(1, "", {"Mul": 1}, True),))
    recorded = FunctionFacts("f", Site("train.py", first, 1, 99, 1), False, batch_lines=lines)  # type: ignore[arg-type]
    site = Site("train.py", node.end_lineno or 1, 1, node.end_lineno or 1, (node.end_col_offset or 0) + 1)
    return batch_text(text, Call("map_1", "map", site, function=recorded), spec)


def test_lines_that_take_batches_stay_and_the_others_become_functions_of_a_row():
    made = put_together("""
        def prepare(row, label):
            '''Prepare a row.'''
            WIDTH = 4
            row = tf.lookup(row)  # the whole batch
            row = scale(
                row,
            )
            # Each row.
            mean = center(row, WIDTH)
            row = join(row, mean)
            return {"row": row}, label
        ds = ds.map(prepare).batch(8)
        """, spec=PAIR)  # fmt: skip
    assert made.text == textwrap.dedent("""\
        def prepare_batch(row, label):
            WIDTH = 4
            row = tf.lookup(row)
            row = scale(
                row,
            )

            def prepare_rows(row_2):
                row, label = row_2
                mean = center(row, WIDTH)
                row = join(row, mean)
                return {"row": row}, label

            return advisor_vectorized_map(prepare_rows, (row, label), fallback_to_while_loop=False)
        """)
    assert (made.name, made.line, made.cuts) == ("prepare_batch", 1, (9,))
    assert made.original.startswith("def prepare(row, label):\n") and made.original.endswith("label\n")
    assert made.vectorized_ops == {"Mean", "ConcatV2"}


@pytest.mark.parametrize(
    "branch",
    [
        "if FLIPS:\n                row = row[::-1]",
        "if FLIPS:\n                row = reverse(row)",
        "row = reverse(row) if FLIPS else row",
        "for _ in range(FLIPS):\n                row = reverse(row)",
    ],
)
def test_a_branch_that_was_not_traced_is_not_called_with_batches(branch):
    """Another call of the function may take it: a part that takes batches as they are would reverse the batch."""
    traced = (
        BatchLine(2, "lookup", {"LookupTableFindV2": 1}, True),
        BatchLine(5 + branch.count("\n"), "center", {"Mean": 1}, False),
    )
    made = put_together(f"""
        def prepare(row):
            row = tf.lookup(row)
            {branch}
            row = upper(row)
            return center(row)
        ds = ds.map(prepare).batch(8)
        """, lines=traced)  # fmt: skip
    inner = made.text.partition("def prepare_rows(row):\n")[2]
    assert "FLIPS" in inner and "lookup" not in inner


def test_a_branch_that_only_raises_or_sets_a_constant_stays_where_it_is():
    made = put_together("""
        def prepare(row):
            if WIDTH < 1:
                raise ValueError("too small")
            if WIDTH > 3:
                factor = 2.0
            else:
                factor = 3.0
            row = tf.lookup(row)
            return center(row, factor)
        ds = ds.map(prepare).batch(8)
        """)  # fmt: skip
    assert made.text.index("raise") < made.text.index("prepare_rows")


def test_an_expression_of_the_other_kind_gets_a_name():
    made = put_together("""
        def pair(key):
            return tf.join([tf.lookup(key), TABLE.lookup(tf.strings.upper(key))], 0)
        ds = ds.map(pair).batch(8)
        """)  # fmt: skip
    assert made.text == textwrap.dedent("""\
        def pair_batch(key):
            value = tf.lookup(key)
            value_2 = TABLE.lookup(tf.strings.upper(key))

            def pair_rows(row):
                value, value_2 = row
                return tf.join([value, value_2], 0)

            return advisor_vectorized_map(pair_rows, (value, value_2), fallback_to_while_loop=False)
        """)


def test_a_vectorised_part_may_come_first_and_a_function_may_be_inside_another():
    made = put_together("""
        def make(ds):
            def parse(record):
                features = center(record)
                return upper(features["word"]), features["label"]
            return ds.map(parse).batch(8)
        """)  # fmt: skip
    assert made.text == textwrap.indent(textwrap.dedent("""\
        def parse_batch(record):
            def parse_rows(record):
                features = center(record)
                return features

            features = advisor_vectorized_map(parse_rows, record, fallback_to_while_loop=False)
            return upper(features["word"]), features["label"]
        """), "    ", lambda line: bool(line.strip()))  # fmt: skip


def test_drawing_numbers_is_vectorised_over_the_rows_of_a_value_that_it_does_not_need():
    made = put_together("""
        def noisy(row):
            row = tf.lookup(row)
            noise = draw([3])
            return tf.lookup(row) + noise
        ds = ds.map(noisy).batch(8)
        """)  # fmt: skip
    assert made.text == textwrap.dedent("""\
        def noisy_batch(row):
            row = tf.lookup(row)

            def noisy_rows(row):
                noise = draw([3])
                return noise

            noise = advisor_vectorized_map(noisy_rows, row, fallback_to_while_loop=False)
            return tf.lookup(row) + noise
        """)


@pytest.mark.parametrize(
    ("body", "reason"),
    [
        ("    x = lookup(x)\n    return decode(center(x))", "DecodePng has no form for batches"),
        (
            "    if x is None:\n        return x\n    return center(lookup(x))",
            "it may return before its end, in line 3",
        ),
        ("    x = lookup(x)\n    center(x)", "its last statement does not return a value"),
        ("    for _ in range(2):\n        x = center(lookup(x))\n    return x", "inside one block"),
        ("    help = lambda y: y\n    return center(lookup(x))", "it defines a function, in line 2"),
        ("    def help(y):\n        return y\n    return center(lookup(x))", "it defines a function, in line 2"),
        ("    if FLAG:\n        y = lookup(x)\n    return center(y)", "`y` is not assigned on every way to it"),
        ("    x = center(x)\n    return lookup(x.shape)", "does both"),
        ("    return center(x)", "all of its lines are of one kind"),
        (
            "    try:\n        x = lookup(x)\n    except ValueError:\n        pass\n    return center(x)",
            "catches exceptions",
        ),
        ("    lookup(x)\n    return center(3)", "nothing is passed on to it"),
        (f"    {VECTORIZED_MAP} = lookup(x)\n    return center(x)", "the file uses the name"),
    ],
)
def test_what_cannot_be_put_together_safely_is_refused_with_the_reason(body: str, reason: str):
    with pytest.raises(CannotSplitError) as error:
        put_together(f"def f(x):\n{body}\nds = ds.map(f).batch(8)\n")
    assert reason in error.value.reason


def test_calls_that_the_text_hides_and_shared_constants_are_not_taken_apart():
    text = "def f(x):\n    return center(aliased(x))\nds = ds.map(f).batch(8)\n"
    lines = (BatchLine(2, "lookup", {"LookupTableFindV2": 1}, True), BatchLine(2, "center", {"Mean": 1}, False))
    with pytest.raises(CannotSplitError, match="does not show where `lookup` is called"):
        put_together(text, lines=lines)
    lines = tuple(BatchLine(line.line, line.called, line.ops, line.takes_batches, True) for line in lines)
    with pytest.raises(CannotSplitError, match="uses a constant that another call makes"):
        put_together(text.replace("aliased", "lookup"), lines=lines)
    with pytest.raises(CannotSplitError, match="it is a lambda"):
        put_together("ds = ds.map(lambda x: center(lookup(x))).batch(8)\n")
    with pytest.raises(CannotSplitError, match="it has a decorator"):
        put_together(f"@tf.function\n{text}")


@st.composite
def functions(draw) -> str:
    """A function of a row of three numbers: a straight run of statements, some of which nest calls of several kinds."""
    names, lines = ["x"], []

    def expression(depth: int) -> str:
        name = draw(st.sampled_from(names))
        if depth == 0:
            return name
        kind = draw(st.sampled_from(["name", "call", "call", "sum"]))
        if kind == "name":
            return name
        if kind == "sum":
            return f"{expression(depth - 1)} + {expression(depth - 1)}"
        return f"{draw(st.sampled_from(['lookup', 'upper', 'center', 'scale']))}({expression(depth - 1)})"

    for number in range(draw(st.integers(1, 5))):
        lines.append(f"    {draw(st.sampled_from(['x', f'a{number}']))} = {expression(draw(st.integers(1, 3)))}")
        names.append(lines[-1].split()[0])
    lines.append("    a = {'first': " + expression(1) + "}")
    lines.append(f"    return a['first'], {expression(2)}")
    return "def f(x):\n" + "\n".join(lines) + "\nds = ds.map(f).batch(8)\n"


def vectorized_map(function, elems, fallback_to_while_loop):
    """What `tf.vectorized_map` computes, row by row."""
    assert fallback_to_while_loop is False
    first = elems
    while not isinstance(first, np.ndarray):
        first = first[0] if isinstance(first, tuple) else next(iter(first.values()))
    return stacked([function(row_of(elems, number)) for number in range(len(first))])


def row_of(batch, number):
    if isinstance(batch, tuple):
        return tuple(row_of(part, number) for part in batch)
    if isinstance(batch, dict):
        return {key: row_of(part, number) for key, part in batch.items()}
    return batch[number]


def stacked(results):
    first = results[0]
    if isinstance(first, tuple):
        return tuple(stacked([result[number] for result in results]) for number in range(len(first)))
    if isinstance(first, dict):
        return {key: stacked([result[key] for result in results]) for key in first}
    return np.stack(results)


FUNCTIONS = {
    "lookup": lambda x: x * 3 + 1,
    "upper": lambda x: x * x % 101,
    "scale": lambda x: x * 2,
    "center": lambda x: x - x.sum(),  # of a whole batch it would subtract another number
}


@settings(max_examples=examples(200))
@given(functions(), st.integers(1, 4))
def test_a_batch_of_rows_gives_the_batch_of_their_results(text: str, count: int):
    try:
        made = put_together(text)
    except CannotSplitError as error:
        one_kind = ("all of its lines are of one kind", "it is unknown what its lines do to a batch")
        assert error.reason in (*one_kind, "nothing is passed on to it, or from it")  # the last: a line without effect
        return
    batch = np.arange(count * 3, dtype=np.int64).reshape(count, 3) % 7
    old, new = dict(FUNCTIONS), {**FUNCTIONS, VECTORIZED_MAP: vectorized_map}
    exec(text.partition("ds = ")[0], old)
    exec(made.text, new)
    expected = stacked([old["f"](row) for row in batch])
    for got, wanted in zip(new[made.name](batch), expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
