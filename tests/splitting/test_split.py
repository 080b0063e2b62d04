"""Texts of functions that are cut, and why others are not. TensorFlow is not needed: the traced lines are given."""

from __future__ import annotations

import ast
import re
import textwrap

import pytest

from advisor.model.calls import Call, CalledFunction, FunctionFacts, FunctionLine, Site
from advisor.splitting import CannotSplitError, Halves, split_function

ONE = "TensorSpec(shape=(), dtype=tf.string, name=None)"
TWO = f"({ONE}, TensorSpec(shape=(), dtype=tf.int64, name=None))"


def recorded(text: str, draws: str, spec: str = ONE) -> tuple[str, Call]:
    """The text and the call of its last `.map(...)`.

    A line makes ops through every function that it calls; the ops of those named in `draws` are random.
    """
    text = textwrap.dedent(text).lstrip("\n")
    tree = ast.parse(text)
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)]
    node = [call for call in calls if isinstance(call.func, ast.Attribute) and call.func.attr == "map"][-1]
    line = text.splitlines()[node.end_lineno - 1 if node.end_lineno else 0]
    column = len(line.encode()[: node.end_col_offset].decode()) + 1
    argument = node.args[0]
    functions = {node.name: node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
    behind = argument
    if (
        isinstance(argument, ast.Call) and argument.args and not isinstance(argument.args[0], ast.Constant)
    ):  # functools.partial(load, ...)
        behind = argument.args[0]
    elif isinstance(argument, ast.Lambda) and isinstance(argument.body, ast.Call):
        behind = argument.body.func
    function = functions.get(ast.unparse(behind).rpartition(".")[2], argument)
    first = min([function.lineno, *(d.lineno for d in getattr(function, "decorator_list", ()))])
    lines = []
    body = function.body if isinstance(function, ast.FunctionDef) else [getattr(function, "body", function)]
    for statement in body:
        for call in (inner for inner in ast.walk(statement) if isinstance(inner, ast.Call)):
            called = ast.unparse(call.func).rpartition(".")[2]
            lines.append(FunctionLine(call.lineno, called, {called.title(): 1}, called in draws.split(), 64))
    site = Site("train.py", first, 1, function.end_lineno or first, 1)
    is_called = isinstance(argument, ast.Lambda) and function is not argument
    random_line = min((line.line for line in lines if line.is_random), default=first)
    facts = FunctionFacts(
        "f",
        site,
        True,
        ("RandomUniform",),
        lines=() if is_called else tuple(lines),
        called=CalledFunction(site, tuple(lines)) if is_called else None,
        random_site=Site("train.py", random_line, 1, random_line, 1),
    )
    end_line = node.end_lineno or node.lineno
    call_site = Site("train.py", end_line, 1, end_line, column)
    return text, Call("map_1", "map", call_site, element_spec=spec, function=facts)


def split(text: str, draws: str = "flip", spec: str = ONE, is_script: bool = True) -> Halves:
    text, call = recorded(text, draws, spec)
    return split_function(text, call, spec, is_script)


def texts(halves: Halves) -> str:
    return f"{halves.texts.first}---\n{halves.texts.second}"


def test_comments_docstring_and_line_breaks_stay_where_they_are():
    halves = split("""
        def load(file, label):
            '''Load an image.'''
            # Decode it.
            image = decode(
                read(file),  # from the page cache
            )

            # Augment it.
            image = flip(image)
            return scale(image), label
        ds = ds.map(load)
        """, spec=TWO)  # fmt: skip
    assert halves.texts.first == textwrap.dedent("""\
        def load_cached(file, label):
            # Decode it.
            image = decode(
                read(file),  # from the page cache
            )
            return label, image
        """)
    assert halves.texts.second == textwrap.dedent("""\
        def load(label, image):
            '''Load an image.'''
            # Augment it.
            image = flip(image)
            return scale(image), label
        """)
    assert (halves.line, halves.names, halves.bytes) == (9, ("label", "image"), 64)
    assert halves.ops == {"Decode": 1, "Read": 1}
    assert halves.texts.is_replaced


def test_nested_calls_are_cut_between_decode_and_augment():
    halves = split("ds = ds.map(lambda file: scale(flip(decode(read(file)))), num_parallel_calls=8)\n")
    assert (halves.texts.first, halves.texts.second) == (
        "lambda file: decode(read(file))",
        "lambda value: scale(flip(value))",
    )
    halves = split("ds = ds.map(lambda x, y: (flip(decode(x)), y))\n", spec=TWO)
    assert halves.texts.first == "lambda x, y: (y, decode(x))"
    assert halves.texts.second == "lambda y, value: (flip(value), y)"
    halves = split("""
        def load(file):
            data = read(file)
            return flip(decode(data) / 255.0, 3)
        ds = ds.map(load)
        """)  # fmt: skip
    assert texts(halves) == textwrap.dedent("""\
        def load_cached(file):
            data = read(file)
            value = decode(data) / 255.0
            return value
        ---
        def load(value):
            return flip(value, 3)
        """)


def test_a_random_call_that_is_evaluated_first_keeps_everything_behind_it():
    with pytest.raises(CannotSplitError, match="nothing is computed before it"):
        split("ds = ds.map(lambda x: mix(flip(x), decode(x)))\n")
    with pytest.raises(CannotSplitError, match="nothing is computed before it"):
        split("ds = ds.map(lambda x: flip(x) + decode(x))\n")
    # The name under which it is called is not the traced one, so that its place in the statement is unknown.
    text, call = recorded("ds = ds.map(lambda x: alias(decode(x)))\n", "alias")
    assert call.function is not None
    lines = tuple(
        FunctionLine(line.line, "random_flip" if line.is_random else line.called, line.ops, line.is_random)
        for line in call.function.lines
    )
    facts = FunctionFacts("f", call.function.site, True, ("RandomUniform",), lines=lines)
    with pytest.raises(CannotSplitError, match="nothing is computed before it"):
        split_function(text, Call("map_1", "map", call.site, function=facts), ONE, True)


def test_constants_and_imports_are_repeated_instead_of_passed_on():
    halves = split("""
        def load(file):
            import tensorflow as tf
            side = 64
            shape = (side, side)
            dtype = tf.float32
            unused = 3
            image = decode(file, shape)
            image = flip(image, tf.cast(shape, dtype))
            return image
        ds = ds.map(load)
        """)  # fmt: skip
    assert halves.names == ("image",)
    assert halves.texts.second == textwrap.dedent("""\
        def load(image):
            import tensorflow as tf
            side = 64
            shape = (side, side)
            dtype = tf.float32
            image = flip(image, tf.cast(shape, dtype))
            return image
        """)


def test_defaults_stay_unless_the_element_fills_them():
    text = """
        def load(file, label=0, *, delta=0.5):
            image = decode(file)
            return flip(image, delta), label
        ds = ds.map(load)
        """
    one, two = split(text, spec=ONE), split(text, spec=TWO)
    assert one.texts.second.startswith("def load(image, label=0, delta=0.5):")
    assert two.texts.second.startswith("def load(label, image, delta=0.5):")
    with pytest.raises(CannotSplitError, match="keep their defaults"):
        split(text, spec="(TensorSpec(shape=…")


def test_a_function_with_other_users_is_left_as_it_is():
    text = """
        def load(file):
            image = decode(file)
            return flip(image)
        other = ds.map(load)
        ds = ds.map(load)
        """
    halves = split(text)
    assert not halves.texts.is_replaced
    assert halves.texts.second.startswith("def load_random(image):")
    assert not split(text.replace("other = ds.map(load)", "")).texts.second.startswith("def load_random")
    assert split(text.replace("other = ds.map(load)", ""), is_script=False).texts.second.startswith("def load_random")
    assert split(text.replace("other = ds.map(load)", "__all__ = ['load']")).texts.second.startswith("def load_random")


def test_new_names_are_not_used_in_the_file():
    halves = split("""
        def load(file):
            return flip(decode(file))
        load_cached = value = 3
        ds = ds.map(load)
        """)  # fmt: skip
    assert (halves.texts.first_name, halves.names) == ("load_cached_2", ("value_2",))


def test_the_decorator_and_the_indentation_are_kept():
    halves = split("""
        def make(ds):
            @tf.function
            def load(file):
                image = decode(file)
                return flip(image)
            return ds.map(load)
        """)  # fmt: skip
    assert halves.texts.first == (
        "    @tf.function\n    def load_cached(file):\n        image = decode(file)\n        return image\n"
    )
    assert halves.texts.original.startswith("    @tf.function\n    def load(file):")


def test_windows_line_breaks_and_other_alphabets():
    text = (
        "def läd(datei):\r\n    bild = decode(datei)  # ü\r\n    return flip(bild), 'ß'\r\nds = 'é' and ds.map(läd)\r\n"
    )
    halves = split(text)
    assert halves.texts.first == "def läd_cached(datei):\r\n    bild = decode(datei)  # ü\r\n    return bild\r\n"
    assert halves.texts.second == "def läd(bild):\r\n    return flip(bild), 'ß'\r\n"


REFUSED = {
    "it may return before, in line 5": "if small(x):\n        return x\n    x = decode(x)\n    return flip(x)",
    "it catches exceptions before": "try:\n        x = decode(x)\n    except ValueError:\n        x = 0\n    return flip(x)",
    "everything is inside the `with`": "with scope('a'):\n        x = decode(x)\n        return flip(x)",
    "it assigns names of an enclosing scope": "global n\n    n = 1\n    x = decode(x)\n    return flip(x)",
    "assignment expression": "x = (y := decode(x))\n    return flip(x) + y",
    "it contains `del`": "y = decode(x)\n    del x\n    return flip(y)",
    "it is a generator": "y = decode(x)\n    yield flip(y)",
    "`scale` is not assigned on every way": "y = decode(x)\n    if BIG:\n        scale = size(y)\n    return flip(y) * scale",
    "the rest calls `half`": "y = decode(x)\n    half = lambda v: v / 2\n    return half(flip(y))",
    "it uses `locals`": "y = decode(x)\n    flip(y)\n    return locals()",
    "nothing is computed before it": "y = flip(x)\n    return decode(y)",
    "it calls itself": "y = decode(x)\n    return flip(y) if y else load(y)",
    "the rest uses nothing": "y = decode(x)\n    return flip(3)",
    "not on lines of their own": "y = decode(x); y = y + 1; y = (\n    flip(y))\n    return y",
}  # fmt: skip


@pytest.mark.parametrize("reason", REFUSED)
def test_refused(reason: str):
    body = f"n = 0\nBIG = True\ndef load(x):\n    {REFUSED[reason]}\nds = ds.map(load)\n"
    with pytest.raises(CannotSplitError, match=re.escape(reason)):
        split(body)


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("class A:\n    def load(self, x):\n        y = decode(x)\n        return flip(y)\nds = ds.map(A().load)\n", "passed as"),
        ("ds = ds.map(functools.partial(load, 3))\n", "does not name a function"),
        ("ds = ds.map(functools.partial(Model().load, 3))\n", "it is passed as `functools.partial"),
        ("load = lambda x: flip(decode(x))\nds = ds.map(load)\n", "does not name a function"),
        ("def load(*x):\n    y = decode(x)\n    return flip(y)\nds = ds.map(load)\n", "variable number of arguments"),
        ("@cache\ndef load(x):\n    y = decode(x)\n    return flip(y)\nds = ds.map(load)\n", "decorator other than"),
        ("def load(x, n=f()):\n    y = decode(x)\n    return flip(y, n)\nds = ds.map(load)\n", "a default of"),
        ("def load(x):\n    y = decode(x)\n    return flip(y)\nload = 3\nds = ds.map(load)\n", "bound more than once"),
        ("def load(x): return flip(decode(x))\nds = ds.map(load)\n", "not on lines of their own"),
        ("def load(x,  # a file\n):\n    y = decode(x)\n    return flip(y)\nds = ds.map(load)\n", "contains a comment"),
        ("ds = ds.map(lambda x: flip(decode(x))).filter(lambda y: True)\n", "more than one lambda"),
        ("from other import load\nds = ds.map(load)\n", "does not name a function"),
    ],
)  # fmt: skip
def test_other_forms_are_refused(text: str, reason: str):
    with pytest.raises(CannotSplitError, match=reason):
        split(text)


def test_a_refusal_names_the_line_at_which_an_author_would_cut():
    with pytest.raises(CannotSplitError) as error:
        split("def load(*x):\n    y = decode(x)\n    return flip(y)\nds = ds.map(load)\n")
    assert error.value.line == 3


def test_a_function_in_another_file_is_refused():
    text, call = recorded("def load(x):\n    y = decode(x)\n    return flip(y)\nds = ds.map(load)\n", "flip")
    assert call.function is not None and call.function.site is not None
    site = Site(
        "other.py", *[getattr(call.function.site, name) for name in ("line", "column", "end_line", "end_column")]
    )
    facts = FunctionFacts("f", site, True, ("RandomUniform",), lines=call.function.lines)
    with pytest.raises(CannotSplitError, match="defined in another file"):
        split_function(text, Call("map_1", "map", call.site, function=facts), ONE, True)
