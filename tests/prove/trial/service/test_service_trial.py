"""Recorded pipelines through real workers: what is measured, and what workers refuse."""

from __future__ import annotations

import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Code, Edit, InsertAfter, SetArgument
from advisor.model.offload_result import DYNAMIC, FILES, OFF, PYTHON, ServiceMeasurement
from advisor.offload.files import server_text
from advisor.prove.trial.service.service_messages import MeasureService
from advisor.prove.trial.service.service_processes import ServiceProcesses
from advisor.prove.trial.service.service_trial import ServiceTrial
from tests.recorded import Recorded

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]


@pytest.fixture(autouse=True)
def short(monkeypatch: pytest.MonkeyPatch) -> None:
    """Shorter stretches: these tests do not look at the rates."""
    from advisor.host.calibration import offload
    from advisor.host.calibration.constant import Constant
    from advisor.prove.trial.service import service_trial

    for name, value in (("SERVICE_WARMUP_S", 0.3), ("SERVICE_PART_S", 0.3)):
        assert isinstance(getattr(offload, name), Constant)
        monkeypatch.setattr(service_trial, name, Constant(value, "s"))


def measured(
    recorded: Recorded, dataset: Any, folder: Path, policy: str = DYNAMIC, edits: tuple[Edit, ...] = ()
) -> ServiceMeasurement:
    after = call_id_of(dataset)
    assert after is not None
    recorded.recorder.is_open = False
    request = MeasureService(after, [], policy, server_text())
    return ServiceTrial(recorded.recorder, request, edits, folder, lambda phase, done, of: None).measure()


def test_a_pipeline_that_moves(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    table = tf.lookup.StaticHashTable(
        tf.lookup.KeyValueTensorInitializer(tf.range(8, dtype=tf.int64), tf.range(8, dtype=tf.int64) * 10), -1
    )
    dataset = tf.data.Dataset.range(200).shuffle(50).map(lambda x: (x, table.lookup(x % 8))).batch(16).repeat()
    measurement = measured(recorded, dataset, tmp_path)
    assert measurement.objection is None
    assert measurement.is_same is True, measurement.comparison
    assert (measurement.local_elements, measurement.service_elements, measurement.compared_workers) == (200, 200, 2)
    assert [rate.compression for rate in measurement.rates] == ["AUTO", "none"]
    assert all(rate.elements_per_core_s > 0 and rate.client_cpu_s > 0 for rate in measurement.rates)
    assert measurement.element_bytes == pytest.approx(16 * 16, rel=0.1)
    assert measurement.local_cpu_s > 0 and measurement.end_delay_s is not None


def test_python_code_is_refused_by_worker_processes(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(40).map(lambda x: tf.numpy_function(lambda y: y + 1, [x], tf.int64)).batch(4)
    measurement = measured(recorded, dataset, tmp_path)
    assert measurement.objection is not None
    assert measurement.objection.cause == PYTHON
    assert not measurement.rates


@pytest.mark.slow
def test_a_take_counts_on_every_worker(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    measurement = measured(recorded, tf.data.Dataset.range(100).take(5).batch(1), tmp_path)
    assert measurement.is_same is False
    assert "instead of 5" in measurement.comparison


@pytest.mark.slow
def test_without_sharding_every_worker_sends_everything(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    measurement = measured(recorded, tf.data.Dataset.range(60).batch(4), tmp_path, OFF)
    assert measurement.is_same is True, measurement.comparison
    assert (measurement.local_elements, measurement.service_elements) == (60, 120)


@pytest.mark.slow
def test_a_sequential_interleave_behind_a_shuffle_reads_everything_on_every_worker(
    recorded: Recorded, tmp_path: Path
) -> None:
    """TensorFlow 2.21; the repair is to call it in parallel."""
    import tensorflow as tf

    def inner(i: Any) -> Any:
        return tf.data.Dataset.range(20).map(lambda j: i * 100 + j)

    dataset = tf.data.Dataset.range(4).shuffle(4).interleave(inner, cycle_length=2).batch(4)
    (tmp_path / "before").mkdir()
    measurement = measured(recorded, dataset, tmp_path / "before")
    assert measurement.is_same is False and measurement.service_elements == 160
    parallel = SetArgument(recorded.call("interleave").id, "num_parallel_calls", Code("tf.data.AUTOTUNE"))
    (tmp_path / "after").mkdir()
    measurement = measured(recorded, dataset, tmp_path / "after", edits=(parallel,))
    assert measurement.is_same is True, measurement.comparison


@pytest.mark.parametrize("method", ["padded_batch", "bucket_by_sequence_length"])
def test_elements_are_compared_before_they_are_padded(method: str, recorded: Recorded, tmp_path: Path) -> None:
    """How much an element is padded depends on the others of its batch."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(200).map(lambda x: tf.fill([x % 7 + 1], x))
    if method == "padded_batch":
        dataset = dataset.padded_batch(16)
    else:
        dataset = dataset.bucket_by_sequence_length(lambda x: tf.shape(x)[0], [3, 5], [16, 16, 16])
    measurement = measured(recorded, dataset, tmp_path)
    assert (measurement.objection, measurement.is_same, measurement.local_elements) == (None, True, 200), (
        measurement.comparison
    )


def test_what_is_made_of_padded_batches_is_not_compared(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(200).map(lambda x: tf.fill([x % 7 + 1], x)).padded_batch(16).map(lambda x: x * 2)
    measurement = measured(recorded, dataset, tmp_path)
    assert (measurement.objection, measurement.is_same) == (None, None)
    assert "padded_batch" in measurement.comparison and measurement.comparison.endswith(
        "the elements were not compared."
    )


def test_batches_of_endless_data_are_never_incomplete(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(200).repeat().map(lambda x: x * 2).batch(16, drop_remainder=True)
    measurement = measured(recorded, dataset, tmp_path)
    assert (measurement.objection, measurement.is_same, measurement.local_elements) == (None, True, 200), (
        measurement.comparison
    )


@pytest.mark.slow
def test_files_that_a_worker_does_not_have_are_refused_at_the_reading_call(
    recorded: Recorded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The worker runs in a mount namespace of its own, in which the folder of the data is empty."""
    import tensorflow as tf

    data = tmp_path / "data"
    data.mkdir()
    with tf.io.TFRecordWriter(str(data / "a.tfrecord")) as writer:
        for _ in range(8):
            writer.write(b"row")
    hide = f'mount -t tmpfs none "{data}" && exec "{sys.executable}" "$@"'
    isolated = ["unshare", "-r", "-m", "sh", "-c"]
    if subprocess.run([*isolated, f'mount -t tmpfs none "{data}"'], capture_output=True, check=False).returncode:
        pytest.skip("this system allows no mount namespaces")
    python = tmp_path / "python"
    python.write_text(f"#!/bin/sh\nexec {' '.join(isolated)} '{hide}' sh \"$@\"\n")
    python.chmod(0o755)
    monkeypatch.setattr(sys, "executable", str(python))
    dataset = tf.data.TFRecordDataset(str(data / "a.tfrecord")).batch(4).prefetch(1)
    objection = measured(recorded, dataset, tmp_path).objection
    assert objection is not None and (objection.cause, objection.method) == (FILES, "TFRecordDataset")
    assert objection.site == recorded.call("TFRecordDataset").site
    assert f"{data}/a.tfrecord; No such file" in objection.reason


@pytest.mark.slow
def test_two_processes_of_a_training_read_batches_of_one_length_in_each_round(tmp_path: Path) -> None:
    """What is proposed for batches of different lengths (`advisor.offload.repairs`), with two consumers of a real service."""
    import tensorflow as tf

    def lengths_of(dataset: Any, job: str) -> tuple[list[list[int]], list[str]]:
        """The length groups of the batches that each consumer reads, and their errors."""
        grouped = dataset.group_by_window(
            lambda row: tf.cast(tf.shape(row)[0] // 3, tf.int64), lambda _, rows: rows.padded_batch(4), window_size=8
        )
        lengths: list[list[int]] = [[], []]
        errors: list[str] = []

        def read(consumer: int) -> None:
            place = tf.data.experimental.service.distribute(
                "distributed_epoch", processes.address, job_name=job, consumer_index=consumer, num_consumers=2
            )
            try:
                for batch in grouped.apply(place).take(12):
                    lengths[consumer].append(batch.shape[1] // 3)
            except tf.errors.OpError as error:
                errors.append(error.message)

        threads = [threading.Thread(target=read, args=(consumer,), daemon=True) for consumer in (0, 1)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(60.0)
        return lengths, errors

    rows = tf.data.Dataset.range(64).map(lambda x: tf.fill([x % 8 + 1], x))
    with ServiceProcesses(server_text(), tmp_path, lambda: None) as processes:
        processes.start_dispatcher()
        processes.start_worker()
        (first, second), errors = lengths_of(rows.repeat(), "endless")
        assert first == second and len(first) == 12 and set(first) == {0, 1, 2} and not errors
        _, errors = lengths_of(rows, "finite")
        assert any("end of sequence" in error for error in errors)


@pytest.mark.slow
def test_repeated_data_make_whole_batches_on_every_worker(recorded: Recorded, tmp_path: Path) -> None:
    """A `repeat` that moves before `batch(drop_remainder=True)`: one pass is compared with its last batch (`one_pass`)."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(96).map(lambda x: x * 2).batch(8, drop_remainder=True)
    kept = SetArgument(recorded.call("batch").id, "drop_remainder", False)
    measurement = measured(recorded, dataset, tmp_path, edits=(kept,))
    assert (measurement.objection, measurement.is_same, measurement.local_elements) == (None, True, 96), (
        measurement.comparison
    )


def test_elements_that_are_sent_in_batches_are_compared_one_by_one(recorded: Recorded, tmp_path: Path) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(100).map(lambda x: (x, tf.fill([64], x)))
    together = InsertAfter(recorded.call("map").id, "batch", (("", 8),))
    measurement = measured(recorded, dataset, tmp_path, edits=(together,))
    assert (measurement.objection, measurement.is_same) == (None, True), measurement.comparison
    assert (measurement.local_elements, measurement.service_elements) == (100, 100)
    assert measurement.element_bytes == pytest.approx(8 * 65 * 8, rel=0.1)
