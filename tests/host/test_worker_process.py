"""A worker process answers calls, keeps to itself what it prints, and is replaced after its death."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from advisor.host.worker_process import WorkerEnded, WorkerNotStarted, WorkerProcess
from tests.host.worker_calls import Unloadable, die_in_half_an_answer, take

ROOT = Path(__file__).parents[2]
LOKYS_THREADS = {"QueueFeederThread", "ExecutorManagerThread"}
LARGE = 8 << 20
"""Bytes, far more than a pipe holds."""


@pytest.fixture
def worker():
    worker = WorkerProcess()
    yield worker
    worker.close()


def script(tmp_path, text, **options):
    """The finished process of a script of this text."""
    (tmp_path / "script.py").write_text(text)
    return subprocess.run(
        [sys.executable, tmp_path / "script.py"], capture_output=True, text=True, timeout=60,
        env={**os.environ, "PYTHONPATH": str(ROOT), "PYTHONUNBUFFERED": ""}, **options,
    )  # fmt: skip


def test_calls_are_answered_by_one_process_which_close_ends(worker):
    number = worker.ask(os.getpid)
    assert number != os.getpid()
    assert worker.ask(divmod, 7, 2) == (3, 1)
    with pytest.raises(ZeroDivisionError):
        worker.ask(divmod, 7, 0)
    assert len(worker.ask(bytes, LARGE)) == worker.ask(len, bytes(LARGE)) == LARGE
    assert worker.ask(os.getpid) == number
    worker.close()
    with pytest.raises(ProcessLookupError):
        os.kill(number, 0)
    assert worker.ask(os.getpid) != number


def test_a_process_that_dies_says_how_and_is_replaced(worker):
    first = worker.ask(os.getpid)
    with pytest.raises(WorkerEnded, match="exit code -9"):
        worker.ask(os.kill, first, signal.SIGKILL)
    with pytest.raises(WorkerEnded, match="exit code 3"):
        worker.ask(os._exit, 3)
    with pytest.raises(WorkerEnded, match="exit code 1"):
        worker.ask(sys.exit, 0)
    with pytest.raises(WorkerEnded, match="exit code 1"):
        worker.ask(take, Unloadable())
    assert worker.ask(os.getpid) != first


def test_one_that_died_after_its_answer_costs_no_call(worker):
    first = worker.ask(os.getpid)
    os.kill(first, signal.SIGKILL)
    time.sleep(0.1)
    assert worker.ask(os.getpid) != first


def test_a_death_in_the_middle_of_an_answer_is_noticed(worker):
    with pytest.raises(WorkerEnded, match="exit code -9"):
        worker.ask(die_in_half_an_answer, LARGE)
    assert worker.ask(divmod, 7, 2) == (3, 1)


def test_a_death_in_the_middle_of_a_call_is_noticed(worker):
    before = set(threading.enumerate())  # those of workers of other tests in this process
    number = worker.ask(os.getpid)
    os.kill(number, signal.SIGSTOP)  # it does not read
    threading.Timer(0.3, os.kill, (number, signal.SIGKILL)).start()
    with pytest.raises(WorkerEnded, match="exit code -9"):
        worker.ask(len, bytes(LARGE))
    deadline = time.monotonic() + 5
    while (names := {thread.name for thread in set(threading.enumerate()) - before}) & LOKYS_THREADS:
        assert time.monotonic() < deadline, f"a thread of loky still waits: {names}"
        time.sleep(0.02)


def test_closing_from_another_thread_ends_a_call(worker):
    worker.ask(os.getpid)
    threading.Timer(0.2, worker.close).start()
    began = time.monotonic()
    with pytest.raises(WorkerEnded, match="exit code -9"):
        worker.ask(time.sleep, 60)
    assert time.monotonic() - began < 10


LEFT_OPEN = """
import os, threading, time
from pathlib import Path
from advisor.host.worker_process import WorkerProcess


def left():
    semaphores = list(Path("/dev/shm").glob(f"sem.loky-{os.getpid()}-*"))
    threads = [thread for thread in threading.enumerate() if thread.name == "ExecutorManagerThread"]
    return len(semaphores), len(threads)


worker = WorkerProcess()
for _ in range(3):
    worker.ask(os.getpid)
    worker.close()
    deadline = time.monotonic() + 5
    while left() != (0, 0) and time.monotonic() < deadline:
        time.sleep(0.02)
    print(len(list(Path("/proc/self/fd").iterdir())), *left())
"""


@pytest.mark.skipif(not Path("/dev/shm").is_dir(), reason="needs Linux' /dev/shm")
def test_a_closed_process_leaves_nothing_open(tmp_path):
    """In a process of its own: the workers of other tests may end at any time."""
    done = script(tmp_path, LEFT_OPEN)
    assert done.stderr == ""
    descriptors, semaphores, threads = zip(*[line.split() for line in done.stdout.splitlines()], strict=True)
    assert len(descriptors) == 3
    assert len(set(descriptors)) == 1
    assert set(semaphores) == set(threads) == {"0"}


def test_an_answer_that_cannot_be_pickled_is_an_error_of_the_call(worker):
    number = worker.ask(os.getpid)
    with pytest.raises(TypeError, match="pickle"):
        worker.ask(threading.Lock)
    assert worker.ask(os.getpid) == number


def test_a_process_that_cannot_be_started_is_one_sentence(worker, monkeypatch):
    monkeypatch.setattr(sys, "executable", "/nowhere/python")
    with pytest.raises((WorkerNotStarted, WorkerEnded)):
        worker.ask(os.getpid)


def test_what_a_call_prints_goes_to_stderr_and_stdin_is_not_its(tmp_path):
    done = script(
        tmp_path,
        "import sys\n"
        "print('at import')\n"  # nothing imports the script again
        "from advisor.host.worker_process import WorkerProcess\n"
        "worker = WorkerProcess()\n"
        "worker.ask(print, 'from a call')\n"
        'worker.ask(eval, \'__import__("os").write(1, b"at once")\')\n'
        'worker.ask(eval, \'__import__("os").system("echo from a process of a call")\')\n'
        "print(repr(worker.ask(eval, '__import__(\"sys\").stdin.read()')), sys.stdin.read())\n",
        input="for the script",
    )
    assert done.stdout == "at import\n'' for the script\n"
    assert sorted(done.stderr.splitlines()) == ["at oncefrom a process of a call", "from a call"]


def test_a_module_in_the_current_folder_is_not_imported(tmp_path):
    """Not by the worker, and not by the processes that loky starts for itself."""
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    for name in ("loky", "multiprocessing", "colorsys", "queue", "signal", "numpy", "json", "struct"):
        (elsewhere / f"{name}.py").write_text(f"open({str(tmp_path / 'trace')!r}, 'a').write({name!r})")
    done = script(
        tmp_path,
        "from advisor.host.worker_process import WorkerProcess\n"
        "worker = WorkerProcess()\n"
        "print(worker.ask(eval, '__import__(\"colorsys\").__name__'))\n",
        cwd=elsewhere,
    )
    assert (done.stdout, done.stderr) == ("colorsys\n", "")
    assert not (tmp_path / "trace").exists()


def test_a_module_beside_the_script_hides_none_of_python(tmp_path):
    (tmp_path / "colorsys.py").write_text("")
    (tmp_path / "its_own.py").write_text("")
    done = script(
        tmp_path,
        "import os\n"
        "from advisor.host.worker_process import WorkerProcess\n"
        "worker = WorkerProcess()\n"
        "print(worker.ask(eval, '__import__(\"colorsys\").__file__'))\n"
        "print(worker.ask(eval, '__import__(\"its_own\").__name__'))\n"
        "print(os.environ.get('PYTHONSAFEPATH'), worker.ask(os.getenv, 'PYTHONSAFEPATH'))\n",
    )
    assert done.stderr == ""
    file, own, safe_path = done.stdout.splitlines()
    assert not file.startswith(str(tmp_path))
    assert (own, safe_path) == ("its_own", "None None"), "what a call imports or starts finds the script's folder"


@pytest.mark.long
def test_a_worker_of_a_pool_of_multiprocessing_may_have_one(tmp_path):
    done = script(
        tmp_path,
        "import multiprocessing, os\n"
        "from advisor.host.worker_process import WorkerProcess\n"
        "def inner(): return WorkerProcess().ask(divmod, 7, 2), multiprocessing.current_process().daemon\n"
        "if __name__ == '__main__':\n"
        "    with multiprocessing.get_context('fork').Pool(1) as pool: print(*pool.apply(inner))\n",
    )
    assert done.stdout == "(3, 1) True\n", done.stderr


AT_EXIT = """
import contextlib, os, sys, threading, time
from advisor.host.worker_process import WorkerEnded, WorkerProcess


def ask():
    with contextlib.suppress(WorkerEnded):
        worker.ask(time.sleep, 60)


worker = WorkerProcess()
print(worker.ask(os.getpid), flush=True)
threading.Thread(target=ask, daemon=True).start()
time.sleep(0.3)
"""


@pytest.mark.long
@pytest.mark.parametrize("end", ["", "sys.exit(3)"], ids=["end", "exit"])
def test_the_end_of_the_script_ends_its_call_without_a_word(tmp_path, end):
    began = time.monotonic()
    done = script(tmp_path, AT_EXIT + end)
    assert time.monotonic() - began < 20
    assert done.stderr == ""
    with pytest.raises(ProcessLookupError):
        os.kill(int(done.stdout), 0)


CTRL_C = """
import os, signal, threading
from advisor.host.worker_process import WorkerEnded, WorkerProcess


def press():
    while not is_done.wait(0.02):
        os.killpg(os.getpgid(0), signal.SIGINT)


signal.signal(signal.SIGINT, lambda *_: None)
is_done = threading.Event()
worker = WorkerProcess(signal.{action})
threading.Thread(target=press).start()
try:
    print(worker.ask(eval, '__import__("time").sleep(0.5)'))
except WorkerEnded as ended:
    print(ended)
is_done.set()
"""


@pytest.mark.parametrize(("action", "says"), [("SIG_DFL", "exit code -2\n"), ("SIG_IGN", "None\n")])
def test_ctrl_c_at_any_time_ends_the_process_or_leaves_that_to_the_parent(tmp_path, action, says):
    """Also while it is being started, when Python would print a traceback.

    One run of many had a warning of loky's resource tracker about a semaphore that it removes then.
    """
    done = script(tmp_path, CTRL_C.format(action=action), start_new_session=True)
    assert done.stdout == says
    assert "Traceback" not in done.stderr, done.stderr
    assert not done.stderr or "resource_tracker: " in done.stderr, done.stderr
