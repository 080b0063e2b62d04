"""Starts a script in an instrumented child process and waits for its run folder.

This is the parent's side, which never imports TensorFlow.

In: a `CaptureRequest`.  Out: the path of the run folder; progress is reported through a callback while the child runs.

Example: `python -m advisor.capture.launch [--out DIR] script.py args...` prints the path of the run folder.
"""

from __future__ import annotations

import contextlib
import dataclasses
import json
import os
import select
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import IO, Any

from advisor.capture.request import CANNOT_WRITE, CaptureRequest, Progress
from advisor.model.codec import decode, encode
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.long_lines import shorten_lines
from advisor.model.recording import Recording, ScriptExit
from advisor.model.regular_files import is_regular
from advisor.sandbox.private_run import PrivateRun, Target, private_run

RECORDING = "recording.json"
FAILURE = "failure.json"
"""Written by the child instead of a recording if the script failed before anything was measured."""
_CHILD = Path(__file__).with_name("child.py")
_PRIVATE_HINT = (
    " The script ran on a private view of the disk; if this caused the error, run it on the real files with --in-place."
)
_PROBE_BYTES = 64 << 10
"""A disk with less free space than this counts as full: a recording alone is about this large."""
_POLL_S = 0.1
_INTERRUPT_GRACE_S = 3.0
"""Time for a child to end after a Ctrl-C in the terminal, which it receives too, before SIGINT is sent to it."""
_TERMINATE_GRACE_S = 10.0
_HARD_GRACE_S = 1.5
"""Time for a child to run its `finally` blocks after its deadline."""


def capture(request: CaptureRequest, on_progress: Callable[[Progress], None]) -> Path:
    """Run the script until its window is measured (or until it ends) and return the run folder.

    Args:
        request: What to run and when to measure.
        on_progress: Called with each progress message from the child.

    Raises:
        AdvisorError: The script cannot be run (it does not exist, TensorFlow is not installed) or the run folder
            cannot be written.
        ScriptFailed: The script failed before anything was measured. Its traceback has already been written to stderr.
        OutOfTime: The script was still running at `request.deadline`.
        KeyboardInterrupt: The user pressed Ctrl-C. The child has been stopped, and the run folder has been removed if
            this call created it.
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
    on_progress(Progress("starting", text=target_name(request)))
    write_errors: list[str] = []

    def handle(progress: Progress) -> None:
        if progress.phase == CANNOT_WRITE:
            write_errors.append(progress.text)
        else:
            on_progress(progress)

    with outputs(request) as (out, err), protected(request) as run:
        try:
            exit_code = _run_child(request, run, out, err, handle)
        except KeyboardInterrupt:
            if is_new:
                shutil.rmtree(request.out, ignore_errors=True)
            raise
        notes = run.notes()
    if not (request.out / RECORDING).exists():
        _check_disk(request, write_errors)
    folder = _outcome(request, exit_code)
    if notes:
        _add_warnings(folder / RECORDING, notes)
    return folder


@contextlib.contextmanager
def protected(request: CaptureRequest, *keep: Path) -> Iterator[PrivateRun]:
    """Prepare a private view of the disk for the script, so that its writes are discarded, unless it runs in place.

    Args:
        request: The script to run. Its run folder is excluded from the private view.
        *keep: Further paths to which writes go to the real disk.

    Yields:
        How to start the child process.

    Raises:
        AdvisorError: No temporary folder can be created.
    """
    target = Target(request.script, request.args, (request.out, *keep), request.is_in_place)
    with contextlib.ExitStack() as stack:
        try:
            run = stack.enter_context(private_run(target))
        except OSError as error:
            raise AdvisorError(
                f"Cannot create a temporary folder in {tempfile.gettempdir()} ({error.strerror or error}); set TMPDIR to "
                "another folder."
            ) from None
        yield run


def _check_disk(request: CaptureRequest, write_errors: list[str]) -> None:
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


def check_target(request: CaptureRequest) -> None:
    """Check that the request names a script or module that can be run.

    Raises:
        AdvisorError: It does not.
    """
    if (request.script is None) == (request.module is None):
        raise AdvisorError("Specify one script or one module to run.")
    if request.script is not None:
        if not request.script.exists():
            raise AdvisorError(f"There is no file {request.script}; specify the path of the script to run.")
        if not request.script.is_dir() and not is_regular(request.script):
            raise AdvisorError(f"{request.script} is not a regular file; specify the path of the script to run.")
        if request.script.is_dir() and not (request.script / "__main__.py").exists():
            raise AdvisorError(
                f"{request.script} is a folder without a __main__.py; specify the path of the script to run."
            )


def target_name(request: CaptureRequest) -> str:
    """Return the script or module as given on the command line, e.g. `train.py` or `-m package.train`."""
    return f"-m {request.module}" if request.module is not None else str(request.script)


@contextlib.contextmanager
def outputs(request: CaptureRequest) -> Iterator[tuple[IO[bytes] | int, IO[bytes] | int]]:
    """Open the destinations of the script's stdout and stderr.

    They are files in the run folder or, with `request.show_output`, the stderr of this process: its stdout is reserved
    for the report.

    Raises:
        AdvisorError: The files cannot be created.
    """
    if request.show_output:
        sys.stderr.flush()
        yield 2, 2
        return
    with contextlib.ExitStack() as stack:
        try:
            out, err = (stack.enter_context((request.out / name).open("wb")) for name in ("script.out", "script.err"))
        except OSError as error:
            raise AdvisorError(
                f"Cannot write to {request.out}: {error.strerror or error}; choose another folder with --out."
            ) from None
        yield out, err


def _run_child(
    request: CaptureRequest,
    run: PrivateRun,
    out: IO[bytes] | int,
    err: IO[bytes] | int,
    on_progress: Callable[[Progress], None],
) -> int:
    read_end, write_end = os.pipe()
    message = request_message(request, write_end)
    try:
        child = subprocess.Popen(
            [*run.command, sys.executable, str(_CHILD), json.dumps(message)],
            stdout=out,
            stderr=err,
            pass_fds=(write_end,),
            env={**environment(), **run.variables},
        )
    finally:
        os.close(write_end)
    try:
        with os.fdopen(read_end, "rb", buffering=0) as pipe:
            _follow(child, pipe, on_progress, request.deadline)
        return child.wait()
    except BaseException as error:
        stop(child, is_told=type(error) is KeyboardInterrupt, is_hard=isinstance(error, OutOfTime))
        raise


def request_message(request: CaptureRequest, progress_fd: int) -> dict[str, Any]:
    """Return the request in the JSON form that the child reads.

    Args:
        request: The request.
        progress_fd: File descriptor of the pipe to which the child writes progress messages.
    """
    return {
        "out": str(request.out.resolve()),
        "script": None if request.script is None else str(request.script),
        "module": request.module,
        "args": list(request.args),
        "steps": request.steps,
        "warmup": request.warmup,
        "seconds": request.seconds,
        "to_end": request.to_end,
        "max_events": request.max_events,
        "ceiling_for": request.ceiling_for,
        "is_profiled": request.is_profiled,
        "overlay": [[str(path.resolve()) for path in pair] for pair in request.overlay],
        "progress_fd": progress_fd,
    }


def environment() -> dict[str, str]:
    """Return the environment of this process for the script, by default without TensorFlow's start-up log messages."""
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}


def _follow(
    child: subprocess.Popen[bytes],
    pipe: IO[bytes],
    on_progress: Callable[[Progress], None],
    deadline: float | None = None,
) -> None:
    """Forward the child's progress messages until it ends.

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
                    _report(line, on_progress)
                continue
        if has_ended:
            return
        if not is_open:
            with contextlib.suppress(subprocess.TimeoutExpired):
                child.wait(_POLL_S)


def _report(line: bytes, on_progress: Callable[[Progress], None]) -> None:
    try:
        message = json.loads(line)
        progress = Progress(str(message["phase"]), int(message["done"]), message["total"], str(message["text"]))
    except (ValueError, KeyError, TypeError):
        return
    on_progress(progress)


def stop(child: subprocess.Popen[bytes], is_told: bool = True, is_hard: bool = False) -> None:
    """End the child: SIGINT first, then stronger signals.

    Args:
        child: The process to end.
        is_told: The child has already received a SIGINT, so it is given a few seconds before it is sent another one.
        is_hard: Kill the child within two seconds.
    """
    gentle_signals = (
        (None, _INTERRUPT_GRACE_S if is_told else 0.0),
        (signal.SIGINT, _TERMINATE_GRACE_S),
        (signal.SIGTERM, 2.0),
        (signal.SIGKILL, 2.0),
    )
    hard_signals = ((signal.SIGINT, _HARD_GRACE_S), (signal.SIGKILL, 2.0))
    for signal_number, grace_s in hard_signals if is_hard else gentle_signals:
        if child.poll() is not None:
            return
        if signal_number is not None:
            child.send_signal(signal_number)
        try:
            child.wait(grace_s)
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt:
            child.kill()
            child.wait()
            return


def _outcome(request: CaptureRequest, exit_code: int) -> Path:
    """Return the run folder, or raises the error that explains why there is no recording in it."""
    if (request.out / RECORDING).exists():
        if exit_code < 0:
            _mark_as_killed(request.out / RECORDING, -exit_code)
        return request.out
    failure = _failure(request.out / FAILURE)
    name = target_name(request)
    if failure.get("kind") == "no tensorflow":
        raise AdvisorError(
            f"{name} needs TensorFlow, which is not installed for {sys.executable}: "
            "pip install tensorflow (or tfdata-advisor[tensorflow])."
        )
    if failure.get("kind") == "interrupted":
        raise KeyboardInterrupt
    if not request.show_output:
        _copy_to_stderr(request.out / "script.err")
    if failure:
        exception = failure.get("exception", "unknown error")
        hint = "" if request.is_in_place or "[Errno" not in exception else _PRIVATE_HINT
        raise ScriptFailed(f"{name} failed before anything was measured: {exception}.{hint}")
    how = f"was killed by signal {-exit_code}" if exit_code < 0 else f"ended with exit code {exit_code}"
    raise ScriptFailed(f"{name} {how} before anything was measured.")


def _mark_as_killed(path: Path, signal_number: int) -> None:
    """Correct how the script ended: the recording was written after the window, before the script was killed."""
    recording = decode(path.read_bytes(), Recording, str(path))
    script_exit = ScriptExit("killed", 128 + signal_number, f"signal {signal_number}")
    path.write_bytes(encode(dataclasses.replace(recording, script_exit=script_exit)))


def _add_warnings(path: Path, texts: tuple[str, ...]) -> None:
    recording = decode(path.read_bytes(), Recording, str(path))
    path.write_bytes(encode(dataclasses.replace(recording, warnings=(*recording.warnings, *texts))))


def _failure(path: Path) -> dict[str, str]:
    try:
        failure = json.loads(path.read_text("utf-8"))
    except (OSError, ValueError):
        return {}
    path.unlink(missing_ok=True)
    return failure if isinstance(failure, dict) else {}


def _copy_to_stderr(path: Path) -> None:
    with contextlib.suppress(OSError):
        sys.stderr.write(shorten_lines(path.read_text("utf-8", errors="replace")))
        sys.stderr.flush()


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
