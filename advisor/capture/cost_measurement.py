"""Measures the costs of this machine that predictions rest on, in about four seconds.

In: TensorFlow.  Out: `Calibration`. Runs in a process of its own (`machine_child`), so that neither the hooks of a capture nor
the threads, settings and memory of a user's script are measured with it.

The method is that of the built-in values (`advisor.host.calibration.prediction`, benchmarks/hand_over.py): cached elements for
`next`, a map on one thread and on two for the hand-over, a batch of elements from memory for the copies, functions with one op
and with many for the start of an op. Each cost is measured in short turns, of which the fastest counts: other processes can only
make a turn slower, and the result is used for months.
"""

from __future__ import annotations

import os
import tempfile
import threading
import time
from collections.abc import Callable
from typing import Any

from advisor.capture.window.usage import Snapshot, usage_between
from advisor.host.calibration.capture import (
    COST_BATCH,
    COST_BUFFERS,
    COST_CHUNK_BYTES,
    COST_COMPONENT_BYTES,
    COST_COMPONENTS,
    COST_COPIED_BATCH,
    COST_IMAGE_BYTES,
    COST_MANY_BYTES,
    COST_OPS,
    COST_PRODUCTS,
    COST_RECORD_BYTES,
    COST_RECORDS,
    COST_TURN_S,
    COST_TURNS,
    COST_WAKEUPS,
)
from advisor.host.calibration.prediction import EFFICIENCY
from advisor.host.calibration.stored import busy_calibration, plausible, today
from advisor.host.calibration.window import BUSY_CORES
from advisor.host.machine import usable_cores
from advisor.model.calibration import Calibration


def measure_costs(tf: Any) -> Calibration:  # noqa: ANN401
    """Measure all costs.

    Args:
        tf: The TensorFlow module, in eager mode.
    """
    start = Snapshot.take()
    here_ns, ahead_ns = _next_ns(tf, 1, False), _next_ns(tf, 1, True)
    calibration = Calibration(
        next_ns=ahead_ns,
        next_here_ns=here_ns,
        component_ns=(_next_ns(tf, COST_COMPONENTS.value, False) - here_ns) / (COST_COMPONENTS.value - 1),
        handoff_ns=_handoff_ns(tf) if usable_cores() >= 2 else None,
        copied_bytes_per_ns=_copied_bytes_per_ns(tf),
        small_read_ns=_small_read_ns(tf),
        op_start_ns=_op_start_ns(tf),
        wakeup_ns=_wakeup_ns(),
        page_cache_bytes_per_ns=_page_cache_bytes_per_ns(),
        measured_on=today(),
    )
    busy = cores_of_others(start)
    return busy_calibration(busy) if busy > BUSY_CORES.value else plausible(calibration)


def cores_of_others(start: Snapshot) -> float:
    """Return the number of cores that other processes have used since `start`.

    It is 0 if this process may use only a part of the machine, because others need not have used the same part.
    """
    usage = usage_between(start, Snapshot.take(), None)
    installed = os.cpu_count() or 1
    if usage.host_cpu_busy_share is None or usage.wall_ns <= 0 or usable_cores() < installed:
        return 0.0
    return max(0.0, usage.host_cpu_busy_share * installed - (usage.cpu_ns + usage.children_cpu_ns) / usage.wall_ns)


def _next_ns(tf: Any, components: int, is_ahead: bool) -> float:  # noqa: ANN401
    """Time of a Python `next` on cached elements."""
    element = tuple(tf.zeros(COST_COMPONENT_BYTES.value, tf.uint8) for _ in range(components))
    dataset = tf.data.Dataset.from_tensors(element).cache().repeat()
    return _turns_ns(dataset.prefetch(2) if is_ahead else dataset)


def _handoff_ns(tf: Any) -> float:  # noqa: ANN401
    """Time per element that a second thread loses, beyond the share of a thread's time that is lost anyway."""
    losses = []
    for count in COST_PRODUCTS.value:
        one, two = (
            _turns_ns(
                tf.data.Dataset.range(1 << 40)
                .map(matmuls(tf, count), num_parallel_calls=threads)
                .batch(COST_BATCH.value)
                .with_options(_as_written(tf))
            )
            / COST_BATCH.value
            for threads in (None, 2)
        )
        losses.append(two - one / 2 / EFFICIENCY.value[1])
    return sum(losses) / len(losses)


def matmuls(tf: Any, count: int) -> Callable[[Any], Any]:  # noqa: ANN401
    """Return a function of a number that computes `count` products of small matrices in sequence."""

    def function(x: Any) -> Any:  # noqa: ANN401
        y = tf.cast(x % 7, tf.float32) + tf.zeros((64, 64))
        for _ in range(count):
            y = tf.matmul(y, y) * 1e-3
        return tf.reduce_sum(y)

    return function


def _copied_bytes_per_ns(tf: Any) -> float:  # noqa: ANN401
    """Rate at which a batch copies elements that are in memory but in no processor cache."""

    def batch_ns(element_bytes: int, count: int) -> float:
        cached = tf.data.Dataset.from_tensor_slices(tf.zeros((count, element_bytes), tf.uint8)).cache()
        for _ in cached:  # fill it
            pass
        return _turns_ns(cached.repeat().batch(COST_COPIED_BATCH.value))

    count = COST_MANY_BYTES.value // COST_IMAGE_BYTES.value
    return (
        COST_COPIED_BATCH.value
        * COST_IMAGE_BYTES.value
        / max(1.0, batch_ns(COST_IMAGE_BYTES.value, count) - batch_ns(1, count))
    )


def _small_read_ns(tf: Any) -> float:  # noqa: ANN401
    """Time of each of the reads that a small buffer adds, for records in the page cache.

    Batches, because tf.data adds a prefetch: reading a single record would be hidden by `next`.
    """
    with tempfile.TemporaryDirectory() as folder:
        path = f"{folder}/records"
        with tf.io.TFRecordWriter(path) as writer:
            for _ in range(COST_RECORDS.value):
                writer.write(bytes(COST_RECORD_BYTES.value))
        small, large = (
            _turns_ns(tf.data.TFRecordDataset(path, buffer_size=size).repeat().batch(COST_COPIED_BATCH.value))
            / COST_COPIED_BATCH.value
            for size in COST_BUFFERS.value
        )
    reads_small, reads_large = (COST_RECORD_BYTES.value / size for size in COST_BUFFERS.value)
    return (small - large) / (reads_small - reads_large)


def _op_start_ns(tf: Any) -> float:  # noqa: ANN401
    """Time of each further op in the function of a map on one thread; on a text of a few characters, an op does little but start.

    Ops on texts, as for the built-in value: those that write their result over their input start sooner than most do.
    """

    def element_ns(ops: int) -> float:
        def function(x: Any) -> Any:  # noqa: ANN401
            text = tf.strings.as_string(x)
            for number in range(ops):
                text = tf.strings.upper(text) if number % 2 else tf.strings.lower(text)
            return text

        dataset = tf.data.Dataset.range(1 << 40).map(function).batch(COST_COPIED_BATCH.value)
        return _turns_ns(dataset.with_options(_as_written(tf))) / COST_COPIED_BATCH.value

    return (element_ns(COST_OPS.value) - element_ns(1)) / (COST_OPS.value - 1)


def _as_written(tf: Any) -> Any:  # noqa: ANN401
    """Options with which tf.data neither fuses a map with its batch nor makes it parallel."""
    options = tf.data.Options()
    options.experimental_optimization.map_and_batch_fusion = False
    options.experimental_optimization.map_parallelization = False
    return options


def _turns_ns(dataset: Any) -> float:  # noqa: ANN401
    """Mean time of one `next` in the fastest turn, in ns."""
    iterator = iter(dataset)
    turns = []
    for _ in range(1 + COST_TURNS.value):  # the first one traces, fills buffers and lets AUTOTUNE settle
        count, start = 0, time.perf_counter()
        while (elapsed := time.perf_counter() - start) < COST_TURN_S.value:
            next(iterator)
            count += 1
        turns.append(elapsed / count * 1e9)
    return min(turns[1:])


def _wakeup_ns() -> float:
    """Median time from a signal in one Python thread to the reaction of another that was asleep."""
    wake, awake = threading.Semaphore(0), threading.Semaphore(0)

    def answer() -> None:
        for _ in range(COST_WAKEUPS.value):
            wake.acquire()
            awake.release()

    thread = threading.Thread(target=answer, daemon=True)
    thread.start()
    times = []
    for _ in range(COST_WAKEUPS.value):
        start = time.perf_counter_ns()
        wake.release()
        awake.acquire()
        times.append((time.perf_counter_ns() - start) / 2)  # there and back
    thread.join()
    return sorted(times)[len(times) // 2]


def _page_cache_bytes_per_ns() -> float:
    """Rate of reading a file that was just written."""
    with tempfile.TemporaryFile() as file:
        for _ in range(COST_MANY_BYTES.value // COST_CHUNK_BYTES.value):
            file.write(bytes(COST_CHUNK_BYTES.value))
        file.flush()
        buffer = bytearray(COST_CHUNK_BYTES.value)
        times = []
        for _ in range(COST_TURNS.value):
            start = time.perf_counter_ns()
            for offset in range(0, COST_MANY_BYTES.value, COST_CHUNK_BYTES.value):
                os.preadv(file.fileno(), [buffer], offset)
            times.append(time.perf_counter_ns() - start)
    return COST_MANY_BYTES.value / min(times)
