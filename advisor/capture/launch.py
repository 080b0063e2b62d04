"""Run a script in a child process that watches it; the parent's half, without TensorFlow.

In: a `CaptureRequest`.  Out: the run folder's path; progress through a callback while the child works.

Try it: `python -m advisor.capture.launch [--out DIR] script.py args...` prints the run folder.
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
"""Written by the child in place of a recording when the script failed before anything was measured."""
_CHILD = Path(__file__).with_name("child.py")
_PRIVATE_HINT = " It ran with a private view of the disk; if that is the cause, --in-place runs it on the real files."
_PROBE_BYTES = 64 << 10
"""A disk without so much room is full: a recording alone takes about as much."""
_POLL_S = 0.1
_INTERRUPT_GRACE_S = 3.0
"""A child in the same terminal got the Ctrl-C too; it has this long to end before it is told again."""
_TERMINATE_GRACE_S = 10.0
_HARD_GRACE_S = 1.5
"""Past its deadline a child has this long for its `finally` blocks."""


def capture(request: CaptureRequest, on_progress: Callable[[Progress], None]) -> Path:
    """Run the script until its window is measured (or to its end) and return the run folder.

    Raises AdvisorError when the script cannot be run (not found, no TensorFlow), ScriptFailed when it failed before
    anything was measured; its own traceback has then been shown on stderr. KeyboardInterrupt passes through after the child
    has been stopped, and leaves no folder that was not there before.
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
    problems: list[str] = []

    def hear(progress: Progress) -> None:
        if progress.phase == CANNOT_WRITE:
            problems.append(progress.text)
        else:
            on_progress(progress)

    with outputs(request) as (out, err), protected(request) as run:
        try:
            code = _run_child(request, run, out, err, hear)
        except KeyboardInterrupt:
            if is_new:
                shutil.rmtree(request.out, ignore_errors=True)
            raise
        notes = run.notes()
    if not (request.out / RECORDING).exists():
        _check_disk(request, problems)
    folder = _outcome(request, code)
    if notes:
        _add_warnings(folder / RECORDING, notes)
    return folder


@contextlib.contextmanager
def protected(request: CaptureRequest, *keep: Path) -> Iterator[PrivateRun]:
    """How to start the script so that it leaves no trace, unless it runs in place; its run folder and `keep` stay real.

    Raises AdvisorError where no temporary folder can be made.
    """
    target = Target(request.script, request.args, (request.out, *keep), request.is_in_place)
    with contextlib.ExitStack() as stack:
        try:
            run = stack.enter_context(private_run(target))
        except OSError as error:
            raise AdvisorError(
                f"Cannot make a temporary folder in {tempfile.gettempdir()} ({error.strerror or error}); set TMPDIR to "
                "another one."
            ) from None
        yield run


def _check_disk(request: CaptureRequest, problems: list[str]) -> None:
    """Raise AdvisorError if nothing was recorded because the run folder could not be written.

    A script whose own output goes there may have failed of it too. `problems`: what the child could not write.
    """
    if problems:
        raise AdvisorError(f"{problems[0]}; make room or choose another folder with --out.")
    probe = request.out / ".probe"
    try:
        probe.write_bytes(bytes(_PROBE_BYTES))
    except OSError as error:
        raise AdvisorError(
            f"{request.out} cannot be written: {error.strerror or error}; make room or choose another folder with --out."
        ) from None
    finally:
        with contextlib.suppress(OSError):
            probe.unlink(missing_ok=True)


def check_target(request: CaptureRequest) -> None:
    """Raise AdvisorError unless there is something to run."""
    if (request.script is None) == (request.module is None):
        raise AdvisorError("Name one script or one module to run.")
    if request.script is not None:
        if not request.script.exists():
            raise AdvisorError(f"There is no file {request.script}; give the path of the script to run.")
        if not request.script.is_dir() and not is_regular(request.script):
            raise AdvisorError(f"{request.script} is not a regular file; give the path of the script to run.")
        if request.script.is_dir() and not (request.script / "__main__.py").exists():
            raise AdvisorError(
                f"{request.script} is a folder without a __main__.py; give the path of the script to run."
            )


def target_name(request: CaptureRequest) -> str:
    """The script or module as the user named it."""
    return f"-m {request.module}" if request.module is not None else str(request.script)


@contextlib.contextmanager
def outputs(request: CaptureRequest) -> Iterator[tuple[IO[bytes] | int, IO[bytes] | int]]:
    """Where the script's stdout and stderr go: files in the run folder, or our stderr (stdout stays the report's)."""
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
    """The request as the child reads it."""
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
    """The script's environment: ours, and TensorFlow's start-up noise off unless the user has said otherwise."""
    return {"TF_CPP_MIN_LOG_LEVEL": "2", **os.environ}


def _follow(
    child: subprocess.Popen[bytes],
    pipe: IO[bytes],
    on_progress: Callable[[Progress], None],
    deadline: float | None = None,
) -> None:
    """Hand on the child's messages until it ends; grandchildren may keep the pipe open, so its end is not awaited.

    Raises OutOfTime at the deadline.
    """
    rest = b""
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
                *lines, rest = (rest + data).split(b"\n")
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
    """End the child as Ctrl-C would, then harder. `is_told`: it is ending already. `is_hard`: within two seconds."""
    gently = (
        (None, _INTERRUPT_GRACE_S if is_told else 0.0),
        (signal.SIGINT, _TERMINATE_GRACE_S),
        (signal.SIGTERM, 2.0),
        (signal.SIGKILL, 2.0),
    )
    for number, grace in ((signal.SIGINT, _HARD_GRACE_S), (signal.SIGKILL, 2.0)) if is_hard else gently:
        if child.poll() is not None:
            return
        if number is not None:
            child.send_signal(number)
        try:
            child.wait(grace)
        except subprocess.TimeoutExpired:
            continue
        except KeyboardInterrupt:
            child.kill()
            child.wait()
            return


def _outcome(request: CaptureRequest, code: int) -> Path:
    if (request.out / RECORDING).exists():
        if code < 0:
            _note_kill(request.out / RECORDING, -code)
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
        _show(request.out / "script.err")
    if failure:
        exception = failure.get("exception", "unknown error")
        hint = "" if request.is_in_place or "[Errno" not in exception else _PRIVATE_HINT
        raise ScriptFailed(f"{name} failed before anything was measured: {exception}.{hint}")
    how = f"was killed by signal {-code}" if code < 0 else f"ended with exit code {code}"
    raise ScriptFailed(f"{name} {how} before anything was measured.")


def _note_kill(path: Path, number: int) -> None:
    """The recording was written after the window; what it says of the script's end is no longer true."""
    recording = decode(path.read_bytes(), Recording, str(path))
    ended = ScriptExit("killed", 128 + number, f"signal {number}")
    path.write_bytes(encode(dataclasses.replace(recording, script_exit=ended)))


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


def _show(path: Path) -> None:
    """The script's own stderr, as it wrote it."""
    with contextlib.suppress(OSError):
        sys.stderr.write(shorten_lines(path.read_text("utf-8", errors="replace")))
        sys.stderr.flush()


def main(argv: list[str]) -> int:
    """The smallest front end: progress on stderr, the run folder's path on stdout."""
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
