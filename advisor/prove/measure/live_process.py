"""One script as a live process that takes turns with another one: started, stopped after each turn, ended.

In: a `CaptureRequest`.  Out: the steps of its window, then of each turn; or the reason why it cannot take turns. The other half
is `advisor.prove.trial.runs.turn_run`.

The process has a session of its own, so that its signals reach neither this process nor its terminal. It ends with this process
like any other run (`advisor.sandbox`): SIGKILL ends stopped processes, too.
"""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import IO, Protocol, TypeVar

import psutil

from advisor.capture.launch import prepare_folder
from advisor.capture.request import CaptureRequest, Progress
from advisor.capture.script_process import environment, outputs, protected, session_request, stop
from advisor.host.calibration.proof import (
    LEAST_QUIT_GRACE_S,
    QUIT_GRACE_S,
    STOP_WAIT_S,
    STOPPED_CPU_SHARE,
    TURN_GRACE,
    TURN_GRACE_S,
)
from advisor.model.codec import decode, encode_message
from advisor.model.errors import OutOfTime
from advisor.model.recording import Recording
from advisor.model.run_folder import RECORDING_NAME
from advisor.prove.measure.end_to_end import temporary_run
from advisor.prove.measure.run_steps import RunSteps, steps_of
from advisor.prove.session.message_lines import MessageLines
from advisor.prove.trial.runs.turn_messages import EndTurns, Stopping, TakeTurn, TurnReply, TurnRequest, TurnTaken
from advisor.sandbox.processes import MARKER, processes_of

TURN_CHILD = Path(__file__).parents[1] / "trial" / "runs" / "turn_child.py"

R = TypeVar("R", bound=TurnReply)


class CannotTakeTurns(Exception):
    """The script cannot be measured in turns; the text is the reason, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class FirstWindow:
    """The window of a process, measured as that of any other run."""

    steps: RunSteps
    window_s: float
    """Its length."""
    started_s: float
    """How long the process took until it was stopped."""
    has_accelerator: bool
    """TensorFlow sees a GPU or TPU."""


@dataclass(frozen=True, slots=True)
class Held:
    """What the processes of a stopped script hold."""

    sockets: int
    """Number of network sockets."""
    memory_bytes: int


class Side(Protocol):
    """One of two scripts that take turns: a `LiveProcess`, or a recorded one."""

    def start(self) -> FirstWindow:
        """Start it, and return its window; it is stopped then."""

    def turn(self, seconds: float, steps: int | None) -> TurnTaken:
        """Let it go on for a turn; it is stopped then."""

    def held(self) -> Held:
        """Return what it holds while it is stopped."""

    def end(self, error: BaseException | None = None) -> None:
        """End it."""


class LiveProcess:
    """A script in a process that is always stopped, unless one of the methods runs; `end` must be called."""

    def __init__(self, request: CaptureRequest, on_progress: Callable[[Progress], None]) -> None:
        """Prepare; nothing is started.

        Args:
            request: How to run the script, and its window; at its deadline everything ends.
            on_progress: Called with progress messages.
        """
        self._request, self._on_progress = request, on_progress
        self._child: subprocess.Popen[bytes] | None = None
        self._to_child: IO[bytes] | None = None
        self._from_child: MessageLines | None = None
        self._resources = contextlib.ExitStack()
        self._marker = ""
        self._cpu_s, self._stopped_at = 0.0, 0.0
        """CPU time of its processes when it was stopped, and when that was."""

    def start(self) -> FirstWindow:
        """Run the script to the end of its window.

        Raises:
            CannotTakeTurns: It ends, or has too few steps, or may not be stopped.
            OutOfTime: The deadline has come.
        """
        began = time.monotonic()
        request = self._resources.enter_context(temporary_run(replace(self._request, is_profiled=False)))
        prepare_folder(request)
        self._spawn(request)
        stopping = self._wait_for(Stopping, None)
        if stopping.problem:
            raise CannotTakeTurns(stopping.problem)
        path = request.out / RECORDING_NAME
        recording = decode(path.read_bytes(), Recording, str(path))
        steps, window = steps_of(recording), recording.window
        if steps is None or window is None:
            raise CannotTakeTurns("the script ended before its steps could be timed")
        self._wait_until_stopped()
        window_s = (window.end_ns - window.start_ns) / 1e9
        return FirstWindow(steps, window_s, time.monotonic() - began, bool(recording.host.accelerators))

    def turn(self, seconds: float, steps: int | None) -> TurnTaken:
        """Let the script go on until so many seconds or steps are timed.

        Raises:
            CannotTakeTurns: It has run in the other one's turn, it ends, or its turn does not.
            OutOfTime: The deadline has come.
        """
        used_s, stopped_s = self._cpu() - self._cpu_s, time.monotonic() - self._stopped_at
        if used_s > STOPPED_CPU_SHARE.value * stopped_s + 0.02:  # two ticks of the clock in /proc
            raise CannotTakeTurns("processes of the script worked while it was stopped")
        self._send(TakeTurn(seconds, steps, self._request.epoch_steps))
        self._signal(signal.SIGCONT)
        taken = self._wait_for(TurnTaken, TURN_GRACE.value * seconds + TURN_GRACE_S.value)
        self._wait_until_stopped()
        return taken

    def held(self) -> Held:
        """Return what the processes of the script hold."""
        processes = self._processes()
        memory = 0
        for process in processes:
            with contextlib.suppress(psutil.Error):
                memory += process.memory_info().rss
        own = {process.pid for process in processes}
        sockets = sum(connection.pid in own for connection in psutil.net_connections(kind="inet"))
        return Held(sockets, memory)

    def end(self, error: BaseException | None = None) -> None:
        """End the process and remove its files; a second call does nothing.

        The script is stopped as after any window, so that its `finally` blocks and exit handlers run; after Ctrl-C and at the
        deadline it is interrupted.

        Args:
            error: Why it ends; None: it is needed no longer.
        """
        child, self._child = self._child, None
        try:
            if child is not None:
                is_late = isinstance(error, OutOfTime)
                is_told_to_end = not is_late and not isinstance(error, KeyboardInterrupt)
                if is_told_to_end:
                    self._send(EndTurns())
                self._signal(signal.SIGCONT, child)  # a stopped process receives no other signal but SIGKILL
                if is_told_to_end:
                    self._wait_for_end(child)
                # Ctrl-C has reached this process only: the child has a session of its own.
                stop(child, is_told=False, is_hard=is_late)
        finally:
            if self._to_child is not None:
                with contextlib.suppress(OSError):
                    self._to_child.close()
            if self._from_child is not None:
                self._from_child.close()
            self._to_child = self._from_child = None
            self._resources.close()

    def _spawn(self, request: CaptureRequest) -> None:
        out, err = self._resources.enter_context(outputs(request))
        run = self._resources.enter_context(protected(request))
        self._marker = run.variables[MARKER]
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        message = encode_message(session_request(request, reply_write, request_read))
        try:
            self._child = subprocess.Popen(
                [*run.command, sys.executable, str(TURN_CHILD), message],
                stdout=out,
                stderr=err,
                pass_fds=(request_read, reply_write),
                env={**environment(request), **run.variables},
                start_new_session=True,
            )
        except BaseException:
            os.close(reply_read)
            raise
        finally:
            os.close(request_read)
            os.close(reply_write)
            self._to_child = os.fdopen(request_write, "wb", buffering=0)
        self._from_child = MessageLines(os.fdopen(reply_read, "rb", buffering=0), self._child)

    # -- signals and processes

    def _signal(self, number: int, child: subprocess.Popen[bytes] | None = None) -> None:
        child = self._child if child is None else child
        if child is not None and child.poll() is None:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(child.pid, number)

    def _wait_until_stopped(self) -> None:
        """Wait until all threads of the process are stopped, which is when the kernel reports it."""
        assert self._child is not None
        deadline = time.monotonic() + STOP_WAIT_S.value
        while os.waitid(os.P_PID, self._child.pid, os.WSTOPPED | os.WNOHANG) is None:
            if time.monotonic() > deadline or self._child.poll() is not None:
                raise CannotTakeTurns("the script could not be stopped between two steps")
            time.sleep(0.001)
        self._cpu_s, self._stopped_at = self._cpu(), time.monotonic()

    def _cpu(self) -> float:
        """CPU time of the script's processes, also of those outside its process group."""
        used_s = 0.0
        for process in self._processes():
            with contextlib.suppress(psutil.Error):
                times = process.cpu_times()
                used_s += times.user + times.system
        return used_s

    def _processes(self) -> list[psutil.Process]:
        processes = []
        for pid in processes_of(self._marker):
            with contextlib.suppress(psutil.Error):
                processes.append(psutil.Process(pid))
        return processes

    # -- messages

    def _send(self, request: TurnRequest) -> None:
        assert self._to_child is not None
        with contextlib.suppress(OSError):  # waiting for the reply reports how the child ended
            self._to_child.write((encode_message(request) + "\n").encode())

    def _wait_for(self, wanted: type[R], limit_s: float | None) -> R:
        """Wait for the reply of that kind, for so many seconds or, if `limit_s` is None, until the deadline."""
        limit = None if limit_s is None else time.monotonic() + limit_s
        while True:
            now, deadline = time.monotonic(), self._request.deadline
            if deadline is not None and now >= deadline:
                raise OutOfTime("The script was stopped at the deadline.")
            if limit is not None and now >= limit:
                raise CannotTakeTurns("a turn of the script did not end")
            message = self._receive()
            if message is None:
                if self._child is None or self._child.poll() is not None:
                    raise CannotTakeTurns("the script ended before its turns were over")
            elif isinstance(message, wanted):
                return message
            elif isinstance(message, Progress):
                self._on_progress(message)

    def _receive(self) -> TurnReply | None:
        """The next message; None if there is none in time, or if the script has written to our pipe."""
        assert self._from_child is not None
        reply: TurnReply | None = self._from_child.message(TurnReply)
        return reply

    def _wait_for_end(self, child: subprocess.Popen[bytes]) -> None:
        """Wait while reading messages, so that the child does not block on a full pipe."""
        now, limit = time.monotonic(), self._request.deadline
        left_s = QUIT_GRACE_S.value if limit is None else limit - now
        deadline = now + min(QUIT_GRACE_S.value, max(LEAST_QUIT_GRACE_S.value, left_s))
        while child.poll() is None and time.monotonic() < deadline:
            self._receive()
