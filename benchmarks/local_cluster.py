"""A real Dask cluster on this machine: a scheduler and workers in processes of their own, at ports that the system chooses.

In: options of the workers.  Out: the engine's name for `advisor analyze --engine`, and the processes, to measure or to kill.
"""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import psutil

ROOT = Path(__file__).parents[1]
START_S = 60
SETTINGS = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""A task that ends two workers is given up, instead of four."""


@dataclass
class Cluster:
    """The processes of a cluster."""

    folder: Path
    path: tuple[Path, ...]
    """Folders with modules that scheduler and workers may import, besides those of the repository."""
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def engine(self) -> str:
        """Return the name of the engine."""
        address: str = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return address.replace("tcp://", "dask://")

    def add_worker(self, *options: str) -> None:
        """Start a worker with one thread."""
        command = ["dask_worker", "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder), *options]
        self.workers.append(_start(self.folder, self.path, command))

    def wait(self) -> None:
        """Wait until the scheduler knows all workers."""
        from distributed import Client

        with Client(self.engine.replace("dask://", "tcp://"), set_as_default=False) as client:
            if self.workers:
                client.wait_for_workers(len(self.workers), timeout=START_S)

    def processes(self) -> list[psutil.Process]:
        """Return the processes that run the functions; the nanny of each starts another one if it ends."""
        children = [child for nanny in self.workers for child in psutil.Process(nanny.pid).children()]
        return [child for child in children if "spawn_main" in " ".join(child.cmdline())]

    def peak_bytes(self) -> int:
        """Return the peak memory of the largest worker; 0 where the system does not tell it."""
        peaks = [0]
        for process in self.processes():
            with contextlib.suppress(OSError):
                peak = re.search(r"VmHWM:\s+(\d+) kB", Path(f"/proc/{process.pid}/status").read_text())
                peaks += [int(peak[1]) * 1024] if peak else []
        return max(peaks)

    def lose_a_worker(self) -> None:
        """Kill the process that runs the functions."""
        self.processes()[0].kill()

    def lose_the_scheduler(self) -> None:
        """Kill the scheduler."""
        self.scheduler.kill()
        self.scheduler.wait()


@contextlib.contextmanager
def cluster(folder: Path, num_workers: int, *options: str, path: Sequence[Path] = ()) -> Iterator[Cluster]:
    """Start a scheduler and so many workers; everything is gone afterwards.

    Args:
        folder: For files of the cluster.
        num_workers: Number of workers.
        options: Further options of each worker.
        path: See `Cluster`.
    """
    folder.mkdir(parents=True, exist_ok=True)
    command = ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]
    started = Cluster(folder, tuple(path), _start(folder, path, command))
    try:
        deadline = time.monotonic() + START_S
        while not (folder / "scheduler.json").exists():
            if time.monotonic() > deadline or started.scheduler.poll() is not None:
                raise RuntimeError(f"The scheduler did not start: {(folder / 'log').read_text()[-2000:]}")
            time.sleep(0.1)
        for _ in range(num_workers):
            started.add_worker(*options)
        started.wait()
        yield started
    finally:
        for process in (*started.workers, started.scheduler):
            with contextlib.suppress(ProcessLookupError):  # each leads a group, with its children
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _start(folder: Path, path: Sequence[Path], command: Sequence[str]) -> subprocess.Popen[bytes]:
    module, *options = command
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{module}", *options,
             "--scheduler-file", str(folder / "scheduler.json")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True,
            env={**os.environ, **SETTINGS, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))},
        )  # fmt: skip
