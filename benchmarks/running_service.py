"""A tf.data service as somebody else would run it: dispatcher and workers as processes, from the generated server.py.

In: a folder, and whether each process gets a network of its own.  Out: the addresses of the dispatcher and of the profiler
servers. Used by benchmarks and tests.

With networks of their own, the processes are like machines on one switch: each has its own address and ports, and reaches the
others through a bridge only. That needs Linux, `unshare` and `ip`; `may_isolate` says whether it works here, and the program that
uses it runs inside a network of its own (`inside_own_network`), so that the machine's interfaces stay as they are.
"""

from __future__ import annotations

import contextlib
import os
import re
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType

from advisor.offload.files import server_text

_READY = re.compile(r"^ready: \w+, port (\w+)")
BRIDGE, _NETWORK = "tfdata0", "10.77.0"
"""The interface through which the program reaches the processes, and the first numbers of all addresses."""
_OWN, _FIRST = 1, 2
"""Last numbers of the addresses of this process and of the first server."""
_DISPATCHER_PORT, _WORKER_PORT, _PROFILER_PORT = 5000, 5001, 6009
_START_S = 120.0
_BURST_BYTES, _QUEUE_MS = 65536, 400
"""Of a limited link: what may pass at once, and how long a packet may wait. A switch holds about as much."""
_NO_GPU = {"CUDA_VISIBLE_DEVICES": "-1", "TF_CPP_MIN_LOG_LEVEL": "3"}


def may_isolate() -> bool:
    """Return whether processes can get networks of their own here."""
    script = f"ip link add {BRIDGE} type bridge && ip link add tfdata-a type veth peer name tfdata-b && unshare -n true"
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([*_unshare(), "sh", "-c", script], capture_output=True, timeout=20)
        return done.returncode == 0
    return False


def may_limit() -> bool:
    """Return whether the rate of a link can be limited here: it takes `tc`, and the kernel's token bucket filter."""
    script = f"ip link add {BRIDGE} type bridge && tc qdisc add dev {BRIDGE} root {_bucket(1_000_000)}"
    with contextlib.suppress(OSError, subprocess.TimeoutExpired):
        done = subprocess.run([*_unshare(), "sh", "-c", script], capture_output=True, timeout=20)
        return done.returncode == 0
    return False


def inside_own_network(arguments: Sequence[str]) -> None:
    """Replace this process by the same program in a network of its own, with these arguments; returns only if that fails."""
    command = [*_unshare(), sys.executable, *arguments]
    os.execvp(command[0], command)


def prepare_own_network() -> None:
    """Give the network that this process is inside its loopback device and the bridge."""
    for words in (
        ("link", "set", "lo", "up"),
        ("link", "add", BRIDGE, "type", "bridge"),
        ("addr", "add", f"{_NETWORK}.{_OWN}/24", "dev", BRIDGE),
        ("link", "set", BRIDGE, "up"),
    ):
        _ip(*words)


def _unshare() -> list[str]:
    return ["unshare", "-n"] if os.geteuid() == 0 else ["unshare", "-r", "-n"]


class RunningService:
    """Context manager: leaving it ends all processes."""

    def __init__(self, folder: Path, is_isolated: bool = False, work_dir: Path | None = None) -> None:
        """Prepare; nothing is started.

        Args:
            folder: An existing folder for server.py and the logs.
            is_isolated: Give each process a network of its own; this one is inside the one of `prepare_own_network`.
            work_dir: Folder of the dispatcher's journal: it then continues after a restart.
        """
        self._folder, self._is_isolated, self._work_dir = folder, is_isolated, work_dir
        self._server = folder / "server.py"
        self._server.write_text(server_text(), "utf-8")
        self._networks = 0
        self._links: dict[int, str] = {}
        """Process id -> interface of the switch towards it."""
        self._all: list[subprocess.Popen[str]] = []
        self.dispatcher: subprocess.Popen[str] | None = None
        self.workers: list[subprocess.Popen[str]] = []
        self.profilers: list[str] = []
        """`grpc://HOST:PORT` of each profiler server, in the order of their start."""
        self._host_and_port = ""

    def __enter__(self) -> RunningService:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        for process in reversed(self._all):  # the dispatcher last; a worker that asks it to the end needs seconds
            end(process)

    @property
    def address(self) -> str:
        """The dispatcher's: `grpc://HOST:PORT`."""
        return f"grpc://{self._host_and_port}"

    def start_dispatcher(self) -> None:
        """Start the dispatcher; a second time, at the address that it had."""
        port = self._host_and_port.rpartition(":")[2] or (_DISPATCHER_PORT if self._is_isolated else 0)
        journal = [] if self._work_dir is None else ["--work-dir", str(self._work_dir)]
        command = [sys.executable, str(self._server), "dispatcher", "--port", str(port), *journal]
        self.dispatcher, host, ready = self._start("dispatcher", command)
        self._host_and_port = f"{host}:{ready}"

    def start_worker(
        self,
        python: str = sys.executable,
        address: str = "",
        is_profiled: bool = False,
        environment: Mapping[str, str] | None = None,
    ) -> None:
        """Start one more worker; it is ready once the dispatcher knows it.

        Args:
            python: The interpreter whose TensorFlow it runs.
            address: What it tells its clients; by default one at which it can be reached.
            is_profiled: Let it run a profiler server.
            environment: Variables for it alone.
        """
        if self._is_isolated:
            own = f"{_NETWORK}.{_FIRST + self._networks}:{_WORKER_PORT}"
            port = str(_WORKER_PORT)
        else:
            own, port = "localhost:%port%", "0"
        command = [python, str(self._server), "worker", "--dispatcher", self._host_and_port, "--port", port]
        command += ["--address", address or own]
        if is_profiled:
            profiler = self._profiler_port()
            command += ["--profiler-port", profiler]
        process, host, _ = self._start("worker", command, environment)
        self.workers.append(process)
        if is_profiled:
            self.profilers.append(f"grpc://{host}:{profiler}")

    def start_trainer(self, command: Sequence[str]) -> subprocess.Popen[str]:
        """Start a training that reads from the service, and wait until it has printed `ready: trainer, port PORT`.

        Args:
            command: It is given two more arguments: the dispatcher's address, and the port of its profiler server.
        """
        profiler = self._profiler_port()
        process, host, _ = self._start("trainer", [*command, self.address, profiler])
        self.profilers.append(f"grpc://{host}:{profiler}")
        return process

    def limit_link(self, process: subprocess.Popen[str], bits_per_s: int) -> None:
        """Limit what the switch sends to a process; it needs a network of its own, and `may_limit`."""
        subprocess.run(
            ["tc", "qdisc", "add", "dev", self._links[process.pid], "root", *_bucket(bits_per_s).split()], check=True
        )

    def _profiler_port(self) -> str:
        """Of the next process: always the same in a network of its own, and otherwise a free one."""
        if self._is_isolated:
            return str(_PROFILER_PORT)
        with socket.socket() as free:
            free.bind(("localhost", 0))
            return str(free.getsockname()[1])

    def _start(
        self, role: str, command: Sequence[str], environment: Mapping[str, str] | None = None
    ) -> tuple[subprocess.Popen[str], str, str]:
        """Return the process, its host and the port that it says it is ready at."""
        host = "localhost"
        if self._is_isolated:
            command = ["unshare", "-n", "sh", "-c", 'read go; exec "$@"', "sh", *command]
        log = (self._folder / f"{role}-{len(self._all)}.log").open("w")
        with log:
            process = subprocess.Popen(
                command,
                stdin=subprocess.PIPE if self._is_isolated else subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=log,
                text=True,
                env={**os.environ, **_NO_GPU, **(environment or {})},
            )
        self._all.append(process)
        if self._is_isolated:
            host = self._connect(process)
        assert process.stdout is not None
        ready = _READY.match(process.stdout.readline())
        if ready is None:
            raise RuntimeError(f"The {role} did not start: {Path(log.name).read_text()[-500:]}")
        return process, host, ready[1]

    def _connect(self, process: subprocess.Popen[str]) -> str:
        """Connect the network of a process with the bridge, let it go on, and return its address."""
        own, deadline = Path("/proc/self/ns/net").readlink(), time.monotonic() + _START_S
        while Path(f"/proc/{process.pid}/ns/net").readlink() == own:
            if time.monotonic() > deadline:
                raise RuntimeError("A server did not get a network of its own.")
            time.sleep(0.02)
        number = self._networks
        self._networks += 1
        host, link = f"{_NETWORK}.{_FIRST + number}", f"tfdata-{number}-{process.pid % 1000}"
        _ip("link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(process.pid))
        _ip("link", "set", link, "master", BRIDGE, "up")
        self._links[process.pid] = link
        for words in (
            ("addr", "add", f"{host}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
            ("link", "set", "lo", "up"),
        ):
            subprocess.run(["nsenter", "-t", str(process.pid), "-n", "ip", *words], check=True)
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()
        return host


def end(process: subprocess.Popen[str]) -> None:
    """Kill a process of a service, as a machine that loses its power would end it."""
    process.kill()
    process.wait()
    for pipe in (process.stdin, process.stdout):
        if pipe is not None:
            with contextlib.suppress(OSError):
                pipe.close()


def _bucket(bits_per_s: int) -> str:
    """The token bucket filter, in the words of `tc`."""
    return f"tbf rate {bits_per_s}bit burst {_BURST_BYTES} latency {_QUEUE_MS}ms"


def _ip(*words: str) -> None:
    subprocess.run(["ip", *words], capture_output=True, check=True)
