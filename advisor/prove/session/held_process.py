"""The process in which a proof session holds the user's script, and the messages to and from it.

In: how to run the script, and where to hold it.  Out: the replies to requests, or the reason why there is none. The other end is
`advisor.prove.trial.runs.proof_run`.
"""

from __future__ import annotations

import contextlib
import math
import os
import subprocess
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import IO, TypeVar

from advisor.capture.request import CaptureRequest, Progress
from advisor.capture.script_process import (
    copy_to_stderr,
    environment,
    outputs,
    protected,
    session_request,
    stop,
    target_name,
)
from advisor.host.calibration.proof import LEAST_QUIT_GRACE_S, QUIT_GRACE_S, SILENCE_S
from advisor.model.calls import Call, line_note
from advisor.model.codec import encode_message
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.recording import ScriptExit
from advisor.model.termination import is_interrupt
from advisor.prove.session.message_lines import MessageLines
from advisor.prove.trial.messages import Begin, Ended, Failed, Measured, ProofRequest, Quit, Ready, Reply, Request
from advisor.sandbox.private_run import PrivateRun
from advisor.sandbox.temporary import temporary_folder

_CHILD = Path(__file__).parents[1] / "trial" / "runs" / "proof_child.py"

R = TypeVar("R")


class Hangs(Exception):
    """The process has sent no message for too long."""


class CannotDo(Exception):
    """The process could not fulfil a request; it continues to serve."""


class _Gone(Exception):
    """The process has ended."""

    def __init__(self, ended: ScriptExit | None) -> None:
        super().__init__()
        self.ended = ended


@dataclass(frozen=True, slots=True)
class Hold:
    """Where the script is held; see `advisor.prove.session.proof_session.ProofSession`."""

    consumer_call: Call | None
    calls: tuple[Call, ...]
    hold_at: int | None
    lost: tuple[str, ...]


class HeldProcess:
    """One run of the script up to the point where it is held; `end` must be called, even if `start` fails."""

    def __init__(
        self, request: CaptureRequest, hold: Hold, deadline: float, on_progress: Callable[[Progress], None]
    ) -> None:
        """Prepare; nothing is started.

        Args:
            request: How to run the script.
            hold: Where to hold it.
            deadline: Time of `time.monotonic` at which everything is stopped.
            on_progress: Called with progress messages.
        """
        self._request, self._hold, self._deadline, self._on_progress = request, hold, deadline, on_progress
        self._child: subprocess.Popen[bytes] | None = None
        self._to_child: IO[bytes] | None = None
        self._from_child: MessageLines | None = None
        self._outputs = contextlib.ExitStack()
        self._files: Path | None = None
        self._run: PrivateRun | None = None
        self._notes: tuple[str, ...] = ()

    @property
    def files(self) -> Path:
        """The folder that both halves read and write."""
        assert self._files is not None
        return self._files

    @property
    def notes(self) -> tuple[str, ...]:
        """Sentences on writes that could not be redirected until now."""
        return self._run.notes() if self._run is not None else self._notes

    def start(self) -> Ready:
        """Run the script up to the point where it is held.

        Raises:
            AdvisorError: It does not get there.
            ScriptFailed: It fails before.
        """
        name = target_name(self._request)
        self._spawn(is_analysed=False)
        # Reaching the first element may take long (preparing data, building a model), so it may use the whole budget.
        limit_s = max(0.0, self._deadline - time.monotonic())
        try:
            return self._wait_for(Ready, limit_s, is_silence=False)
        except (Hangs, OutOfTime):
            raise OutOfTime(
                f"{name} did not reach its first element within {limit_s:.0f} s; allow more time with --budget."
            ) from None
        except _Gone as gone:
            raise self._failure(gone.ended, is_ready=False) from None

    def measure(self, then: float = math.inf) -> int | None:
        """Run and profile the script instead, up to the end of its window.

        Args:
            then: The deadline of what follows, on the monotonic clock.

        Returns:
            None if it is held there, so that `begin` may follow; its exit code if it has ended.

        Raises:
            OutOfTime: It is still running at the deadline.
        """
        self._spawn(is_analysed=True)
        try:
            self._wait_for(Measured, self._deadline - time.monotonic(), is_silence=False)
        except Hangs:
            raise OutOfTime(f"{target_name(self._request)} was stopped at the deadline.") from None
        except _Gone:
            return self._child.returncode if self._child is not None else 0
        self._deadline = then
        return None

    def begin(
        self, deadline: float, on_progress: Callable[[Progress], None], consumer: str, lost: tuple[str, ...]
    ) -> Ready:
        """Use the process that was measured for trials.

        Args:
            deadline: As for the constructor, from now on.
            on_progress: As for the constructor, from now on.
            consumer: The call whose dataset the training consumes.
            lost: As in `Hold`.

        Raises:
            AdvisorError: The process has ended.
            CannotDo: It cannot be used.
            Hangs: It does not answer.
            OutOfTime: The deadline has come.
        """
        self._deadline, self._on_progress = deadline, on_progress
        return self.ask(Begin(consumer, lost), Ready, SILENCE_S.value)

    def _spawn(self, is_analysed: bool) -> None:
        self._on_progress(Progress("starting", text=target_name(self._request)))
        self._files = self._outputs.enter_context(temporary_folder("proof"))
        out, err = self._outputs.enter_context(outputs(self._request))
        self._run = self._outputs.enter_context(protected(self._request, self._files))
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        message = ProofRequest(
            session_request(self._request, reply_write),
            request_fd=request_read,
            files=self._files,
            consumer=self._hold.consumer_call,
            calls=self._hold.calls,
            hold_at=self._hold.hold_at,
            lost=self._hold.lost,
            is_analysed=is_analysed,
        )
        message_file = self._files / "request.json"
        message_file.write_text(encode_message(message), "utf-8")
        try:
            self._child = subprocess.Popen(
                [*self._run.command, sys.executable, str(_CHILD), str(message_file)],
                stdout=out,
                stderr=err,
                pass_fds=(request_read, reply_write),
                env={**environment(self._request), **self._run.variables},
            )
        finally:
            os.close(request_read)
            os.close(reply_write)
        self._to_child = os.fdopen(request_write, "wb", buffering=0)
        self._from_child = MessageLines(os.fdopen(reply_read, "rb", buffering=0), self._child)

    def ask(self, request: Request, wanted: type[R], silence_s: float) -> R:
        """Return the reply of that kind.

        Args:
            request: What to ask.
            wanted: The kind of the reply.
            silence_s: The longest time without a message.

        Raises:
            AdvisorError: The process ends.
            CannotDo: It reports a failure.
            Hangs: It sends no message for that time.
            OutOfTime: The deadline has come; the process has been ended.
        """
        assert self._to_child is not None
        with contextlib.suppress(BrokenPipeError):  # waiting for the reply reports how the child ended
            self._to_child.write((encode_message(request) + "\n").encode())
        try:
            return self._wait_for(wanted, silence_s, is_silence=True)
        except _Gone as gone:
            raise self._failure(gone.ended, is_ready=True) from None

    def end(self, error: BaseException | None = None, is_hanging: bool = False) -> None:
        """End the process and remove its files; a second call does nothing.

        It is asked to end; after an error it is interrupted like by Ctrl-C, so that exit handlers run; if it hangs, it is
        terminated.
        """
        child, self._child = self._child, None
        try:
            if child is not None:
                if is_hanging:
                    child.terminate()
                elif error is None:
                    with contextlib.suppress(OSError):
                        assert self._to_child is not None
                        self._to_child.write((encode_message(Quit()) + "\n").encode())
                    self._wait_for_end(child)
                is_late = time.monotonic() >= self._deadline and not isinstance(error, KeyboardInterrupt)
                stop(child, is_told=error is None or is_interrupt(error), is_hard=is_late)
        finally:
            if self._to_child is not None:
                with contextlib.suppress(OSError):
                    self._to_child.close()
            if self._from_child is not None:
                self._from_child.close()
            self._to_child = self._from_child = None
            if self._run is not None:
                self._notes, self._run = self._run.notes(), None
            self._outputs.close()
            self._files = None

    # -- messages

    def _wait_for(self, wanted: type[R], limit_s: float, is_silence: bool) -> R:
        """Wait for the reply of that kind: for `limit_s` seconds, or with `is_silence` for so long without any message."""
        deadline = time.monotonic() + limit_s
        ended: ScriptExit | None = None
        while True:
            if time.monotonic() >= self._deadline:
                self.end(is_hanging=True)
                raise OutOfTime(f"{target_name(self._request)} was stopped at its time limit.")
            message = self._receive()
            if message is None:
                if self._child is not None and self._child.poll() is not None:
                    raise _Gone(ended)
                if time.monotonic() > deadline:
                    raise Hangs
                continue
            if is_silence:
                deadline = time.monotonic() + limit_s
            match message:
                case Progress():
                    self._on_progress(message)
                case Failed():
                    raise CannotDo(message.text)
                case Ended():
                    ended = message.script_exit
                case _ if isinstance(message, wanted):
                    return message

    def _receive(self) -> Reply | None:
        """The next message; None if there is none in time, or if the script has written to our pipe."""
        assert self._from_child is not None
        reply: Reply | None = self._from_child.message(Reply)
        return reply

    def _failure(self, ended: ScriptExit | None, is_ready: bool) -> AdvisorError:
        """The error that describes how the process ended."""
        name = target_name(self._request)
        code = self._child.returncode if self._child is not None else 0
        if code < 0:
            return AdvisorError(f"{name} was killed by signal {-code} while it was held; no file was changed.")
        why = (ended and ended.exception) or f"exit code {code}"
        if is_ready:
            return AdvisorError(f"{name} ended while it was held ({why}).")
        if ended is not None and ended.is_failure:
            copy_to_stderr(self._request)
            return ScriptFailed(f"{name} failed before its first element: {why}.")
        call = self._hold.consumer_call
        if call is None:
            return AdvisorError(f"{name} consumed no dataset, so there is no pipeline to measure alone.")
        where = line_note(call.site)
        return AdvisorError(
            f"{name} did not consume the dataset of {call.method}{where} when it was run again, so its pipeline cannot be "
            "measured alone."
        )

    def _wait_for_end(self, child: subprocess.Popen[bytes]) -> None:
        """Wait while reading messages, so that the child does not block on a full pipe."""
        now = time.monotonic()
        deadline = now + min(QUIT_GRACE_S.value, max(LEAST_QUIT_GRACE_S.value, self._deadline - now))
        while child.poll() is None and time.monotonic() < deadline:
            self._receive()
