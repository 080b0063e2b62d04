"""What is recorded about Keras models: their calls of `compile`, the loss of the first batches, their largest product."""

from __future__ import annotations

import pytest

from advisor.capture.machine_probe import measure_largest_product
from advisor.model.recording import Product

pytestmark = pytest.mark.tensorflow

SCRIPT = """
import keras, tensorflow as tf
keras.utils.set_random_seed(2)  # some initial weights diverge at this learning rate
data = tf.data.Dataset.range(960).map(lambda x: (tf.ones((8, 8, 3)), tf.ones((1,)))).batch(8)
layers = [keras.layers.Conv2D(16, 3, 2, "same"), keras.layers.Flatten(), keras.layers.Dense(4), keras.layers.Dense(1)]
model = keras.Sequential([keras.Input((8, 8, 3)), *layers])
model.compile(optimizer="sgd",
              loss="mse", steps_per_execution=4)
model.fit(data, epochs=1000, verbose=0)
"""


def test_a_model_that_is_compiled_and_trained(watch):
    run = watch(SCRIPT, steps=5, warmup=5, is_profiled=False)
    recording = run.recording
    (compiled,) = recording.compiles
    assert (compiled.site.line, compiled.site.end_line, compiled.library) == (7, 8, None)
    assert compiled.explicit == ("optimizer", "loss", "steps_per_execution")
    assert compiled.text.startswith(".compile(optimizer=")
    batches = [count for count, _ in recording.losses]
    assert batches[:3] == [4, 8, 12] and max(batches) <= 64
    assert all(
        later <= earlier for (_, earlier), (_, later) in zip(recording.losses, recording.losses[1:], strict=False)
    )
    product = recording.product
    assert (product.kind, product.inputs, product.kernel) == ("Conv2D", (8, 8, 3), (3, 3, 3, 16))
    assert (product.strides, product.padding) == ((2, 2), "SAME")
    assert recording.keras["learning_rate"] == pytest.approx(0.01)


@pytest.mark.long
def test_several_models_and_libraries(watch):
    """A second model, and one that Keras compiles itself as it is loaded."""
    text = SCRIPT.replace("model.fit(", "other = keras.Sequential([keras.layers.Dense(1)])\nother.compile('sgd', 'mse')\n"
                          "model.save('m.keras')\nkeras.models.load_model('m.keras')\nmodel.fit(")  # fmt: skip
    compiles = watch(text, steps=5, warmup=5, is_profiled=False).recording.compiles
    assert [(call.library, call.site.line) for call in compiles] == [(None, 7), (None, 10), ("keras", 12)]


@pytest.mark.parametrize(
    "product",
    [
        Product("dense", "MatMul", (64,), (64, 32)),
        Product("of every place", "MatMul", (5, 64), (64, 32)),
        Product("convolution", "Conv2D", (16, 16, 3), (3, 3, 3, 8), (2, 2), "SAME"),
    ],
    ids=lambda product: product.layer,
)
@pytest.mark.long
def test_a_product_is_timed_in_both_types(product):
    times = measure_largest_product(product, 8, 120.0)
    assert (times.product, times.rows) == (product, 8)
    assert 0 < times.float32_ns < 1e9 and 0 < times.bfloat16_ns < 1e9
    assert times.gain == pytest.approx(times.float32_ns / times.bfloat16_ns)
