"""Each op of a function leads to the line of the user's source that created it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from advisor.capture.instrument import op_lines
from advisor.model.calls import FunctionFacts
from tests.recorded import install

pytestmark = pytest.mark.tensorflow


def facts_of(function: Any) -> FunctionFacts:
    import tensorflow as tf

    with install() as recorded:
        tf.data.Dataset.range(3).map(function)
        facts = recorded.call("map").function
    assert facts is not None
    return facts


def lines_of(facts: FunctionFacts) -> dict[str, str]:
    """Name of each op -> text of its line."""
    return {name: line.at.text for line in facts.op_lines for name in line.ops}


def test_branches_and_loops_have_the_names_of_inlined_ops() -> None:
    import tensorflow as tf

    def function(x: Any) -> Any:
        y = tf.cast(x, tf.float32)
        if y > 1.0:
            y = tf.sin(y)
        else:
            y = tf.cos(y)
        for _ in tf.range(3):
            y = tf.tanh(y)
        return y

    lines = lines_of(facts_of(function))
    assert lines["cond/then/cond/Sin"] == "y = tf.sin(y)"
    assert lines["cond/else/cond/Cos"] == "y = tf.cos(y)"
    assert lines["while/body/while/Tanh"] == "y = tf.tanh(y)"
    assert lines["Cast"] == "y = tf.cast(x, tf.float32)"


def helper(x: Any) -> Any:
    import tensorflow as tf

    return tf.sqrt(x)


def test_a_line_of_a_helper_names_the_line_that_calls_it() -> None:
    import tensorflow as tf

    inner = tf.function(helper)

    def function(x: Any) -> Any:
        y = tf.cast(x, tf.float32)
        return inner(y)

    facts = facts_of(function)
    (line,) = (line for line in facts.op_lines if "PartitionedCall/Sqrt" in line.ops)
    assert (line.at.function, line.at.text) == ("helper", "return tf.sqrt(x)")
    assert facts.site is not None
    assert line.at.via == facts.site.line + 2


def test_python_functions_of_ops_are_found() -> None:
    import tensorflow as tf

    def python(x: Any) -> Any:
        return np.float32(x)

    for call in (
        lambda x: tf.numpy_function(python, [x], tf.float32),
        lambda x: tf.py_function(python, [x], tf.float32),
    ):
        (site,) = facts_of(call).python_functions
        assert site.line == python.__code__.co_firstlineno


def test_a_generator_is_a_python_function() -> None:
    import tensorflow as tf

    def numbers() -> Any:
        yield 1

    with install() as recorded:
        tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int32))
        facts = recorded.call("from_generator").function
    assert facts is not None
    assert [site.line for site in facts.python_functions] == [numbers.__code__.co_firstlineno]


def test_the_number_of_lines_is_limited(monkeypatch: pytest.MonkeyPatch) -> None:
    import tensorflow as tf

    monkeypatch.setattr(op_lines, "MAX_OPS", 5)

    def function(x: Any) -> Any:
        for _ in range(10):
            x = x + 1
        return tf.identity(x)

    facts = facts_of(function)
    assert sum(len(line.ops) for line in facts.op_lines) == 5
    assert facts.op_lines_omitted == 5
