"""Runs a script or module as Python itself would, and records how it ended.

In: a path or module name and its arguments.  Out: `ScriptExit` and the exit code; tracebacks without the advisor's frames.
"""

from __future__ import annotations

import builtins
import importlib.machinery
import os
import re
import runpy
import sys
import threading
import types
from collections.abc import Callable, Sequence
from pathlib import Path
from types import TracebackType

from advisor.capture.stop_script import StopScript
from advisor.model.recording import ScriptExit
from advisor.model.text import one_line

_OURS = str(Path(__file__).resolve().parents[1]) + os.sep
_RUNPY = "<frozen runpy>"
_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
"""A colour of a terminal, as Keras puts it into messages."""


def prepare(script: Path | None, module: str | None, args: Sequence[str]) -> Callable[[], None]:
    """Set `sys.argv` and `sys.path[0]` for the script or module.

    Args:
        script: Path of a script or of a folder with a `__main__.py`. Ignored if `module` is given.
        module: Name of a module to run as `python -m module` would.
        args: Command-line arguments.

    Returns:
        A function that runs the target. It raises the errors of finding and compiling the target, too.
    """
    if module is not None:
        sys.argv = ["-m", *args]
        sys.path.insert(0, str(Path.cwd()))
        return lambda: _run_module(module)
    assert script is not None
    sys.argv = [str(script), *args]
    if script.is_dir():
        sys.path.insert(0, str(script))
        return lambda: _run_module("__main__")
    sys.path.insert(0, str(script.resolve().parent))
    return lambda: _run_file(str(script.absolute()))


def run(target: Callable[[], None]) -> tuple[ScriptExit, int]:
    """Run the target until it and its non-daemon threads have ended.

    Returns:
        How it ended, and the exit code that `python` would have returned.
    """
    outcome = _run(target)
    _join_threads()
    return outcome


def _run(target: Callable[[], None]) -> tuple[ScriptExit, int]:
    try:
        target()
    except StopScript:
        return ScriptExit("stopped"), 0
    except SystemExit as error:
        if error.code is None or isinstance(error.code, int):
            code = error.code or 0
        else:
            print(error.code, file=sys.stderr)
            code = 1
        return ScriptExit("exited", code), code
    except KeyboardInterrupt as error:
        _print(error)
        return ScriptExit("interrupted", 130, "KeyboardInterrupt"), 130
    except BaseException as error:
        _print(error)
        return ScriptExit("failed", 1, exception_line(error)), 1
    return ScriptExit("finished"), 0


def exception_line(error: BaseException) -> str:
    """Return the exception as `ValueError: message`, on one line of at most 500 characters.

    Of a message of several lines it holds the first two, and what follows a line that ends with a colon: Keras goes on with the
    arguments of the call, TensorFlow with the node. The traceback at the start of AutoGraph's messages is left out.

    Args:
        error: Any exception, also one whose message cannot be made.
    """
    name = type(error).__name__
    try:
        message = _COLOUR.sub("", str(error))
    except Exception:
        return name
    lines = _without_traceback([one_line(line) for line in message.splitlines() if line.strip()])
    kept = 2
    while kept < len(lines) and lines[kept - 1].endswith(":"):
        kept += 1
    line = " ".join(lines[:kept])
    return (line if line.startswith(f"{name}:") else f"{name}: {line}")[:500] if line else name


def _without_traceback(lines: list[str]) -> list[str]:
    """The lines after `in user code:` and the frames below it: each is a line with the file, and one with the source."""
    if lines[:1] != ["in user code:"]:
        return lines
    first = 1
    while lines[first : first + 1] and lines[first].startswith('File "'):
        first += 2
    return lines[first:] or lines


def without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """Return the traceback without the advisor's own frames."""
    if trace is None:
        return None
    rest = without_our_frames(trace.tb_next) if _depth(trace) < 500 else trace.tb_next
    filename = trace.tb_frame.f_code.co_filename
    if filename.startswith(_OURS) or filename == _RUNPY:
        return rest
    trace.tb_next = rest
    return trace


def _depth(trace: TracebackType | None) -> int:
    depth = 0
    while trace is not None and depth < 500:
        trace, depth = trace.tb_next, depth + 1
    return depth


def _print(error: BaseException) -> None:
    seen: set[int] = set()
    link: BaseException | None = error
    while link is not None and id(link) not in seen:
        seen.add(id(link))
        link.__traceback__ = without_our_frames(link.__traceback__)
        link = link.__cause__ or link.__context__
    sys.excepthook(type(error), error, error.__traceback__)


def _run_file(path: str) -> None:
    loader = importlib.machinery.SourceFileLoader("__main__", path)
    code = compile(loader.get_data(path), path, "exec", dont_inherit=True)
    _execute(code, path, loader, None, None)


def _run_module(name: str) -> None:
    spec, code = runpy._get_module_details(name)[1:3]  # type: ignore[attr-defined]  # as pdb does: -m has no public API
    sys.argv[0] = spec.origin
    _execute(code, spec.origin, spec.loader, spec, spec.parent)


def _execute(code: types.CodeType, path: str, loader: object, spec: object, package: str | None) -> None:
    main = types.ModuleType("__main__")
    main.__dict__.update(
        __file__=path, __builtins__=builtins, __cached__=None, __loader__=loader, __spec__=spec, __package__=package
    )
    sys.modules["__main__"] = main
    exec(code, main.__dict__)


def _join_threads() -> None:
    """Wait for the script's non-daemon threads, as Python does at exit, before the script counts as ended."""
    for thread in threading.enumerate():
        if not thread.daemon and thread is not threading.current_thread() and thread.is_alive():
            thread.join()
