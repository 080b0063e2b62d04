"""Reading the pipeline without training, after the window: what is read, what is counted, and when nothing is."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.window.alone_reading import buffered_elements, counted, stays_inside, waits
from advisor.model.calls import Call, FunctionFacts
from advisor.model.recording import AloneReading, BufferLevels

MS = 1_000_000


def node(name, elements, buffered=0):
    return SimpleNamespace(name=name, num_elements=elements, buffered_elements=buffered)


def test_buffers_count_in_elements_of_the_whole_pipeline_and_shuffle_buffers_do_not():
    nodes = {
        1: node("Root", 10),
        2: node("Prefetch", 10, 3),
        3: node("BatchV2", 13),
        4: node("ParallelMapV2", 420, 21),  # 42 elements per batch: half a batch
        5: node("ShuffleV3", 440, 1_000),
        6: node("TensorSlice", 0, 7),
    }
    assert buffered_elements(SimpleNamespace(output=1, nodes=nodes)) == pytest.approx(3.5)


@pytest.mark.parametrize("nodes", [{}, {1: node("Root", 0, 5)}])
def test_a_pipeline_that_has_delivered_nothing_is_not_read(nodes):
    assert buffered_elements(SimpleNamespace(output=1, nodes=nodes)) is None


def test_elements_that_were_ready_are_left_out():
    """Three come at once, from the buffer; then each takes 20 ms."""
    arrivals = [0, 1, 2, 3, *(20 * MS * count for count in range(1, 21))]
    assert counted(arrivals, 3) == AloneReading(19, 380 * MS)


def test_too_few_elements_tell_nothing():
    arrivals = [0, 1, 2, 3, *(100 * MS * count for count in range(1, 6))]
    assert counted(arrivals, 3) is None
    assert counted(arrivals, 2) == AloneReading(5, 500 * MS - 3)


def test_too_short_a_time_tells_nothing():
    assert counted([2 * MS * count for count in range(100)], 3) is None


def consumer_of(kind="for", steps=100, wait_ms=0.0):
    consumer = Consumers().at(kind, None, None)
    consumer.call_id = "m1"
    for step in range(steps):
        consumer.begin(step * 10 * MS)
        consumer.fetch_ns = round(wait_ms * MS)
        consumer.end((step + 1) * 10 * MS)
    return consumer


def levels_of(*elements):
    return (BufferLevels("c0", "Prefetch", True, elements=elements),)


def test_a_training_that_waits_is_not_read():
    assert not waits(consumer_of(wait_ms=0.5), ())
    assert waits(consumer_of(wait_ms=2), ())
    assert not waits(consumer_of("keras.fit"), ())
    assert waits(consumer_of("keras.fit"), levels_of(0, 0, 1))
    assert not waits(consumer_of("keras.fit"), levels_of(0, 2, 2))
    assert not waits(consumer_of(wait_ms=0.5), levels_of(0, 0, 0)), "the wait itself was seen"


def calls(*, method="range", function=None):
    return Call("s0", method, None), Call("m1", "map", None, inputs=("s0",), function=function)


TRACED = FunctionFacts("scale", None, is_stateful=False)
PYTHON = FunctionFacts("load", None, is_stateful=True, python_ops=("EagerPyFunc",))
READ_ONLY = FunctionFacts("load", None, is_stateful=False, is_traced=False)


@pytest.mark.parametrize(
    ("recorded", "stays"),
    [
        (calls(function=TRACED), True),
        (calls(function=PYTHON), False),
        (calls(function=READ_ONLY), False),
        (calls(method="from_generator", function=TRACED), False),
        (calls(method="from_dataset_id", function=TRACED), False),
        ((), False),
        ((*calls(function=TRACED), Call("g2", "from_generator", None)), True),
        ((*calls(function=TRACED), Call("g2", "from_generator", None, nested_in="m1")), False),
    ],
    ids=["traced", "python", "not traced", "generator", "service", "unknown", "another dataset's", "inside a function"],
)
def test_only_transformations_of_tensorflow_are_read_on(recorded, stays):
    assert stays_inside(consumer_of(), recorded) is stays


LOOP = """
import time
import tensorflow as tf
seen = []
ds = tf.data.Dataset.range(1_000_000).map({function}).batch(8).prefetch(4)
for x in ds:
    time.sleep(0.02)
    seen.append(int(x[0]))
"""
SLOW = """
def slow(x):
    y = tf.cast(x, tf.float32) * tf.ones([60, 60])
    for _ in range(8):
        y = tf.linalg.matmul(y, y) / 1e3
    return x + tf.cast(tf.reduce_sum(y) * 0, tf.int64)
"""


def script(function):
    return LOOP.format(function=function).replace("seen = []", SLOW + "seen = []")


@pytest.mark.tensorflow
def test_a_real_training_that_does_not_wait_is_read(watch):
    run = watch(script("slow"), reads_alone=True, seconds=1.0)
    reading = run.recording.read_alone
    assert reading is not None and run.recording.script_exit.kind == "stopped"
    assert reading.elements > 50
    assert reading.ns / reading.elements < 15 * MS, "faster than the steps of 20 ms"
    assert "reading" in {progress.phase for progress in run.progress}


@pytest.mark.tensorflow
@pytest.mark.long
def test_short_epochs_are_read_again(watch):
    """What is left of an epoch of 64 batches takes less than 0.1 s."""
    epochs = script("slow").replace("for x in ds:", "for x in (x for epoch in range(10_000) for x in ds):")
    run = watch(epochs.replace("1_000_000", "512"), reads_alone=True, seconds=1.0)
    reading = run.recording.read_alone
    assert reading is not None and reading.ns > 300 * MS and reading.elements > 64
    assert len(run.recording.consumers) == 1 and run.recording.script_exit.kind == "stopped"


@pytest.mark.tensorflow
@pytest.mark.long
def test_python_functions_are_not_called_for_it(watch):
    run = watch(script("lambda x: tf.py_function(lambda y: y, [x], tf.int64)"), reads_alone=True, seconds=1.0)
    assert run.recording.read_alone is None and run.recording.script_exit.kind == "stopped"
