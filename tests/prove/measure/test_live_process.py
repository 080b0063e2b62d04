"""Two real scripts in live processes that take turns: what they measure, and what is left of them when something ends early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from advisor.capture.request import CaptureRequest
from advisor.prove.measure.live_pairs import measure_live_pairs
from advisor.prove.measure.live_process import CannotTakeTurns, LiveProcess
from advisor.prove.trial.runs.turn_messages import TurnBufferLevels
from advisor.prove.trial.trial_result import FASTER
from tests.sandbox.conftest import is_alive, wait_until

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]

HEAD = "import os, pathlib, time\nimport tensorflow as tf\n"
SLEEPS = (
    HEAD
    + "data = tf.data.Dataset.range(10**9).map(lambda x: tf.py_function(lambda y: time.sleep({}) or y, [x], tf.int64))\n"
    "for element in data{}:\n    time.sleep(0.02)\n"
)
SLOW, FAST = SLEEPS.format(0.06, ""), SLEEPS.format(0.01, ".prefetch(4)")
TOOL = """
import sys
from pathlib import Path
from advisor.capture.request import CaptureRequest
from advisor.model.termination import raising_when_terminated
from advisor.prove.measure.live_pairs import measure_live_pairs
from advisor.prove.measure.live_process import LiveProcess

class Told(LiveProcess):
    def start(self):
        window = super().start()
        print(self._child.pid, flush=True)
        return window

    def turn(self, seconds, steps):
        print("turn", flush=True)
        return super().turn(60.0 if "{when}" == "in a turn" else seconds, steps)

sides = [CaptureRequest(Path("unused"), Path(name), seconds=1.0, warmup=5) for name in ("slow.py", "fast.py")]
with raising_when_terminated():
    measure_live_pairs(*sides, lambda progress: None, make_side=Told)
"""


def side(folder: Path, name: str, text: str) -> CaptureRequest:
    (folder / name).write_text(text)
    return CaptureRequest(Path("unused"), folder / name, seconds=1.0, warmup=5)


def test_two_scripts_take_turns_and_leave_nothing(project: Callable[[str], Path], temporary: Path, home: Path) -> None:
    folder = project("")
    before, after = side(folder, "slow.py", SLOW), side(folder, "fast.py", FAST)
    comparison = measure_live_pairs(before, after, lambda progress: None)
    assert (comparison.verdict, comparison.is_live, comparison.runs) == (FASTER, True, 2), comparison
    assert comparison.speedup is not None and 2 < comparison.speedup.value < 6
    assert min(len(comparison.before), len(comparison.after)) >= 3
    assert comparison.before[0].wait_share is not None and comparison.before[1].wait_share is not None
    assert list(temporary.iterdir()) == []


def test_nothing_of_a_stopped_script_runs(project: Callable[[str], Path], temporary: Path, home: Path) -> None:
    """All threads stand still, and two seconds add no more to a buffer than the one element whose sleep they end."""
    ticks = "import threading\ndef tick():\n    while True:\n        open('ticks', 'a').write('x'); time.sleep(0.01)\n"
    text = SLEEPS.format(0.05, ".prefetch(50)").replace("time.sleep(0.02)", "time.sleep(0.02 if element % 100 else 3)")
    folder = project("")
    script = side(
        folder, "train.py", text.replace("data =", ticks + "threading.Thread(target=tick, daemon=True).start()\ndata =")
    )
    process = LiveProcess(script, lambda progress: None)
    try:
        process.start()
        held, child = process.held(), psutil.Process(process._child.pid)  # type: ignore[union-attr]
        threads = Path(f"/proc/{child.pid}/task")
        states = {(path / "stat").read_text().rpartition(")")[2].split()[0] for path in threads.iterdir()}
        assert states == {"T"}
        assert os.getpgid(child.pid) == child.pid != os.getpgrp()
        used = child.cpu_times()
        time.sleep(2.0)
        assert child.cpu_times() == used
        assert held.sockets == 0 and held.memory_bytes > 100 << 20
        taken = process.turn(1.0, None)
        assert taken.steps >= 3 and taken.dropped_steps >= 5
        assert isinstance(taken.buffer, TurnBufferLevels) and taken.buffer.stopped is not None
        assert 0 <= taken.buffer.resumed - taken.buffer.stopped <= 1
    finally:
        process.end()
    assert wait_until(lambda: not is_alive(child.pid))


def test_a_script_with_a_socket_is_seen(project: Callable[[str], Path], temporary: Path, home: Path) -> None:
    folder = project("")
    listens = "import socket\nlistener = socket.create_server(('127.0.0.1', 0))\ndata ="
    process = LiveProcess(side(folder, "train.py", SLOW.replace("data =", listens)), lambda progress: None)
    try:
        process.start()
        assert process.held().sockets == 1
    finally:
        process.end()


def test_what_works_while_its_script_is_stopped_is_seen(
    project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    """A helper in a session of its own is not stopped with the process group."""
    folder = project("")
    busy = "[sys.executable, '-c', 'while True: pass']"
    helper = f"import subprocess, sys\nsubprocess.Popen({busy}, start_new_session=True)\ndata ="
    process = LiveProcess(side(folder, "train.py", SLOW.replace("data =", helper)), lambda progress: None)
    try:
        process.start()
        time.sleep(1.0)
        with pytest.raises(CannotTakeTurns, match="worked while it was stopped"):
            process.turn(1.0, None)
    finally:
        process.end()


def test_a_script_that_ends_is_no_error_and_its_exit_handlers_run(
    project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    folder = project("")
    short = side(folder, "train.py", SLOW.replace("range(10**9)", "range(40)"))
    process = LiveProcess(short, lambda progress: None)
    try:
        process.start()
        with pytest.raises(CannotTakeTurns, match="ended before its turns were over"):
            process.turn(60.0, None)
    finally:
        process.end()
    left = temporary.parent / "left"  # the folder of the run's output is kept outside its private view
    told = "import atexit\natexit.register(lambda: os.write(1, b'exit'))\ndata ="
    process = LiveProcess(side(folder, "train.py", SLOW.replace("data =", told)), lambda progress: None)
    try:
        process.start()
        out = next(temporary.rglob("script.out"))
        os.link(out, left)
    finally:
        process.end()
    assert left.read_text() == "exit"


@pytest.mark.slow
@pytest.mark.parametrize("when", ["in a turn", "in the first window"])
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGINT, signal.SIGTERM])
def test_a_command_that_is_killed_leaves_no_process_and_no_folder(
    number: int, when: str, project: Callable[[str], Path], temporary: Path, home: Path
) -> None:
    """One script is stopped then, the other one runs."""
    folder = project("")
    (folder / "slow.py").write_text(SLOW)
    (folder / "fast.py").write_text(
        FAST.replace("for", "time.sleep(600)\nfor") if when == "in the first window" else FAST
    )
    command = [sys.executable, "-c", TOOL.replace("{when}", when)]
    tool = subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True)
    assert tool.stdout is not None
    pids = [int(tool.stdout.readline())]
    if when == "in a turn":
        pids.append(int(tool.stdout.readline()))
        assert tool.stdout.readline() == b"turn\n"
        assert wait_until(lambda: any(psutil.Process(pid).status() != "stopped" for pid in pids))
    else:
        assert wait_until(lambda: len(psutil.Process(tool.pid).children()) >= 2)
        time.sleep(3.0)
        pids = [child.pid for child in psutil.Process(tool.pid).children()]
    os.kill(tool.pid, number)  # not its process group: Ctrl-C does not reach the scripts
    _, errors = tool.communicate(timeout=60)
    names = {signal.SIGKILL: b"", signal.SIGINT: b"KeyboardInterrupt", signal.SIGTERM: b"Terminated"}
    assert names[signal.Signals(number)] in errors
    assert wait_until(lambda: not any(map(is_alive, pids)))
    assert wait_until(lambda: not list(temporary.iterdir()))
    assert json.dumps(sorted(path.name for path in folder.iterdir())) == '["fast.py", "log.csv", "slow.py", "train.py"]'
