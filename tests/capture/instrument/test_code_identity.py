"""Functions and values described so that two runs of one text agree, and two different ones do not."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from advisor.capture.instrument.code_identity import argument_identities, changed_code, function_identity, identity_of

FUNCTION = """
scale = 2
def helper(x):
    return x + 1
def f(x):
    names = {"b", "a", "c"}
    if x in {1, 2, 3}:
        return [helper(y) for y in range(x)]
    return helper(x) * scale
"""


class Config:
    scale = 2


def made(text, **names):
    scope = dict(names)
    exec(compile(text, "train.py", "exec"), scope)
    return scope["f"]


def test_lines_and_file_do_not_show():
    assert function_identity(made(FUNCTION)) == function_identity(made("# a comment\n\n" + FUNCTION))


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("helper(x) *", "helper(x) +"),
        ("x + 1", "x + 2"),
        ("scale = 2", "scale = 3"),
        ("range(x)", "reversed(x)"),
        ("{1, 2, 3}", "{1, 2, 4}"),
        ("def f(x):", "def f(x, y=1):"),
    ],
)
def test_another_code_or_another_value_from_outside_shows(old, new):
    assert old in FUNCTION
    assert function_identity(made(FUNCTION)) != function_identity(made(FUNCTION.replace(old, new)))


def test_attributes_that_a_function_reads_show_and_others_do_not():
    text = "def f(x):\n    return x * config.scale"
    one, two, three = Config(), Config(), Config()
    one.__dict__["scale"], two.__dict__["scale"], three.__dict__["scale"] = 2, 3, 2
    three.__dict__["other"] = 9
    assert function_identity(made(text, config=one)) != function_identity(made(text, config=two))
    assert function_identity(made(text, config=one)) == function_identity(made(text, config=three))


def test_closures_lambdas_partials_and_methods():
    def maker(n):
        return lambda x: x + n

    assert function_identity(maker(1)) == function_identity(maker(1)) != function_identity(maker(2))
    partial = functools.partial
    assert function_identity(partial(maker, 1)) == function_identity(partial(maker, 1))
    assert function_identity(partial(maker, 1)) != function_identity(partial(maker, 2))
    assert function_identity(partial(maker, n=1)) != function_identity(maker)

    class Model:
        def one(self, x):
            return x

        def two(self, x):
            return x + 1

    assert function_identity(Model().one) == function_identity(Model().one) != function_identity(Model().two)


def test_values():
    assert identity_of(8) == identity_of(np.int64(8)) == identity_of(np.array(8)) != identity_of(8.0)
    big = np.arange(1000)
    assert identity_of(big) == identity_of(big.copy()) != identity_of(big[::-1])
    assert identity_of([1, (2, {"a": None})]) != identity_of([1, (2, {"a": 0})])
    assert identity_of("x" * 500) != identity_of("x" * 499)
    assert identity_of({"b", "a"}) == identity_of({"a", "b"})
    assert identity_of(object()) == identity_of(object())


def test_arguments_are_bound_and_defaults_distinguished():
    def batch(self, batch_size, drop_remainder=False, name=None):
        pass

    by_position = argument_identities(batch, (None, 4), {"name": "tfadv_3"})
    assert by_position == argument_identities(batch, (None,), {"batch_size": 4, "drop_remainder": False})
    assert by_position == ({"batch_size": "4", "drop_remainder": "False"}, ("batch_size",))


def test_code_that_a_patch_changes_is_paired():
    before = b"def read(f):\n    return g(f).map(h)\nother = lambda x: x\n"
    after = b"import tensorflow as tf\n\n" + before.replace(b"map(h)", b"map(h, num_parallel_calls=4)")
    scopes = []
    for text in (before, after):
        scopes.append({})
        exec(compile(text.removeprefix(b"import tensorflow as tf"), "x.py", "exec"), scopes[-1])
    pairs = changed_code(before, after)
    old, new = (function_identity(scope["read"]) for scope in scopes)
    assert old != new
    assert any(old.replace(one, two) == new for one, two in pairs.items())
    assert function_identity(scopes[0]["other"]) == function_identity(scopes[1]["other"])
