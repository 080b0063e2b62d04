"""CPU of real child processes: only what they use between the two instants counts."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from advisor.capture.window.child_cpu import ChildrenCpu
from advisor.capture.window.usage import Snapshot, usage_between

BURNER = """
import sys, time
def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end: pass
for line in sys.stdin:
    burn(float(line))
    print("done", flush=True)
"""
pytestmark = pytest.mark.timed
S = 1e9
SLACK_S = 0.15
"""CPU counters advance in ticks of 10 ms; the interpreter itself takes some."""


class Burner:
    """A child that uses as much CPU as it is told to, when it is told to."""

    def __init__(self, program=BURNER):
        self.process = subprocess.Popen(
            [sys.executable, "-S", "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def burn(self, seconds):
        print(seconds, file=self.process.stdin, flush=True)
        assert self.process.stdout.readline()

    def end(self):
        self.process.stdin.close()
        self.process.wait(10)
        self.process.stdout.close()


@pytest.fixture
def burner():
    burner = Burner()
    yield burner
    if burner.process.poll() is None:
        burner.end()


def used_s(start):
    return usage_between(start, Snapshot.take(start), None).children_cpu_ns / S


def test_a_child_that_lives_on_counts_from_the_start_of_the_window(burner):
    burner.burn(0.6)
    start = Snapshot.take()
    burner.burn(0.3)
    assert used_s(start) == pytest.approx(0.3, abs=SLACK_S)


def test_the_life_of_a_child_before_the_window_does_not_count(burner):
    burner.burn(0.6)
    start = Snapshot.take()
    burner.burn(0.3)
    burner.end()
    assert used_s(start) == pytest.approx(0.3, abs=SLACK_S)


def test_a_child_that_ended_before_the_window_does_not_count(burner):
    burner.burn(0.6)
    burner.end()
    assert used_s(Snapshot.take()) < SLACK_S


def test_a_child_that_begins_and_ends_in_the_window_counts_whole():
    start = Snapshot.take()
    burner = Burner()
    burner.burn(0.5)
    burner.end()
    assert used_s(start) == pytest.approx(0.5, abs=SLACK_S)


def test_a_child_that_was_not_waited_for_counts(burner):
    start = Snapshot.take()
    burner.burn(0.4)
    os.kill(burner.process.pid, signal.SIGKILL)
    os.waitid(os.P_PID, burner.process.pid, os.WEXITED | os.WNOWAIT)
    assert used_s(start) == pytest.approx(0.4, abs=SLACK_S)


CHILD_OF_CHILD = f"""
import subprocess, sys
child = subprocess.Popen([sys.executable, "-S", "-c", {BURNER!r}], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
for line in sys.stdin:
    print(line, end="", file=child.stdin, flush=True)
    print(child.stdout.readline(), end="", flush=True)
    if float(line) == 0: break
"""


def test_children_of_children_count_also_without_their_parent():
    burner = Burner(CHILD_OF_CHILD)
    burner.burn(0.4)
    start = Snapshot.take()
    burner.burn(0.3)
    assert used_s(start) == pytest.approx(0.3, abs=SLACK_S)
    (grandchild,) = psutil.Process(burner.process.pid).children()
    os.kill(burner.process.pid, signal.SIGSTOP)
    assert used_s(start) == pytest.approx(0.3, abs=SLACK_S)
    os.kill(burner.process.pid, signal.SIGKILL)
    burner.process.wait(10)
    assert used_s(start) <= 0.3 + SLACK_S
    grandchild.wait(10)  # its input has ended
    burner.process.stdin.close()
    burner.process.stdout.close()


def test_nothing_is_counted_twice_without_children():
    start = ChildrenCpu.take()
    time.sleep(0.01)
    assert ChildrenCpu.take(start).since(start) == 0
