"""The generated server.py as a real dispatcher and worker: it serves a dataset, and ends in every case."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import psutil
import pytest

from advisor.model.errors import AdvisorError
from advisor.offload.files import server_text
from advisor.prove.trial.service.service_processes import ServiceProcesses

pytestmark = [pytest.mark.tensorflow, pytest.mark.long]
ROOT = Path(__file__).parents[4]
HOLDER = """
import sys, time
from pathlib import Path
from advisor.offload.files import server_text
from advisor.prove.trial.service.service_processes import ServiceProcesses
processes = ServiceProcesses(server_text(), Path(sys.argv[1]), lambda: None)
processes.start_dispatcher()
processes.start_worker()
print(*[each.pid for each in processes._processes], flush=True)
time.sleep(600)
"""
QUIET = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "3"}
READER = """
import sys
import tensorflow as tf
dataset = tf.data.Dataset.range(20).map(lambda number: 2 * number)
dataset = dataset.apply(tf.data.experimental.service.distribute("distributed_epoch", sys.argv[1]))
print(*sorted(int(number) for number in dataset))
"""


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def wait_until_ended(pids: list[int], seconds: float = 20.0) -> list[int]:
    deadline = time.monotonic() + seconds
    while (left := [pid for pid in pids if is_running(pid)]) and time.monotonic() < deadline:
        time.sleep(0.1)
    return left


def test_a_dataset_goes_through_two_workers_and_all_processes_end(tmp_path: Path) -> None:
    import tensorflow as tf

    with ServiceProcesses(server_text(), tmp_path, lambda: None) as processes:
        processes.start_dispatcher()
        processes.start_worker()
        processes.start_worker()
        pids = [process.pid for process in processes._processes]
        distribute = tf.data.experimental.service.distribute("distributed_epoch", processes.address)
        elements = [int(x) for x in tf.data.Dataset.range(100).map(lambda x: x * 2).apply(distribute)]
        assert sorted(elements) == list(range(0, 200, 2))
        assert processes.workers[0].cpu_s() > 0
        assert len(set(pids)) == 3 and all(map(is_running, pids))
    assert wait_until_ended(pids, 1.0) == []


def test_a_server_that_cannot_start_is_reported_and_ended(tmp_path: Path) -> None:
    with ServiceProcesses("raise SystemExit('no such port')", tmp_path, lambda: None) as processes:
        with pytest.raises(AdvisorError, match=r"dispatcher of tf.data service did not start.*no such port"):
            processes.start_dispatcher()
        pids = [process.pid for process in processes._processes]
    assert wait_until_ended(pids, 1.0) == []


def test_the_servers_end_with_a_parent_that_is_killed(tmp_path: Path) -> None:
    holder = subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)], stdout=subprocess.PIPE, text=True, cwd=ROOT
    )
    try:
        assert holder.stdout is not None
        pids = [int(word) for word in holder.stdout.readline().split()]
        assert len(pids) == 2 and all(map(is_running, pids))
    finally:
        holder.kill()
        holder.wait()
        assert holder.stdout is not None
        holder.stdout.close()
    assert wait_until_ended(pids) == []


def test_the_generated_servers_serve_a_reader_keep_a_journal_and_obey_sigterm(tmp_path: Path) -> None:
    server, journal = tmp_path / "server.py", tmp_path / "journal"
    server.write_text(server_text())
    journal.mkdir()
    with ExitStack() as stack:
        dispatcher = stack.enter_context(started(server, "dispatcher", "--port", "0", "--work-dir", str(journal)))
        address = f"localhost:{ready_port(dispatcher, 'dispatcher')}"
        options = ("--dispatcher", address, "--port", "0", "--address", "localhost:%port%")
        worker = stack.enter_context(started(server, "worker", *options))
        ready_port(worker, "worker")
        reader = subprocess.run(
            [sys.executable, "-c", READER, f"grpc://{address}"], capture_output=True, text=True, env=QUIET, timeout=120
        )
        assert reader.stdout.split() == [str(2 * number) for number in range(20)], reader.stderr[-1000:]
        assert any(path.stat().st_size for path in journal.rglob("*") if path.is_file())
        for process in (worker, dispatcher):
            process.send_signal(signal.SIGTERM)
        assert (worker.wait(30), dispatcher.wait(30)) == (0, 0)


@contextmanager
def started(server: Path, *arguments: str) -> Iterator[subprocess.Popen[str]]:
    """A server of the generated file; it is killed after the block if it has not ended."""
    process = subprocess.Popen(
        [sys.executable, str(server), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        env=QUIET,
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()
        assert process.stdout is not None
        process.stdout.close()


def ready_port(process: subprocess.Popen[str], role: str) -> str:
    assert process.stdout is not None
    line = process.stdout.readline()
    assert line.startswith(f"ready: {role}, port "), line
    return line.split()[-1]
