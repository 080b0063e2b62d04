"""A real Dask cluster on this machine: a scheduler and workers in processes of their own, at ports that the system chooses.

In: options of the workers.  Out: the engine's name, and the processes to kill.
"""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
START_S = 60
QUICK = {
    "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "1",
    "DASK_DISTRIBUTED__WORKER__PROFILE__ENABLED": "False",
    "PYTHONDONTWRITEBYTECODE": "1",
}
"""A task that ends two workers is given up, instead of four."""


@dataclass
class Cluster:
    folder: Path
    scheduler: subprocess.Popen[bytes]
    workers: list[subprocess.Popen[bytes]] = field(default_factory=list)

    @property
    def engine(self) -> str:
        address = json.loads((self.folder / "scheduler.json").read_text())["address"]
        return address.replace("tcp://", "dask://")

    def add_worker(self, *options: str, path: Sequence[Path] = ()) -> None:
        """Start a worker with one thread; `path` precedes its modules."""
        command = ["dask_worker", "--nthreads", "1", "--no-dashboard", "--local-directory", str(self.folder), *options]
        self.workers.append(_start(self.folder, command, path))

    def lose_a_worker(self) -> None:
        """Kill the process that runs the functions; its nanny starts another one."""
        import psutil

        nanny = psutil.Process(self.workers[0].pid)
        (worker,) = [child for child in nanny.children() if "spawn_main" in " ".join(child.cmdline())]
        worker.kill()

    def lose_the_scheduler(self) -> None:
        self.scheduler.kill()
        self.scheduler.wait()


@contextlib.contextmanager
def cluster(folder: Path, num_workers: int, *options: str) -> Iterator[Cluster]:
    """Start a scheduler and so many workers; everything is gone afterwards."""
    folder.mkdir(parents=True, exist_ok=True)
    started = Cluster(folder, _start(folder, ["dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard"]))
    try:
        deadline = time.monotonic() + START_S
        while not (folder / "scheduler.json").exists():
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.1)
        for _ in range(num_workers):
            started.add_worker(*options)
        if num_workers:
            _wait_for(started.engine, num_workers)
        yield started
    finally:
        for process in (*started.workers, started.scheduler):
            with contextlib.suppress(ProcessLookupError):  # each leads a group, with its children
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()


def _wait_for(engine: str, num_workers: int) -> None:
    from distributed import Client

    with Client(engine.replace("dask://", "tcp://"), set_as_default=False) as client:
        client.wait_for_workers(num_workers, timeout=START_S)


def _start(folder: Path, command: Sequence[str], path: Sequence[Path] = ()) -> subprocess.Popen[bytes]:
    with (folder / "log").open("ab") as log:
        return subprocess.Popen(
            [sys.executable, "-m", f"distributed.cli.{command[0]}", *command[1:],
             "--scheduler-file", str(folder / "scheduler.json")],
            stdin=subprocess.DEVNULL, stdout=log, stderr=log, cwd=folder, start_new_session=True,
            env={**os.environ, **QUICK, "PYTHONPATH": os.pathsep.join(map(str, (*path, ROOT)))},
        )  # fmt: skip
