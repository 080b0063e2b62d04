"""Logs the files that a run writes, for runs without a complete private view of the disk.

In: an environment variable set by the launcher with the path of the log.  Out: the paths of the files, in the log.

File operations of Python code are recorded by an audit hook. Of native code, only files that are still open at the end of the run
are recorded.
"""

from __future__ import annotations

import contextlib
import os
import sys
from pathlib import Path
from typing import Any

from advisor.sandbox.launch_steps import WRITTEN

_LIMIT = 1000
"""Maximum number of files that are remembered."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_PATHS = {
    "os.mkdir": (0,), "os.remove": (0,), "os.rmdir": (0,), "os.rename": (0, 1), "os.link": (1,), "os.symlink": (1,),
    "os.truncate": (0,), "os.chmod": (0,), "os.utime": (0,), "shutil.copyfile": (1,), "sqlite3.connect": (0,),
}  # fmt: skip
"""Audit events for changes of files, and the positions of the arguments with their paths."""
_SYSTEM = ("/dev/", "/proc/", "/sys/")


class WriteLog:
    """Logs the changes that this process makes to files, from the creation of this object on."""

    def __init__(self, path: Path) -> None:
        self._paths: set[str] = set()
        self._handle = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)
        sys.addaudithook(self._see)

    def note_open_files(self) -> None:
        """Add all files that are currently open for writing, including those opened by native code."""
        with contextlib.suppress(OSError):
            for name in [link.name for link in Path("/proc/self/fd").iterdir()]:
                with contextlib.suppress(OSError, ValueError, IndexError):
                    path = str(Path(f"/proc/self/fd/{name}").readlink())
                    flags = Path(f"/proc/self/fdinfo/{name}").read_text().split("flags:")[1].split()[0]
                    if int(name) != self._handle and path.startswith("/") and int(flags, 8) & _WRITING:
                        self._add(path)

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if event == "open":
            path, mode, flags = args
            if isinstance(mode, str):
                is_writing = any(letter in mode for letter in "wax+")
            else:
                is_writing = isinstance(flags, int) and bool(flags & _WRITING)
            if is_writing:
                self._add(path)
        elif event in _PATHS:
            for number in _PATHS[event]:
                self._add(args[number])

    def _add(self, path: Any) -> None:  # noqa: ANN401
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str) or len(self._paths) >= _LIMIT or path == ":memory:":
            return
        path = os.path.abspath(path)  # noqa: PTH100  # pathlib is slower, and this is called for every file
        if path in self._paths or path.startswith(_SYSTEM):
            return
        self._paths.add(path)
        with contextlib.suppress(OSError):
            os.write(self._handle, os.fsencode(path) + b"\0")


def watch_writes() -> WriteLog | None:
    """Start to log if the launcher requested it; return the log."""
    path = os.environ.pop(WRITTEN, None)
    if path is None:
        return None
    try:
        return WriteLog(Path(path))
    except OSError:
        return None


def read_log(path: Path) -> tuple[str, ...]:
    """Return the paths in a log; none if it does not exist."""
    try:
        data = path.read_bytes()
    except OSError:
        return ()
    return tuple(os.fsdecode(part) for part in data.split(b"\0")[:-1])
