"""What the recorder reads off a Keras model, whatever kind of variable holds it."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from advisor.capture.instrument.keras_loops import KerasLoops, _integer


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


def test_a_model_under_a_strategy_is_described():
    """Its number of steps per execution is a MirroredVariable, as is the learning rate of its optimizer."""
    warnings = []
    loops = KerasLoops(SimpleNamespace(finder=None), SimpleNamespace(), warnings.append)
    model = SimpleNamespace(
        dtype_policy=SimpleNamespace(name="float32"),
        steps_per_execution=Mirrored(4),
        jit_compile=False,
        run_eagerly=False,
        optimizer=SimpleNamespace(learning_rate=Mirrored(0.1)),
    )
    loops._note(model, "keras.fit", (), {"epochs": 2})
    assert warnings == []
    described = {name: loops.facts[name] for name in ("steps_per_execution", "dtype_policy", "epochs", "learning_rate")}
    assert described == {"steps_per_execution": 4, "dtype_policy": "float32", "epochs": 2, "learning_rate": None}


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_real_mirrored_variable_is_read():
    import tensorflow as tf

    with tf.distribute.MirroredStrategy(["CPU:0"]).scope():
        steps = tf.Variable(4, dtype=tf.int64, aggregation=tf.VariableAggregation.ONLY_FIRST_REPLICA)
    with pytest.raises(TypeError, match="MirroredVariable"):
        int(steps)
    assert _integer(steps) == 4
