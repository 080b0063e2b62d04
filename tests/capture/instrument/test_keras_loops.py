"""What the recorder reads off Keras: epochs, counted only where they come to the end of the dataset, and facts on the model."""

from __future__ import annotations

import textwrap
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.keras_loops import KerasLoops, _integer

SCRIPT = """
    import keras, numpy as np, tensorflow as tf
    data = tf.data.Dataset.range(40).map(lambda x: (tf.ones((4,)), tf.ones((1,)))).batch(4)
    model = keras.Sequential([keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse")

    class Stops(keras.callbacks.Callback):
        def on_train_batch_end(self, batch, logs=None):
            self.model.stop_training = self.epoch == 1 and batch == 3
        def on_epoch_begin(self, epoch, logs=None):
            self.epoch = epoch

"""


FITS = {
    "model.fit(data, epochs=3, verbose=0)": (3, 30),
    "model.fit(data, epochs=3, verbose=0, validation_data=data.take(2))": (3, 30),
    "model.fit(data.repeat(), epochs=3, steps_per_epoch=5, verbose=0)": (0, 0),
    "model.fit(data, epochs=3, verbose=0, callbacks=[Stops()])": (1, 10),
}
"""Training -> its finished epochs and the steps in them. The last one is stopped in the middle of its second epoch."""


@pytest.mark.tensorflow
@pytest.mark.long
def test_finished_epochs(watch):
    text = textwrap.dedent(SCRIPT) + "\n".join(FITS)
    run = watch(text, to_end=True, is_profiled=False)
    lines = text.splitlines()
    fits = {
        lines[consumer.site.line - 1]: (consumer.finished_epochs, consumer.finished_steps)
        for consumer in run.recording.consumers
        if consumer.kind == "keras.fit"
    }
    assert fits == FITS


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_window_ends_an_epoch_for_us_not_for_keras(watch):
    run = watch(textwrap.dedent(SCRIPT) + "model.fit(data.repeat(500), epochs=3, verbose=0)", steps=5, warmup=12)
    assert run.main.kind == "keras.fit" and run.main.finished_epochs == 0


@pytest.mark.tensorflow
@pytest.mark.long
def test_calls_know_the_bytes_of_their_files(watch, tmp_path):
    for number in range(3):
        (tmp_path / f"{number}.txt").write_text("a line of text\n" * 100)
    run = watch(
        """
        import glob, tensorflow as tf
        files = sorted(glob.glob("*.txt"))
        lines = tf.data.TextLineDataset(files).repeat(10)
        listed = tf.data.Dataset.list_files("*.txt").interleave(lambda file: tf.data.TextLineDataset(file))
        for _ in lines: pass
        for _ in listed: pass
        """,
        to_end=True,
    )
    assert [call.file_bytes for call in run.calls("TextLineDataset") if call.nested_in is None] == [4500]
    assert run.call("list_files").file_bytes == 4500
    assert run.call("interleave").file_bytes is None


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_unprofiled_part_has_separate_models(watch):
    pytest.importorskip(
        "tensorflow.python.data.experimental.ops.iterator_model_ops", reason="TensorFlow 2.16 has no models"
    )
    run = watch(
        """
        import tensorflow as tf
        data = tf.data.Dataset.range(1 << 40).map(lambda x: tf.reduce_sum(tf.random.normal((200,)))).shuffle(50).batch(8)
        for batch in data: pass
        """
    )
    (model,) = run.recording.plain_models
    counted = {node.name: node for node in model.nodes}
    window = run.recording.window
    assert counted["Shuffle"].num_elements == pytest.approx(8 * window.plain_steps, rel=0.2)
    assert counted["Shuffle"].processing_time_ns > 0


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
