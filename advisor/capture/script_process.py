"""The child process of a script: what a capture and a proof need to start it and to end it.

In: a `CaptureRequest`.  Out: the message that starts the session, the environment, the files of the script's output and its
private view of the disk; the end of the process. This is the parent's side, which never imports TensorFlow.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import signal
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import IO

from advisor.capture.request import CaptureRequest, SessionRequest
from advisor.host.calibration.capture import HARD_GRACE_S, INTERRUPT_GRACE_S, KILL_GRACE_S, TERMINATE_GRACE_S
from advisor.model.errors import AdvisorError
from advisor.model.long_lines import shorten_lines
from advisor.model.regular_files import is_regular
from advisor.sandbox.private_run import PrivateRun, Target, private_run


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


def session_request(request: CaptureRequest, progress_fd: int, requests_fd: int | None = None) -> SessionRequest:
    """Return the message that starts the session of this request.

    Args:
        request: The request.
        progress_fd: File descriptor of the pipe to which the child writes progress messages.
        requests_fd: File descriptor of the pipe with requests for windows; None: there are none.
    """
    overlay = tuple((path.resolve(), text.resolve()) for path, text in request.overlay)
    return SessionRequest(
        dataclasses.replace(request, out=request.out.resolve(), overlay=overlay), progress_fd, requests_fd
    )


def environment(request: CaptureRequest | None = None) -> dict[str, str]:
    """Return the environment of this process for the script, by default without TensorFlow's start-up log messages.

    Args:
        request: The request, whose seed is also that of Python's hashes; None: there is no seed.
    """
    seed = None if request is None else request.start_seed
    hashes = {} if seed is None else {"PYTHONHASHSEED": str(seed)}
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ, **hashes}


@contextlib.contextmanager
def outputs(request: CaptureRequest) -> Iterator[tuple[IO[bytes] | int, IO[bytes] | int]]:
    """Open the destinations of the script's stdout and stderr.

    They are files in the run folder or, with `request.show_output`, the stderr of this process: its stdout is reserved
    for the report. With `request.passes_output`, they are stdout and stderr of this process.

    Raises:
        AdvisorError: The files cannot be created.
    """
    if request.passes_output or request.show_output:
        sys.stdout.flush()
        sys.stderr.flush()
        yield (1 if request.passes_output else 2), 2
        return
    with contextlib.ExitStack() as stack:
        try:
            out, err = (stack.enter_context((request.out / name).open("wb")) for name in ("script.out", "script.err"))
        except OSError as error:
            raise AdvisorError(
                f"Cannot write to {request.out}: {error.strerror or error}; choose another folder with --out."
            ) from None
        yield out, err


def copy_to_stderr(request: CaptureRequest) -> None:
    """Show what the script wrote to its stderr, unless it was shown at once."""
    if not (request.show_output or request.passes_output):
        with contextlib.suppress(OSError):
            text = (request.out / "script.err").read_text("utf-8", errors="replace")
            sys.stderr.write(shorten_lines(text))
            sys.stderr.flush()


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


def let_end(child: subprocess.Popen[bytes], is_told: bool) -> None:
    """Let a training that the user interrupted end by itself, however long it takes to write its last checkpoint.

    The second Ctrl-C after the first one stops the child as `stop` does.

    Args:
        child: The process.
        is_told: The child has received the signal as well, as from Ctrl-C in a terminal. Otherwise SIGTERM is passed on.
    """
    if not is_told:
        with contextlib.suppress(ProcessLookupError):
            child.terminate()
    for _ in range(2):
        try:
            child.wait()
            return
        except KeyboardInterrupt:
            continue
    stop(child)


def stop(child: subprocess.Popen[bytes], is_told: bool = True, is_hard: bool = False) -> None:
    """End the child: SIGINT first, then stronger signals.

    Args:
        child: The process to end.
        is_told: The child has already received a SIGINT, so it is given a few seconds before it is sent another one.
        is_hard: Kill the child within two seconds.
    """
    gentle_signals = (
        (None, INTERRUPT_GRACE_S.value if is_told else 0.0),
        (signal.SIGINT, TERMINATE_GRACE_S.value),
        (signal.SIGTERM, KILL_GRACE_S.value),
        (signal.SIGKILL, KILL_GRACE_S.value),
    )
    hard_signals = ((signal.SIGINT, HARD_GRACE_S.value), (signal.SIGKILL, KILL_GRACE_S.value))
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
