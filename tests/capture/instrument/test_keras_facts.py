"""What the recorder reads off a Keras model, whatever kind of variable holds it."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.keras_loops import _integer


class Mirrored:
    """As TensorFlow's MirroredVariable: it cannot be converted, its copies can."""

    def __init__(self, value):
        self.values = (value, value)

    def __int__(self):
        raise TypeError("int() argument must be a string, a bytes-like object or a real number, not 'MirroredVariable'")


class Variable:
    def __init__(self, value):
        self.value = value

    def read_value(self):
        return self.value


@pytest.mark.parametrize(
    ("value", "expected"), [(None, 1), (0, 1), (32, 32), (Variable(8), 8), (Mirrored(4), 4), (object(), None)]
)
def test_steps_per_execution_of_any_kind(value, expected):
    assert _integer(value) == expected
