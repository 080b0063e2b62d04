"""What the profiler adds to the memory of a process is bounded, given back, and not counted as the script's."""

from __future__ import annotations

import subprocess
import sys

import pytest

from advisor.capture.window.process_memory import ProcessMemory, peak_rss_bytes, rss_bytes

GB = 1 << 30


class Process:
    """A process whose memory is set by the test."""

    def __init__(self):
        self.rss = self.peak = GB
        self.returned = []
        self.free_bytes = 0
        self.memory = ProcessMemory(lambda: self.rss, lambda: self.peak, self.give_back, lambda: 2 * GB)

    def grow(self, size):
        self.rss += size
        self.peak = max(self.peak, self.rss)

    def give_back(self):
        self.returned.append(self.free_bytes)
        self.rss -= self.free_bytes
        self.free_bytes = 0


@pytest.fixture
def process():
    return Process()


def test_without_a_session_the_peak_is_that_of_the_system(process):
    process.grow(3 * GB)
    process.rss = GB
    process.memory.look()
    assert process.memory.peak_bytes == 4 * GB and process.returned == []


def test_what_a_session_adds_is_given_back_and_not_part_of_the_peak(process):
    process.grow(GB)
    process.memory.before_profile()
    process.grow(GB + GB // 2)
    process.memory.look()
    assert process.returned == []  # less than the room
    process.free_bytes = GB + GB // 2
    process.memory.after_profile()
    assert process.returned == [GB + GB // 2]
    assert process.memory.peak_bytes == 2 * GB
    process.grow(GB)
    process.memory.look()
    process.rss = GB
    assert process.memory.peak_bytes == 3 * GB


def test_what_the_script_keeps_after_a_session_is_part_of_the_peak(process):
    process.memory.before_profile()
    process.grow(5 * GB)
    process.free_bytes = GB
    process.memory.after_profile()
    assert process.memory.peak_bytes == 5 * GB


def test_a_session_that_grows_by_more_than_the_room_gives_memory_back_before_its_end(process):
    process.memory.before_profile()
    for _ in range(6):
        process.grow(GB)
        process.free_bytes += GB
        process.memory.look()
    assert process.returned == [3 * GB, 3 * GB] and process.rss == GB


def test_memory_that_is_in_use_is_not_asked_for_again_and_again(process):
    process.memory.before_profile()
    for _ in range(8):
        process.grow(GB // 2)
        process.memory.look()
    assert len(process.returned) == 1  # a cache that fills up, say


def test_a_session_that_hardly_grows_costs_nothing(process):
    process.memory.before_profile()
    process.grow(60 << 20)
    process.memory.after_profile()
    assert process.returned == []


def test_a_process_whose_memory_cannot_be_read_is_left_alone():
    memory = ProcessMemory(lambda: None, lambda: 7, lambda: pytest.fail("nothing is known"), lambda: 0)
    memory.before_profile()
    memory.look()
    memory.after_profile()
    assert memory.peak_bytes == 7


def test_the_figures_of_this_process():
    block = bytearray(200 << 20)
    held = rss_bytes()
    assert held >= len(block) if sys.platform == "linux" else held is None
    assert peak_rss_bytes() >= len(block)


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere the system does not tell them apart")
def test_the_memory_of_the_process_that_started_this_one_does_not_count():
    code = "from advisor.capture.window.process_memory import peak_rss_bytes; print(peak_rss_bytes())"
    block = bytearray(b"1") * (400 << 20)
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert int(done.stdout) < len(block) // 2


@pytest.mark.tensorflow
def test_a_real_session_leaves_no_memory_behind(tmp_path):
    """With glibc 2.36 and nothing given back, the process is 1.5 GB larger afterwards."""
    script = (
        "import sys, tensorflow as tf\n"
        "from advisor.capture.window.process_memory import rss_bytes\n"
        "from advisor.capture.window.profiler import Profiler\n"
        "def slow(x):\n"
        "    for _ in range(6):\n"
        "        x = tf.linalg.matmul(x, x) / tf.reduce_max(x)\n"
        "    return tf.reduce_mean(x)\n"
        "data = tf.data.Dataset.from_tensor_slices(tf.ones([64, 200, 200])).repeat().map(slow)\n"
        "profiler = Profiler(tf)\n"
        "for step, _ in enumerate(data):\n"
        "    if step == 200:\n"
        "        before = rss_bytes()\n"
        "        assert profiler.start(sys.argv[1])\n"
        "    if step == 2200:\n"
        "        profiler.stop()\n"
        "        break\n"
        "print((rss_bytes() - before) >> 20, (profiler.memory.peak_bytes - before) >> 20)\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "profile")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=240)
    assert done.returncode == 0, done.stderr
    left, peak = map(int, done.stdout.split())
    assert left < 400 and peak < 400, "MiB"
    assert list((tmp_path / "profile").rglob("*.xplane.pb"))
