"""The last buffer of running iterators, as tf.data's own model knows it."""

from __future__ import annotations

import time
import weakref
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.instrument.iterator_model import LastBuffer, last_buffer
from advisor.capture.window import buffer_watch
from advisor.capture.window.buffer_watch import BufferWatch
from advisor.graph.analysis import analyse
from advisor.host.calibration.window import BUFFER_LOOK_NS
from advisor.profile import read_trace


def model(*names: str, elements: int = 3, capacity: float = 4.0) -> SimpleNamespace:
    """A chain of nodes from the consumer to the source; the prefetch has a buffer."""
    nodes = {}
    for key, name in enumerate(names, 1):
        has_buffer = name == "Prefetch"
        nodes[key] = SimpleNamespace(
            name=name,
            inputs=[key + 1] if key < len(names) else [],
            num_elements=7,
            buffered_elements=elements if has_buffer else 0,
            parameters=[SimpleNamespace(name="buffer_size", value=capacity)] if has_buffer else [],
        )
    return SimpleNamespace(output=1, nodes=nodes)


def test_the_buffer_nearest_to_the_consumer_counts_and_work_behind_it_is_seen():
    for names, is_last in (
        (("Root", "Prefetch", "BatchV2"), True),
        (("Root", "FiniteTake", "ForeverRepeat", "Prefetch", "BatchV2"), True),
        (("Root", "Map", "Prefetch", "BatchV2"), False),
    ):
        assert last_buffer(model(*names)) == LastBuffer("Prefetch", 3.0, 4.0, is_last, 7)
    assert last_buffer(model("Root", "BatchV2", "Range")) is None
    assert last_buffer(model("Root", "Prefetch", capacity=0.0)) is None, "AUTOTUNE has not begun"


@pytest.fixture
def consumer():
    return Consumers().at("keras.fit", None, None)


def reads(monkeypatch, *buffers):
    left = iter(buffers)
    monkeypatch.setattr(buffer_watch, "buffer_now", lambda consumer: next(left))


def test_readings_before_the_first_element_do_not_count(monkeypatch, consumer):
    reads(monkeypatch, LastBuffer("Prefetch", 0, 4, True, 0), None, LastBuffer("Prefetch", 4, 4, True, 1))
    watch = BufferWatch()
    assert watch.levels() is None and watch.is_due(0)
    for now in (0, 1, 2):
        watch.read(consumer, now)
    levels = watch.levels()
    assert levels is not None and (levels.time_ns, levels.elements, levels.capacity) == ((2,), (4,), (4,))
    assert not watch.is_due(2 + BUFFER_LOOK_NS.value - 1) and watch.is_due(2 + BUFFER_LOOK_NS.value)


def test_another_consumer_replaces_the_readings(monkeypatch, consumer):
    other = Consumers().at("for", None, None)
    buffer = LastBuffer("Prefetch", 4, 4, True, 1)
    reads(monkeypatch, buffer, buffer, buffer)
    watch = BufferWatch()
    watch.read(consumer, 0)
    watch.read(other, 1)
    other.is_loop = True  # its steps turned out to be invisible
    watch.read(other, 2)
    levels = watch.levels()
    assert levels is not None and (levels.time_ns, levels.is_at_steps) == ((2,), False)


@pytest.mark.tensorflow
@pytest.mark.parametrize(("element_s", "step_s", "column"), [(0.001, 0.03, "full"), (0.04, 0.01, "empty")])
def test_a_fast_pipeline_keeps_its_buffer_full_and_a_slow_one_empty(element_s, step_s, column):
    import tensorflow as tf

    def slow(number):
        return tf.py_function(lambda value: (time.sleep(element_s), value)[1], [number], tf.int64)

    iterator = iter(tf.data.Dataset.range(1000).map(slow).prefetch(2))
    consumer, watch = Consumers().at("next", None, None), BufferWatch()
    consumer.iterator = weakref.ref(iterator)
    for step in range(16):
        if step > 4:
            watch.read(consumer, step)
        next(iterator)
        time.sleep(step_s)
    levels = watch.levels()
    assert levels is not None and levels.transformation == "Prefetch" and set(levels.capacity) == {2}
    full = sum(elements == 2 for elements in levels.elements)
    counts = {"full": full, "empty": levels.elements.count(0)}
    assert counts[column] >= 10 and len(levels.elements) == 11


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_verdict_on_long_keras_steps_tells_how_full_the_buffer_was(watch):
    run = watch(
        """
        import keras, tensorflow as tf

        class Wait(keras.layers.Layer):
            def call(self, rows):
                with tf.control_dependencies([tf.py_function(lambda: __import__("time").sleep(0.25), [], [])]):
                    return tf.identity(rows)

        dataset = tf.data.Dataset.from_tensors((tf.ones([8, 4]), tf.ones([8, 1]))).repeat().prefetch(2)
        model = keras.Sequential([keras.Input((4,)), Wait(), keras.layers.Dense(1)])
        model.compile("sgd", "mse", jit_compile=False)
        model.fit(dataset, steps_per_epoch=1000, verbose=0)
        """,
        warmup=3,
        steps=5,
    )
    (levels,) = run.recording.buffers
    assert levels.consumer_id == run.main.id and levels.is_at_steps
    verdict = analyse(read_trace(run.folder), run.recording, "train.py").verdict
    assert verdict.buffer is not None and verdict.buffer.full == verdict.buffer.readings >= 3
    assert f"The prefetch buffer was full at {verdict.buffer.full} of {verdict.buffer.full} steps." in verdict.sentence
