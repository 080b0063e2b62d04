"""What runs in a worker process: its preparation, and one call after the other.

In: pickled calls.  Out: pickled results. The process ends when its parent has ended, however that happened.
"""

from __future__ import annotations

import io
import os
import pickle
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path

PARENT_CHECK_S = 0.2
"""Time between two looks at the parent."""
_STDIN, _STDOUT, _STDERR = range(3)

Call = tuple[Callable[..., object], tuple[object, ...], dict[str, object]]
Outcome = tuple[object, Exception | None]
"""What a call returned, and what it raised."""


def prepare(parent: int, on_interrupt: signal.Handlers) -> None:
    """Prepare this process, before its first call.

    Args:
        parent: Process id of the parent.
        on_interrupt: `SIG_DFL` if Ctrl-C ends the process, `SIG_IGN` if the parent does.
    """
    threading.Thread(target=_end_with, args=(parent,), name="advisor-parent", daemon=True).start()
    signal.signal(signal.SIGINT, on_interrupt)
    if hasattr(signal, "pthread_sigmask"):
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {signal.SIGINT})  # blocked during the start of the process
    os.dup2(os.open(os.devnull, os.O_RDONLY), _STDIN)
    os.dup2(_STDERR, _STDOUT)  # stdout is reserved for the report
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(line_buffering=True)  # the process may be killed, with what it has not written yet
    os.environ.pop("PYTHONSAFEPATH", None)  # it was for the start of this process, not for those that a call starts
    _import_like_a_command()


def answer(call: bytes) -> bytes:
    """Return the pickled `Outcome` of a pickled `Call`."""
    outcome: Outcome
    try:
        work, args, kwargs = pickle.loads(call)
        try:
            outcome = work(*args, **kwargs), None
        except Exception as error:
            outcome = None, error
    except (
        BaseException
    ):  # its module cannot be imported here, or it called `sys.exit`, which loky would do in the parent, too
        traceback.print_exc()
        os._exit(1)
    try:
        return pickle.dumps(outcome)
    except Exception as error:
        return pickle.dumps((None, error))


def _end_with(parent: int) -> None:
    if sys.platform == "win32":  # where a process keeps the id of a parent that has ended
        import psutil

        psutil.Process(parent).wait()
    else:
        while os.getppid() == parent:
            time.sleep(PARENT_CHECK_S)
    os._exit(1)


def _import_like_a_command() -> None:
    """Put the folder of the user's script last: a `numpy.py` beside it is not NumPy.

    loky has copied the parent's path, which begins with that folder.
    """
    first = [str(Path(__file__).parents[2]), *filter(None, os.environ.get("PYTHONPATH", "").split(os.pathsep))]
    sys.path[:] = [*first, *sys.path[1:], *sys.path[:1]]
