"""Runs the command on every bad input, one after another in this process, within bounds of memory and time.

In: a folder.  Out: `results.jsonl` in it: exit code, seconds and both streams per case. Started by `test_table.py`, so that
what breaks it - no memory left, a signal, a stuck read - shows as rows that are missing.
"""

from __future__ import annotations

import contextlib
import io
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

MAX_BYTES = 3 << 30
"""Address space; the interpreter with NumPy and its like takes about a third of it before it has read anything."""
MAX_SECONDS = 60
"""Of CPU time, of which a process that shares its core with another needs up to twice as much."""
MAX_WAIT_SECONDS = 300
"""Of any time: a read that waits for ever takes no CPU."""


NOBODY = 65_534
"""The usual number of the user who owns nothing."""


class Stuck(BaseException):
    """The alarm rang; no `except Exception` may swallow it."""


def ring(signum, frame):
    raise Stuck


@contextlib.contextmanager
def as_stranger():
    """Root may read everything: be nobody for a while. Anybody else stays."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(NOBODY)
    try:
        yield
    finally:
        os.seteuid(user)


def run(argv: list[str]) -> tuple[int | str, str, str]:
    """Exit code (or what ended it) and both streams."""
    from advisor.cli import main

    out, err = io.TextIOWrapper(io.BytesIO(), "utf-8"), io.TextIOWrapper(io.BytesIO(), "utf-8")
    code: int | str
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        try:
            code = main(argv)
        except Stuck:
            code = "stuck"
        except BaseException as error:
            code = f"{type(error).__name__}: {error}"
    texts = []
    for stream in (out, err):
        stream.flush()
        texts.append(stream.buffer.getvalue().decode("utf-8", "backslashreplace"))
    return code, *texts


def run_all(folder: Path, names: list[str]) -> None:
    """Make and run the named cases; all of them where none is named."""
    from tests.hostile.cases import CASES

    resource.setrlimit(resource.RLIMIT_AS, (MAX_BYTES, MAX_BYTES))
    signal.signal(signal.SIGALRM, ring)
    signal.signal(signal.SIGPROF, ring)
    with (folder / "results.jsonl").open("w", encoding="utf-8") as results:
        for name in names or CASES:
            case = CASES[name]
            place = (
                Path(tempfile.mkdtemp()) if case.is_strangers else folder / name
            )  # pytest's folder is its user's alone
            place.mkdir(exist_ok=True)
            place.chmod(0o755)
            target = case.make(place)
            began = time.monotonic()
            signal.setitimer(signal.ITIMER_PROF, MAX_SECONDS)
            signal.alarm(MAX_WAIT_SECONDS)
            command = ["analyze", *case.options, str(target)]
            if not case.is_strangers:  # who may not write in this folder
                command[1:1] = ["--json", str(folder / f"{name}.json")]
            with as_stranger() if case.is_strangers else contextlib.nullcontext():
                code, out, err = run(command)
            if case.is_strangers:
                subprocess.run(["chmod", "-R", "u+rwx", place], check=True)
                shutil.rmtree(place)
            signal.alarm(0)
            signal.setitimer(signal.ITIMER_PROF, 0)
            row = {"name": name, "code": code, "seconds": time.monotonic() - began, "out": out, "err": err}
            results.write(json.dumps(row) + "\n")
            results.flush()


if __name__ == "__main__":
    run_all(Path(sys.argv[1]), sys.argv[2:])
