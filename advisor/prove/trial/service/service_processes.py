"""Dispatcher and worker processes of tf.data service on this machine, started from the generated server.py.

In: the text of server.py.  Out: addresses, CPU times. The processes are children of the script's process, so that they see the
same files as the script, and end with it: each reads a pipe whose other end only this process holds.
"""

from __future__ import annotations

import contextlib
import os
import re
import select
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import TracebackType

import psutil

from advisor.host.calibration.offload import SERVER_START_S
from advisor.model.errors import AdvisorError

_CHILD = Path(__file__).with_name("service_child.py")
_READY = re.compile(rb"^ready: \w+, port (\w+)\s*$", re.MULTILINE)
_POLL_S = 0.5
"""Seconds between two looks at a server that starts. Chosen, not measured."""
_END_S = 5.0
"""Seconds that a server has to end by itself before it is killed. Chosen, not measured."""
_LOCAL = "localhost:%port%"
"""Address of a worker for a client on the same machine."""


class ServerProcess:
    """One running server."""

    def __init__(self, process: subprocess.Popen[bytes], port: str) -> None:
        self._process, self.port = process, port
        self._usage = psutil.Process(process.pid)

    def cpu_s(self) -> float:
        """Return the CPU time that the process has used, in seconds.

        Raises:
            AdvisorError: The process has ended.
        """
        try:
            times = self._usage.cpu_times()
        except psutil.Error:
            raise AdvisorError("A tf.data service process ended while it was measured.") from None
        return float(times.user + times.system)


class ServiceProcesses:
    """Context manager: leaving it ends all processes."""

    def __init__(self, server_text: str, folder: Path, report: Callable[[], None]) -> None:
        """Prepare; nothing is started.

        Args:
            server_text: The text of server.py.
            folder: An existing folder for that file and the logs.
            report: Called now and then while a process starts.
        """
        self._server, self._folder, self._report = folder / "server.py", folder, report
        self._server.write_text(server_text, "utf-8")
        self._processes: list[subprocess.Popen[bytes]] = []
        self.dispatcher: ServerProcess | None = None
        self.workers: list[ServerProcess] = []

    def __enter__(self) -> ServiceProcesses:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @property
    def address(self) -> str:
        """The dispatcher's address: `grpc://localhost:1234`.

        Raises:
            AdvisorError: It was not started.
        """
        return f"grpc://{self._host_and_port()}"

    def start_dispatcher(self) -> None:
        """Start the dispatcher on a free port.

        Raises:
            AdvisorError: It ends, or is not ready in time.
        """
        self.dispatcher = self._start("dispatcher", "--port", "0")

    def start_worker(self) -> None:
        """Start one more worker; it is ready once the dispatcher knows it.

        Raises:
            AdvisorError: It ends, or is not ready in time.
        """
        address = self._host_and_port()
        self.workers.append(self._start("worker", "--dispatcher", address, "--port", "0", "--address", _LOCAL))

    def close(self) -> None:
        """End all processes: those that do not end when their pipe is closed are killed."""
        processes, self._processes = self._processes, []
        self.dispatcher, self.workers = None, []
        for process in processes:
            with contextlib.suppress(OSError):
                if process.stdin is not None:
                    process.stdin.close()
        deadline = time.monotonic() + _END_S
        for process in processes:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, deadline - time.monotonic()))
            if process.poll() is None:
                process.kill()
                process.wait()
            if process.stdout is not None:
                process.stdout.close()

    def _host_and_port(self) -> str:
        if self.dispatcher is None:
            raise AdvisorError("The dispatcher of tf.data service was not started.")
        return f"localhost:{self.dispatcher.port}"

    def _start(self, role: str, *arguments: str) -> ServerProcess:
        log = self._folder / f"{role}-{len(self._processes)}.log"
        with log.open("wb") as errors:
            process = subprocess.Popen(
                [sys.executable, "-P", str(_CHILD), str(self._server), role, *arguments],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "2"},
            )
        self._processes.append(process)
        return ServerProcess(process, self._wait_until_ready(process, role, log))

    def _wait_until_ready(self, process: subprocess.Popen[bytes], role: str, log: Path) -> str:
        """Return the port that the process prints when it is ready."""
        assert process.stdout is not None
        deadline, text = time.monotonic() + SERVER_START_S.value, b""
        while time.monotonic() < deadline:
            self._report()
            readable, _, _ = select.select([process.stdout], [], [], _POLL_S)
            data = os.read(process.stdout.fileno(), 4096) if readable else b""
            text += data
            ready = _READY.search(text)
            if ready is not None:
                return ready[1].decode()
            if readable and not data:
                raise AdvisorError(f"The {role} of tf.data service did not start{_last_line(log)}.")
        seconds = SERVER_START_S.value
        raise AdvisorError(f"The {role} of tf.data service did not start within {seconds:.0f} s{_last_line(log)}.")


def _last_line(log: Path) -> str:
    with contextlib.suppress(OSError):
        lines = [line.strip() for line in log.read_text("utf-8", "replace").splitlines() if line.strip()]
        if lines:
            return f": {lines[-1][:300].rstrip('.')}"
    return ""
