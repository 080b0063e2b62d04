"""A proof session: holds the user's script at the request for its first element, and tries edits on its dataset.

In: how to run the script, and the call whose dataset its training consumes.  Out: a `Trial` per fix; run folders of edited
pipelines for further analysis. This half never imports TensorFlow; the child's half is `advisor.prove.trial.proof_run`.
"""

from __future__ import annotations

import contextlib
import os
import select
import subprocess
import sys
import time
from collections.abc import Callable, Collection
from pathlib import Path
from types import TracebackType
from typing import IO, TypeVar

from advisor.capture.request import CaptureRequest, Progress
from advisor.capture.script_process import (
    check_target,
    copy_to_stderr,
    environment,
    outputs,
    protected,
    session_request,
    stop,
    target_name,
)
from advisor.host.calibration.proof import LEAST_QUIT_GRACE_S, MAX_HANGS, QUIT_GRACE_S, SILENCE_S, TRIAL_S
from advisor.model.call_graph import CallGraph
from advisor.model.calls import Call
from advisor.model.codec import decode_message, encode_message
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Edit, Safety
from advisor.model.recording import ScriptExit
from advisor.model.termination import is_interrupt
from advisor.prove.trial.messages import (
    Calls,
    CompareNumbers,
    Ended,
    Failed,
    NumbersCompared,
    Profile,
    Profiled,
    ProofRequest,
    Quit,
    ReadCalls,
    Ready,
    Reply,
    Request,
    Tried,
    TryFix,
    edits_to_json,
)
from advisor.prove.trial.service_messages import ServiceRequest
from advisor.prove.trial.text_messages import TextRequest
from advisor.prove.trial.trial_result import REFUSED, Trial
from advisor.sandbox.private_run import PrivateRun
from advisor.sandbox.temporary import temporary_folder

_CHILD = Path(__file__).parent / "trial" / "proof_child.py"
_POLL_S = 0.1

R = TypeVar("R")


class _Hangs(Exception):
    """The child has sent no message for too long."""


class _Failed(Exception):
    """The child could not fulfil a request; it continues to serve."""


class ProofSession:
    """Context manager: entering runs the script up to its first element, leaving stops it.

    Only files in `request.out` remain afterwards.

    Raises:
        AdvisorError: The script does not reach its first element, or its process ends during the session.
        ScriptFailed: The script fails before its first element.
    """

    def __init__(
        self,
        request: CaptureRequest,
        consumer_call: Call | None,
        budget_s: float,
        on_progress: Callable[[Progress], None],
        calls: tuple[Call, ...] = (),
        silence_s: float = SILENCE_S.value,
        hold_at: int | None = None,
        lost: Collection[str] = (),
        as_if_step_ns: int = 0,
    ) -> None:
        """Create a session.

        Args:
            request: How to run the script; the run folders of `profile` and the script's output go to `request.out`.
            consumer_call: The call whose dataset the training consumes. If None, the first dataset consumed by the script's
                own code (or Keras' `fit`) counts, except for inspections of one or two elements.
            budget_s: Seconds for the whole session; whatever still runs afterwards is stopped with OutOfTime.
            on_progress: Called with progress messages.
            calls: Calls of the first run, used to match calls that are numbered differently in this run.
            silence_s: Seconds without a message after which a pipeline counts as hanging.
            hold_at: Hold the script at the consumption of this number (`CallGraph.consumption`), whatever the dataset.
            lost: Ids of the calls after which a cache is lost in every epoch of the training, because the script makes the
                dataset again.
            as_if_step_ns: Length of the wait after each element that `profile` makes, in place of a training step.
        """
        self._request, self._consumer_call, self._budget_s = request, consumer_call, budget_s
        self._on_progress, self._calls, self._silence_s = on_progress, calls, silence_s
        self._hold_at, self._lost, self._as_if_step_ns = hold_at, tuple(lost), as_if_step_ns
        self.written_files: tuple[str, ...] = ()
        """Absolute paths of files that the script's Python code opened for writing before the first element. Writes by
        TensorFlow's native code (checkpoints, summaries) are not detected.
        """
        self.runs = 0
        """Number of runs of the script: one, and one more after each pipeline that hung."""
        self.notes: tuple[str, ...] = ()
        """Sentences on writes that could not be redirected; known at the end of the session."""
        self._deadline = 0.0
        self._child: subprocess.Popen[bytes] | None = None
        self._to_child: IO[bytes] | None = None
        self._from_child: IO[bytes] | None = None
        self._rest = b""
        self._files: Path | None = None
        self._hangs = 0
        self._profiles = 0
        self._outputs = contextlib.ExitStack()

    def __enter__(self) -> ProofSession:
        check_target(self._request)
        self._deadline = time.monotonic() + self._budget_s
        try:
            self._request.out.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise AdvisorError(f"Cannot write to {self._request.out}: {error.strerror}.") from None
        try:
            self._start()
        except BaseException as reason:
            self._end(reason)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._end(error)

    # -- requests

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
    ) -> Trial:
        """Measure `current` against `current + candidate`, and compare the elements of the latter with the original ones.

        Args:
            current: Edits already kept.
            candidate: Edits to try, applied after the current ones.
            claimed: The claimed effect of all these edits on the data.
            predicted_memory_bytes: Additional memory predicted for the candidate.
        """
        seconds = max(1.0, min(TRIAL_S.value, self._deadline - time.monotonic()))
        request = TryFix(edits_to_json(current), edits_to_json(candidate), claimed, predicted_memory_bytes, seconds)
        try:
            return self._ask(request, Tried).trial
        except _Hangs:
            self._hangs += 1
            self._end(is_hanging=True)
            return Trial(
                REFUSED, note=f"The edited pipeline was stopped: it produced no element for {self._silence_s:.0f} s."
            )
        except _Failed as error:
            return Trial(REFUSED, note=str(error), is_replayable=False)

    def profile(self, edits: tuple[Edit, ...]) -> Path:
        """Profile the edited pipeline alone.

        Returns:
            A run folder with the profile and a recording that uses the call ids of the first run.

        Raises:
            AdvisorError: The pipeline cannot be rebuilt or measured; the session continues.
        """
        self._profiles += 1
        out = self._request.out / f"edited-{self._profiles}"
        try:
            self._ask(Profile(edits_to_json(edits), out.resolve(), self._as_if_step_ns), Profiled)
        except _Hangs:
            self._hangs += 1
            self._end(is_hanging=True)
            raise AdvisorError(f"The edited pipeline produced no element for {self._silence_s:.0f} s.") from None
        except _Failed as error:
            raise AdvisorError(str(error)) from None
        return out

    def compare_numbers(
        self, edits: tuple[Edit, ...], numbered: tuple[Edit, ...], step_ns: int, seconds: float
    ) -> NumbersCompared:
        """Compare the pipeline with AUTOTUNE and the one with fixed numbers, both feeding imagined steps.

        Raises:
            AdvisorError: They cannot be compared; the session continues, unless the pipeline hangs.
        """
        request = CompareNumbers(edits_to_json(edits), edits_to_json(numbered), step_ns, seconds)
        return self.ask(request, NumbersCompared)

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original pipeline against all kept edits."""
        return self.try_fix((), edits, claimed)

    def call_graph(self, edits: tuple[Edit, ...] = ()) -> CallGraph:
        """Return the calls that the script has made so far.

        Args:
            edits: The kept edits, for the graphs of the functions that they wrap.

        Raises:
            AdvisorError: They cannot be read.
        """
        try:
            return self._ask(ReadCalls(edits_to_json(edits)), Calls).graph
        except _Hangs:
            self._end(is_hanging=True)
            raise AdvisorError(f"The script's calls could not be read within {self._silence_s:.0f} s.") from None
        except _Failed as error:
            raise AdvisorError(str(error)) from None

    @property
    def files(self) -> Path:
        """The folder that both halves read and write, while the child lives."""
        if self._files is None:
            raise AdvisorError(f"{target_name(self._request)} is no longer held.")
        return self._files

    def ask(self, request: TextRequest | ServiceRequest | CompareNumbers, wanted: type[R]) -> R:
        """Return the reply to a request about the held text, or about its pipeline on workers.

        Raises:
            AdvisorError: It cannot be fulfilled; the session continues, unless the pipeline hangs.
        """
        if self._child is None:
            raise AdvisorError(f"{target_name(self._request)} is no longer held.")
        try:
            return self._ask(request, wanted)
        except _Hangs:
            self._end(is_hanging=True)
            raise AdvisorError(f"The pipeline produced no element for {self._silence_s:.0f} s.") from None
        except _Failed as error:
            raise AdvisorError(str(error)) from None

    # -- the child

    def _start(self) -> None:
        """Run the script up to the point where it is held."""
        self._on_progress(Progress("starting", text=target_name(self._request)))
        self.runs += 1
        self._files = self._outputs.enter_context(temporary_folder("proof"))
        out, err = self._outputs.enter_context(outputs(self._request))
        run = self._outputs.enter_context(protected(self._request, self._files))
        request_read, request_write = os.pipe()
        reply_read, reply_write = os.pipe()
        message = ProofRequest(
            session_request(self._request, reply_write),
            request_fd=request_read,
            files=self._files,
            consumer=self._consumer_call,
            calls=self._calls,
            hold_at=self._hold_at,
            lost=self._lost,
        )
        message_file = self._files / "request.json"
        message_file.write_text(encode_message(message), "utf-8")
        try:
            self._child = subprocess.Popen(
                [*run.command, sys.executable, str(_CHILD), str(message_file)],
                stdout=out,
                stderr=err,
                pass_fds=(request_read, reply_write),
                env={**environment(self._request), **run.variables},
            )
        finally:
            os.close(request_read)
            os.close(reply_write)
        self._to_child = os.fdopen(request_write, "wb", buffering=0)
        self._from_child = os.fdopen(reply_read, "rb", buffering=0)
        self._rest = b""
        # Reaching the first element may take long (preparing data, building a model), so it may use the whole budget.
        limit_s = max(0.0, self._deadline - time.monotonic())
        try:
            ready = self._wait_for(Ready, limit_s, is_silence=False)
        except (_Hangs, OutOfTime):
            raise OutOfTime(
                f"{target_name(self._request)} did not reach its first element within {limit_s:.0f} s; "
                "allow more time with --budget."
            ) from None
        self.written_files = ready.written
        self._outputs.callback(self._collect_notes, run)

    def _ask(self, request: Request, wanted: type[R]) -> R:
        if time.monotonic() >= self._deadline:
            raise OutOfTime(f"There is no time left for trials on {target_name(self._request)}.")
        if self._child is None:
            if self._hangs > MAX_HANGS.value:
                raise AdvisorError(f"{self._hangs} edited pipelines hung; nothing more is tried.")
            self._start()
        assert self._to_child is not None
        with contextlib.suppress(BrokenPipeError):  # waiting for the reply reports how the child ended
            self._to_child.write((encode_message(request) + "\n").encode())
        return self._wait_for(wanted, self._silence_s, is_silence=True)

    def _wait_for(self, wanted: type[R], limit_s: float, is_silence: bool) -> R:
        """Wait for the reply of that kind.

        Raises:
            AdvisorError: The child reports a failure.
            ScriptFailed: The script fails.
            _Hangs: There is no reply within `limit_s` seconds.
        """
        deadline = time.monotonic() + limit_s
        ended: ScriptExit | None = None
        while True:
            if time.monotonic() >= self._deadline:
                self._end(is_hanging=True)
                raise OutOfTime(f"{target_name(self._request)} was stopped at its time limit.")
            message = self._receive()
            if message is None:
                if self._child is not None and self._child.poll() is not None:
                    raise self._failure(ended, is_ready=wanted is not Ready)
                if time.monotonic() > deadline:
                    raise _Hangs
                continue
            if is_silence:
                deadline = time.monotonic() + limit_s
            match message:
                case Progress():
                    self._on_progress(message)
                case Failed():
                    raise _Failed(message.text)
                case Ended():
                    ended = message.script_exit
                case _ if isinstance(message, wanted):
                    return message

    def _receive(self) -> Reply | None:
        """The next message, or None if there is none within `_POLL_S`."""
        assert self._from_child is not None
        if b"\n" not in self._rest:
            ready, _, _ = select.select([self._from_child], [], [], _POLL_S)
            data = self._from_child.read(65536) if ready else b""
            if ready and not data and self._child is not None:
                with contextlib.suppress(subprocess.TimeoutExpired):
                    self._child.wait(_POLL_S)
            self._rest += data or b""
        line, newline, rest = self._rest.partition(b"\n")
        if not newline:
            return None
        self._rest = rest
        with contextlib.suppress(ValueError):  # the script has written to our pipe
            reply: Reply = decode_message(line, Reply)
            return reply
        return None

    def _failure(self, ended: ScriptExit | None, is_ready: bool) -> AdvisorError:
        """The error that describes how the child ended."""
        name = target_name(self._request)
        code = self._child.returncode if self._child is not None else 0
        if code < 0:
            return AdvisorError(
                f"{name} was killed by signal {-code} while it was held at its first element; no file was changed."
            )
        why = (ended and ended.exception) or f"exit code {code}"
        if is_ready:
            return AdvisorError(f"{name} ended while it was held at its first element ({why}).")
        if ended is not None and (ended.kind == "failed" or (ended.kind == "exited" and code)):
            copy_to_stderr(self._request)
            return ScriptFailed(f"{name} failed before its first element: {why}.")
        call = self._consumer_call
        if call is None:
            return AdvisorError(f"{name} consumed no dataset, so there is no pipeline to measure alone.")
        where = f" (line {call.site.line})" if call.site is not None else ""
        return AdvisorError(
            f"{name} did not consume the dataset of {call.method}{where} when it was run again, so its pipeline cannot be "
            "measured alone."
        )

    def _end(self, error: BaseException | None = None, is_hanging: bool = False) -> None:
        """End the child and remove its files.

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
            for pipe in (self._to_child, self._from_child):
                if pipe is not None:
                    with contextlib.suppress(OSError):
                        pipe.close()
            self._to_child = self._from_child = None
            self._outputs.close()
            self._files = None

    def _collect_notes(self, run: PrivateRun) -> None:
        self.notes = run.notes()

    def _wait_for_end(self, child: subprocess.Popen[bytes]) -> None:
        """Wait while reading messages, so that the child does not block on a full pipe."""
        now = time.monotonic()
        deadline = now + min(QUIT_GRACE_S.value, max(LEAST_QUIT_GRACE_S.value, self._deadline - now))
        while child.poll() is None and time.monotonic() < deadline:
            self._receive()
