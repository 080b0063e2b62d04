"""Reading the pipeline without training, after the window: what is read, what is counted, and when nothing is."""

from __future__ import annotations

import contextlib
import math
import threading
import time
from itertools import pairwise
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.window import alone_reading
from advisor.capture.window.alone_reading import (
    Arrivals,
    buffered_elements,
    counted,
    read_in_thread,
    shuffle_change,
    stays_inside,
    waits,
)
from advisor.host.calibration.constant import Constant
from advisor.model.calls import Call, FunctionFacts
from advisor.model.window_readings import AloneReading, BufferLevels

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


@pytest.mark.parametrize(("nodes", "buffered"), [({}, None), ({1: node("Root", 0), 2: node("Prefetch", 0, 5)}, 0)])
def test_at_the_start_of_an_epoch_nothing_is_ready(nodes, buffered):
    assert buffered_elements(SimpleNamespace(output=1, nodes=nodes)) == buffered


def test_elements_that_were_ready_are_left_out():
    """Three come at once, from the buffer; then each takes 20 ms."""
    arrivals = [0, 1, 2, 3, *(20 * MS * count for count in range(1, 21))]
    assert counted(Arrivals(arrivals), 3) == AloneReading(19, 380 * MS)


def test_the_cpu_time_is_that_of_the_counted_elements():
    """Elements that were ready cost nothing; the others take 20 ms and two cores, which decode the next ones."""
    moments = [0, 1, 2, 3, *(20 * MS * count for count in range(1, 21))]
    cpu = [0, 0, 0, 0, *(40 * MS * count for count in range(1, 21))]
    assert counted(Arrivals(moments, cpu_ns=cpu), 3) == AloneReading(19, 380 * MS, 760 * MS)
    ends = [(4, 21 * MS), (12, 181 * MS), (20, 341 * MS)]
    assert counted(Arrivals(moments, ends, cpu), 3) == AloneReading(16, 320 * MS, 16 * 40 * MS)


def test_the_thread_reads_the_clock_of_the_process():
    def computing():
        for _ in range(30):
            began = time.process_time_ns()
            while time.process_time_ns() - began < 20 * MS:
                pass
            yield 0

    arrivals = read_in_thread(iter(computing()), (), 0, contextlib.nullcontext)
    assert len(arrivals.cpu_ns) == len(arrivals.elements_ns)
    read = len(arrivals.cpu_ns) - 1  # fewer than 30 where other processes have the cores
    assert read >= 2 and arrivals.cpu_ns[-1] - arrivals.cpu_ns[0] >= (20 * read - 10) * MS


def test_too_few_elements_tell_nothing():
    arrivals = [0, 1, 2, 3, *(100 * MS * count for count in range(1, 6))]
    assert counted(Arrivals(arrivals), 3) is None
    assert counted(Arrivals(arrivals), 2) == AloneReading(5, 500 * MS - 3)


def test_too_short_a_time_tells_nothing():
    assert counted(Arrivals([2 * MS * count for count in range(100)]), 3) is None


def test_if_the_data_end_whole_epochs_count():
    """The rest of an epoch comes from a shuffle buffer; two epochs of ten elements follow, and the beginning of a third."""
    elements = [0, *(MS * count for count in range(50)), *(600 * MS + 40 * MS * count for count in range(25))]
    ends = [(50, 100 * MS), (60, 550 * MS), (70, 1_000 * MS)]
    assert counted(Arrivals(elements, ends), 3) == AloneReading(20, 900 * MS)
    assert counted(Arrivals(elements, ends[:1]), 3) is None, "no whole epoch"


def shuffled(*, batches=100, taken=3_200, buffered=1_000, epoch=5):
    """A model of batches of 32 behind a shuffle; `epoch`: the key of its iterator."""
    nodes = {
        1: node("Root", batches),
        epoch: node("ShuffleV3", taken, buffered),
        6: node("Prefetch", batches, 2),
        7: node("MemoryCacheImpl", taken, 5_000),
    }
    return SimpleNamespace(output=1, nodes=nodes)


def test_elements_from_a_shuffle_buffer_are_counted_in_elements_of_the_whole_pipeline():
    before = shuffled(buffered=1_024)
    assert shuffle_change(before, before) == 0
    assert shuffle_change(before, shuffled(batches=110, taken=3_520, buffered=704)) == 10
    assert shuffle_change(before, shuffled(buffered=1_344)) == 10
    assert shuffle_change(before, shuffled(batches=200, taken=640, buffered=0, epoch=9)) == 32, (
        "the buffer of a past epoch"
    )
    assert shuffle_change(before, None) == math.inf
    assert buffered_elements(before) == 2, "a cache stays as it is"


def endless(seconds):
    while True:
        time.sleep(seconds)
        yield 0


def test_reading_ends_after_a_second():
    began = time.monotonic()
    arrivals = read_in_thread(endless(0.01), (), 2, contextlib.nullcontext)
    assert 0.9 < time.monotonic() - began < 3 and not arrivals.ends_ns
    assert len(arrivals.elements_ns) > 20


def test_an_element_that_never_comes_does_not_hold_the_script(monkeypatch):
    monkeypatch.setattr(alone_reading, "READ_ALONE_MAX_S", Constant(0.2, "s"))
    released = threading.Event()
    began = time.monotonic()
    arrivals = read_in_thread(iter(lambda: released.wait(30), True), (), 2, contextlib.nullcontext)
    assert time.monotonic() - began < 10
    assert len(arrivals.elements_ns) == 1 and counted(arrivals, 0) is None
    released.set()


def test_an_error_in_the_data_ends_the_reading():
    def failing():
        yield 0
        raise ValueError("bad record")

    assert len(read_in_thread(failing(), (), 0, contextlib.nullcontext).elements_ns) == 2


def test_data_that_end_are_read_again_and_again():
    arrivals = read_in_thread(iter([0] * 3), [0] * 5, 0, contextlib.nullcontext)
    numbers = [count for count, _ in arrivals.ends_ns]
    assert numbers[0] == 3 and {second - first for first, second in pairwise(numbers)} == {5}


def test_without_more_data_reading_ends():
    arrivals = read_in_thread(iter([0] * 3), (), 0, contextlib.nullcontext)
    assert [count for count, _ in arrivals.ends_ns] == [3, 3] and counted(arrivals, 0) is None


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
    rare = consumer_of(wait_ms=0.5)
    rare.waits[::5] = type(rare.waits)("q", [9 * MS] * 20)
    assert not waits(rare, ()), "one step in five waits, as at the start of an epoch"
    assert not waits(consumer_of("keras.fit"), ())
    assert waits(consumer_of("keras.fit"), levels_of(0, 0, 1))
    assert not waits(consumer_of("keras.fit"), levels_of(0, 2, 2))
    assert not waits(consumer_of(wait_ms=0.5), levels_of(0, 0, 0)), "the wait itself was seen"


def calls(*, method="range", function=None):
    return Call("s0", method, None), Call("m1", "map", None, inputs=("s0",), function=function)


TRACED = FunctionFacts("scale", None, is_stateful=False, stateful_ops=())
QUEUE = FunctionFacts("take", None, is_stateful=True, stateful_ops=("QueueDequeueV2",))
RANDOM = FunctionFacts("crop", None, is_stateful=True, random_ops=("RandomUniform",), stateful_ops=("RandomUniform",))
READING = FunctionFacts("read", None, is_stateful=True, stateful_ops=("ReadFile", "LookupTableFindV2"))
NESTED = FunctionFacts("lines", None, is_stateful=True, stateful_ops=("TextLineDataset",))
SERVED = FunctionFacts("lines", None, is_stateful=True, stateful_ops=("DataServiceDatasetV4",))
PYTHON = FunctionFacts("load", None, is_stateful=True, python_ops=("EagerPyFunc",))
UNTRACED = FunctionFacts("load", None, is_stateful=False, stateful_ops=(), is_traced=False)


@pytest.mark.parametrize(
    ("recorded", "stays"),
    [
        (calls(function=TRACED), True),
        (calls(function=RANDOM), True),
        (calls(function=READING), True),
        (calls(function=NESTED), True),
        (calls(function=SERVED), False),
        (calls(function=QUEUE), False),
        (calls(function=PYTHON), False),
        (calls(function=UNTRACED), False),
        (calls(method="from_generator", function=TRACED), False),
        (calls(method="from_dataset_id", function=TRACED), False),
        (calls(method="SqlDataset", function=TRACED), False),
        ((Call("m1", "cache", None, arguments={"filename": ""}),), True),
        ((Call("m1", "cache", None, arguments={"filename": "/data/cache"}),), False),
        ((Call("m1", "snapshot", None, arguments={"path": "/data/snapshot"}),), False),
        ((Call("s0", "range", None), Call("m1", "map", None, inputs=("s0",), unrecorded=("KafkaDataset",))), False),
        ((Call("m1", "TFRecordDataset", None, unrecorded=("_TensorSliceDataset",)),), True),
        ((), False),
        ((*calls(function=TRACED), Call("g2", "from_generator", None)), True),
        ((*calls(function=TRACED), Call("g2", "from_generator", None, nested_in="m1")), False),
    ],
    ids=[
        *(
            "traced",
            "random",
            "files",
            "nested",
            "nested service",
            "queue",
            "python",
            "not traced",
            "generator",
            "service",
        ),
        *(
            "database",
            "cache in memory",
            "cache in a file",
            "snapshot",
            "another package",
            "names of files",
            "unknown",
            "another dataset's",
            "inside a function",
        ),
    ],
)
def test_only_transformations_of_tensorflow_are_read_on(recorded, stays):
    assert stays_inside(consumer_of(), recorded) is stays


LOOP = """
import time
import tensorflow as tf
seen = []
ds = tf.data.Dataset.range(1_000_000).map({function}).batch(8).prefetch(4)
for x in ds:
    time.sleep(0.06)
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
    assert reading.ns / reading.elements < 45 * MS, "faster than the steps of 60 ms"
    assert "reading" in {progress.phase for progress in run.progress}


@pytest.mark.tensorflow
@pytest.mark.long
def test_short_epochs_are_read_again(watch):
    """What is left of an epoch of 64 batches takes less than 0.1 s."""
    epochs = script("slow").replace("for x in ds:", "for x in (x for epoch in range(10_000) for x in ds):")
    run = watch(epochs.replace("1_000_000", "512"), reads_alone=True, seconds=1.0)
    reading = run.recording.read_alone
    assert reading is not None, run.recording.warnings
    assert reading.ns > 300 * MS and reading.elements > 64
    assert len(run.recording.consumers) == 1 and run.recording.script_exit.kind == "stopped"


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_shuffle_buffer_that_is_emptied_tells_nothing(watch):
    """All elements are in the buffer, so they come at memory speed; there are too many for an end within three seconds."""
    text = (
        script("slow")
        .replace("range(1_000_000)", "range(200_000)")
        .replace(".map(slow)", ".shuffle(200_000).map(slow)")
    )
    run = watch(text, reads_alone=True, seconds=1.0)
    assert run.recording.read_alone is None and run.recording.script_exit.kind == "stopped"


@pytest.mark.tensorflow
@pytest.mark.long
def test_python_functions_are_not_called_for_it(watch):
    run = watch(script("lambda x: tf.py_function(lambda y: y, [x], tf.int64)"), reads_alone=True, seconds=1.0)
    assert run.recording.read_alone is None and run.recording.script_exit.kind == "stopped"
