"""The peak of a block is that block's, whether the kernel lets its counter be set back or not."""

from __future__ import annotations

import time
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

import pytest

from advisor.prove.trial.peak_memory import PeakMemory

BLOCK_BYTES = 200 << 20


def allocate() -> None:
    block = bytearray(BLOCK_BYTES)
    block[::4096] = b"x" * len(block[::4096])  # touched, so that it is resident
    time.sleep(0.1)


@pytest.fixture
def locked(tmp_path: Path) -> Path:
    """The files of this process, but without the right to set the counter back."""
    (tmp_path / "status").symlink_to("/proc/self/status")
    (tmp_path / "clear_refs").mkdir()  # a folder cannot be written, even by root
    return tmp_path


@pytest.mark.long
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
@pytest.mark.parametrize("is_locked", [False, True], ids=["as the system allows", "counter cannot be set back"])
def test_an_older_peak_does_not_count_and_a_short_one_does(is_locked: bool, locked: Path) -> None:
    process = locked if is_locked else Path("/proc/self")
    allocate()
    with PeakMemory(process) as quiet:
        time.sleep(0.05)
    assert quiet.peak_bytes is not None
    assert quiet.peak_bytes < quiet.start_bytes + BLOCK_BYTES / 2
    with PeakMemory(process) as busy:
        allocate()
    assert busy.peak_bytes is not None
    assert busy.peak_bytes > busy.start_bytes + 0.9 * BLOCK_BYTES


def test_a_system_that_does_not_tell_is_unknown(tmp_path: Path) -> None:
    with PeakMemory(tmp_path) as memory:
        pass
    assert memory.peak_bytes is None
    assert memory.start_bytes == 0


def second_pipeline(earlier: bool) -> tuple[int, int]:
    """By how much a pipeline with a buffer of 16 elements of 8 MiB grows the memory in use, and the process, in MiB."""
    import tensorflow as tf

    made = tf.data.Dataset.range(10**9).map(lambda x: tf.fill([8 << 20], tf.cast(x % 7, tf.uint8))).prefetch(16)

    def run() -> None:
        iterator = iter(made)
        for _ in range(20):
            next(iterator)
            time.sleep(0.02)

    if earlier:
        run()
        time.sleep(0.5)
    with PeakMemory() as memory:
        run()
    assert memory.grown_bytes is not None and memory.peak_bytes is not None
    return memory.grown_bytes >> 20, (memory.peak_bytes - memory.start_bytes) >> 20


@pytest.mark.tensorflow
@pytest.mark.skipif(not Path("/proc/self/status").exists(), reason="Linux alone tells")
def test_memory_that_an_earlier_pipeline_has_released_counts_again() -> None:
    """TensorFlow's allocator keeps it, so that the process itself does not grow."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        grown, of_process = pool.submit(second_pipeline, True).result()
    assert 100 < grown < 300, (grown, of_process)
