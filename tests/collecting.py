"""Runs the examples of collecting, and jobs with a profiler server."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[1]
EXAMPLES = REPOSITORY / "examples" / "collecting"
_ENVIRONMENT = {**os.environ, "TF_CPP_MIN_LOG_LEVEL": "2", "PYTHONPATH": str(REPOSITORY), "COLUMNS": "100"}
_TIMEOUT_S = 120


def free_port() -> int:
    """A port on which nobody listens, as far as one can know."""
    with socket.socket() as taken:
        taken.bind(("localhost", 0))
        return int(taken.getsockname()[1])


def run_script(script: Path, *args: object) -> subprocess.CompletedProcess[str]:
    """As a user would run it."""
    environment = {**_ENVIRONMENT, "PATH": f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"}
    command = [sys.executable, str(script), *map(str, args)]
    return subprocess.run(
        command, capture_output=True, text=True, check=False, timeout=_TIMEOUT_S, env=environment, cwd=script.parent
    )


def start_job(script: Path, *args: object) -> subprocess.Popen[str]:
    """A job that says on stdout when its profiler server listens; waits until it does, and until it trains."""
    command = [sys.executable, str(script), *map(str, args)]
    job = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env=_ENVIRONMENT)
    assert job.stdout is not None
    assert job.stdout.readline(), "the job did not start"
    time.sleep(1)
    return job


@pytest.fixture
def job(tmp_path: Path) -> Iterator[Callable[[str], tuple[subprocess.Popen[str], str]]]:
    """Starts a job with that body after its profiler server listens; gives it and its address."""
    running = []

    def start(body: str) -> tuple[subprocess.Popen[str], str]:
        port = free_port()
        script = tmp_path / f"job{port}.py"
        script.write_text(
            "import time\nimport tensorflow as tf\n"
            f"tf.profiler.experimental.server.start({port})\nprint('listening', flush=True)\n{body}\n"
        )
        running.append(start_job(script))
        return running[-1], f"localhost:{port}"

    yield start
    for process in running:
        process.kill()
        process.wait()
