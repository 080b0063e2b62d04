"""What the recording says about how often a script passes over its data, and over its generators."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow

GENERATOR = """
import sys
import numpy as np
import tensorflow as tf

rows, numbers = [[float(i)] * 4 for i in range(50)], np.random.default_rng(3)

def same():
    print("begin", flush=True)
    for number, row in enumerate(rows):
        yield {{"x": row, "y": tf.constant(number)}}

def shuffled():
    for number in numbers.permutation(len(rows)):
        yield {{"x": rows[number], "y": tf.constant(number, tf.int32)}}

def grows():
    yield from same()
    rows.append([0.5] * 4)

def replaced():
    yield from same()
    rows[7][2] += 1

signature = {{"x": tf.TensorSpec([4]), "y": tf.TensorSpec([], tf.int32)}}
ds = tf.data.Dataset.from_generator({name}, output_signature=signature).batch(5)
for epoch in range(4):
    for x in ds:
        pass
"""


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["same", "replaced", *(pytest.param(name, marks=pytest.mark.long) for name in ("shuffled", "grows"))]
)
def test_passes_over_a_generator_are_compared(watch, name):
    run = watch(GENERATOR.format(name=name), to_end=True)
    (seen,) = run.recording.generators
    assert seen.call_id == run.call("from_generator").id
    assert (seen.passes, seen.elements, seen.compared) == (4, 50, 50)
    assert seen.is_same is (name == "same")
    if name == "same":
        assert run.out.count("begin") == 4  # never run more often than by the script
    (loop,) = run.main.loops
    assert loop.count == 4


@pytest.mark.long
def test_epochs_of_fit(watch):
    run = watch(
        """
        import keras, numpy as np, tensorflow as tf
        ds = tf.data.Dataset.from_tensor_slices((np.ones((80, 5), "f4"), np.ones((80, 1), "f4"))).batch(8).repeat()
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        stop = keras.callbacks.EarlyStopping("loss", patience=100)
        for round in range(2):
            model.fit(ds, steps_per_epoch=20, initial_epoch=1, epochs=4, verbose=0, callbacks=[stop] if round else [])
        """,
        to_end=True,
    )
    facts = run.recording.keras
    assert (facts["epochs"], facts["initial_epoch"], facts["steps_per_epoch"]) == (4, 1, 20)
    assert facts["fits"] == 2 and facts["may_stop"] is True
    (loop,) = run.main.loops
    assert (loop.count, loop.line) == (2, 7)


@pytest.mark.long
def test_epochs_of_fit_by_default(watch):
    run = watch(
        """
        import keras, numpy as np, tensorflow as tf
        ds = tf.data.Dataset.from_tensor_slices((np.ones((80, 5), "f4"), np.ones((80, 1), "f4"))).batch(8)
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(ds, verbose=0)
        """,
        to_end=True,
    )
    facts = run.recording.keras
    assert (facts["fits"], facts["epochs"], facts["may_stop"]) == (1, None, False)
    assert run.main.loops == ()
