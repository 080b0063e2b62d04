"""Starts a script in an instrumented child process and waits for its run folder.

This is the parent's side, which never imports TensorFlow.

In: a `CaptureRequest`.  Out: the path of the run folder; progress is reported through a callback while the child runs.

Example: `python -m advisor.capture.launch [--out DIR] script.py args...` prints the path of the run folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import IO

from advisor.capture.request import CANNOT_WRITE, CaptureRequest, Progress
from advisor.capture.script_process import (
    check_target,
    copy_to_stderr,
    environment,
    let_end,
    outputs,
    protected,
    session_request,
    stop,
    target_name,
)
from advisor.capture.stop_script import DID_NOT_END, LAST_RESORT
from advisor.model.codec import decode, decode_message, encode, encode_message
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.live import LiveSample, LiveWindow
from advisor.model.recording import Recording, ScriptExit
from advisor.model.termination import is_interrupt
from advisor.sandbox.private_run import PrivateRun

Message = Progress | LiveSample | LiveWindow
"""What the child sends."""
RECORDING = "recording.json"
FAILURE = "failure.json"
"""Written by the child instead of a recording if the script failed before anything was measured."""
CHILD = Path(__file__).with_name("child.py")
_PRIVATE_HINT = (
    " The script ran on a private view of the disk; if this caused the error, run it on the real files with --in-place."
)
_PROBE_BYTES = 64 << 10
"""A disk with less free space than this counts as full: a recording alone is about this large."""
_POLL_S = 0.1


def capture(
    request: CaptureRequest,
    on_progress: Callable[[Progress], None],
    on_live: Callable[[LiveSample | LiveWindow], None] = lambda message: None,
    streams: tuple[int, int] | None = None,
    requests_fd: int | None = None,
    child: Path = CHILD,
) -> Path:
    """Run the script until its window is measured (or until it ends) and return the run folder.

    Args:
        request: What to run and when to measure.
        on_progress: Called with each progress message from the child.
        on_live: Called with each sample and each later window, if `request.live_s` is set.
        streams: File descriptors for the script's stdout and stderr; None: as the request says.
        requests_fd: File descriptor of a pipe from which the child reads requests for later windows; see `SessionRequest`.
        child: The program that runs the script with the hooks installed.

    Raises:
        AdvisorError: The script cannot be run (it does not exist, TensorFlow is not installed) or the run folder
            cannot be written.
        ScriptFailed: The script failed before anything was measured. Its traceback has already been written to stderr.
        OutOfTime: The script was still running at `request.deadline`.
        KeyboardInterrupt: The user pressed Ctrl-C. The child has been stopped, and the run folder has been removed if
            this call created it.
    """
    is_new = prepare_folder(request)
    on_progress(Progress("starting", text=target_name(request)))
    write_errors: list[str] = []

    def handle(message: Message) -> None:
        if isinstance(message, LiveSample | LiveWindow):
            on_live(message)
        elif message.phase == CANNOT_WRITE:
            write_errors.append(message.text)
        else:
            on_progress(message)

    chosen = outputs(request) if streams is None else contextlib.nullcontext(streams)
    with chosen as (out, err), protected(request) as run:
        try:
            exit_code = _run_child(request, run, out, err, handle, requests_fd, child)
        except KeyboardInterrupt:
            if is_new:
                shutil.rmtree(request.out, ignore_errors=True)
            raise
        notes = run.notes()
    return finished_run(request, exit_code, notes, write_errors)


def prepare_folder(request: CaptureRequest) -> bool:
    """Make the run folder, or remove the recording of an earlier run from it; return whether it was made.

    Raises:
        AdvisorError: The script cannot be run, or the folder cannot be written.
    """
    check_target(request)
    is_new = not request.out.exists()
    try:
        request.out.mkdir(parents=True, exist_ok=True)
        for stale in (RECORDING, FAILURE):
            (request.out / stale).unlink(missing_ok=True)
    except OSError as error:
        raise AdvisorError(
            f"Cannot write to {request.out}: {error.strerror}; choose another folder with --out."
        ) from None
    return is_new


def finished_run(request: CaptureRequest, exit_code: int, notes: tuple[str, ...], write_errors: Sequence[str]) -> Path:
    """Return the run folder of a script that was measured.

    Args:
        request: The request with the run folder.
        exit_code: That of the script's process; 0 if it is held.
        notes: Sentences on writes that could not be redirected.
        write_errors: Files that the child failed to write, with the reason.

    Raises:
        AdvisorError: There is no recording, because the folder cannot be written or TensorFlow is not installed.
        ScriptFailed: There is none, because the script failed. Its traceback has already been written to stderr.
    """
    if not (request.out / RECORDING).exists():
        _check_disk(request, write_errors)
    folder = _outcome(request, exit_code)
    if notes:
        _add_disk_notes(folder / RECORDING, notes)
    return folder


def _check_disk(request: CaptureRequest, write_errors: Sequence[str]) -> None:
    """Raise AdvisorError if nothing was recorded because the run folder cannot be written.

    The script may have failed for the same reason, because its output is written there too.

    Args:
        request: The request with the run folder.
        write_errors: Files that the child failed to write, with the reason.
    """
    if write_errors:
        raise AdvisorError(f"{write_errors[0]}; free some disk space or choose another folder with --out.")
    probe = request.out / ".probe"
    try:
        probe.write_bytes(bytes(_PROBE_BYTES))
    except OSError as error:
        raise AdvisorError(
            f"{request.out} cannot be written: {error.strerror or error}; free some disk space or choose another folder "
            "with --out."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def _run_child(
    request: CaptureRequest,
    run: PrivateRun,
    out: IO[bytes] | int,
    err: IO[bytes] | int,
    on_message: Callable[[Message], None],
    requests_fd: int | None,
    program: Path,
) -> int:
    read_end, write_end = os.pipe()
    message = session_request(request, write_end, requests_fd)
    try:
        child = subprocess.Popen(
            [*run.command, sys.executable, str(program), encode_message(message)],
            stdout=out,
            stderr=err,
            pass_fds=(write_end,) if requests_fd is None else (write_end, requests_fd),
            env={**environment(request), **run.variables},
        )
    finally:
        os.close(write_end)
    try:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            _follow(child, pipe, on_message, request.deadline)
        return child.wait()
    except BaseException as error:
        if request.passes_output and isinstance(error, KeyboardInterrupt):
            let_end(child, is_told=is_interrupt(error))
        else:
            stop(child, is_told=is_interrupt(error), is_hard=isinstance(error, OutOfTime))
        raise


def _follow(
    child: subprocess.Popen[bytes],
    pipe: IO[bytes],
    on_message: Callable[[Message], None],
    deadline: float | None = None,
) -> None:
    """Forward the child's messages until it ends.

    Waits for the child and not for the end of the pipe, because grandchildren may keep the pipe open.

    Raises:
        OutOfTime: The child is still running at `deadline` (an instant of `time.monotonic`).
    """
    incomplete_line = b""
    is_open = True
    while True:
        has_ended = child.poll() is not None
        if not has_ended and deadline is not None and time.monotonic() >= deadline:
            raise OutOfTime("The script was stopped at the deadline.")
        if is_open:
            ready, _, _ = select.select([pipe], [], [], 0 if has_ended else _POLL_S)
            if ready:
                data = pipe.read(65536)
                is_open = bool(data)
                *lines, incomplete_line = (incomplete_line + data).split(b"\n")
                for line in lines:
                    _report(line, on_message)
                continue
        if has_ended:
            return
        if not is_open:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_S)


def _report(line: bytes, on_message: Callable[[Message], None]) -> None:
    message: Message
    try:
        message = decode_message(line, Message)
    except ValueError:  # the script has written to our pipe
        return
    on_message(message)


def _outcome(request: CaptureRequest, exit_code: int) -> Path:
    """Return the run folder, or raises the error that explains why there is no recording in it."""
    if (request.out / RECORDING).exists():
        if exit_code < 0:
            _mark_as_killed(request.out / RECORDING, -exit_code)
        return request.out
    failure = _failure(request.out / FAILURE)
    name = target_name(request)
    if failure is not None and "No module named 'tensorflow'" in failure.exception:
        raise AdvisorError(
            f"{name} needs TensorFlow, which is not installed for {sys.executable}: "
            "pip install tensorflow (or tfdata-advisor[tensorflow])."
        )
    if failure is not None and failure.kind == "interrupted":
        raise KeyboardInterrupt
    copy_to_stderr(request)
    if failure is not None:
        exception = (failure.exception or f"exit code {failure.code}").rstrip(".")
        hint = "" if request.is_in_place or "[Errno" not in exception else _PRIVATE_HINT
        raise _script_failed(f"{name} failed before anything was measured: {exception}.{hint}", exit_code)
    how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
    raise _script_failed(f"{name} {how} before anything was measured.", exit_code)


def _script_failed(sentence: str, exit_code: int) -> ScriptFailed:
    error = ScriptFailed(sentence)
    error.script_code = exit_code if exit_code >= 0 else 128 - exit_code
    return error


def _mark_as_killed(path: Path, signal_number: int) -> None:
    """Correct how the script ended: the recording was written after the window, before the script was killed."""
    recording = decode(path.read_bytes(), Recording, str(path))
    if recording.script_exit.kind == "stopped" and signal_number == LAST_RESORT:
        warnings = (*recording.warnings, DID_NOT_END)
        path.write_bytes(encode(dataclasses.replace(recording, warnings=warnings)))
        return
    script_exit = ScriptExit("killed", 128 + signal_number, f"signal {signal_number}")
    path.write_bytes(encode(dataclasses.replace(recording, script_exit=script_exit)))


def _add_disk_notes(path: Path, notes: tuple[str, ...]) -> None:
    recording = decode(path.read_bytes(), Recording, str(path))
    completed = dataclasses.replace(recording, warnings=(*recording.warnings, *notes), disk_notes=notes)
    path.write_bytes(encode(completed))


def _failure(path: Path) -> ScriptExit | None:
    try:
        failure = decode_message(path.read_bytes(), ScriptExit)
    except (OSError, ValueError):
        return None
    path.unlink(missing_ok=True)
    return failure


def main(argv: list[str]) -> int:
    """Minimal command line: writes progress to stderr and the path of the run folder to stdout."""
    out = Path("advisor-run")
    if argv[:1] == ["--out"]:
        out, argv = Path(argv[1]), argv[2:]
    if not argv:
        print("usage: python -m advisor.capture.launch [--out DIR] script.py args...", file=sys.stderr)
        return 2
    is_module = argv[0] == "-m"
    request = CaptureRequest(
        out=out,
        script=None if is_module else Path(argv[0]),
        module=argv[1] if is_module else None,
        args=tuple(argv[2:] if is_module else argv[1:]),
    )
    try:
        print(capture(request, lambda p: print(p.phase, p.done, p.total or "", p.text, file=sys.stderr)))
    except AdvisorError as error:
        print(error, file=sys.stderr)
        return error.exit_code
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
