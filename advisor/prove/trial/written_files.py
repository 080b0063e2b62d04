"""Lists the files that the script's Python code opens for writing, by an audit hook.

In: nothing.  Out: paths. Writes by native code (TensorFlow's checkpoints and summaries) raise no audit event.
"""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Any

_LIMIT = 1000
"""Maximum number of files that are remembered."""
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_TRUNC
_NOT_THE_SCRIPTS = ("__pycache__", "__autograph_generated_file", ".pyc")
_SYSTEM = ("/dev/", "/proc/", "/sys/")


class WrittenFiles:
    """Collects paths from its construction until `stop`; the audit hook cannot be removed, but does nothing after that."""

    def __init__(self) -> None:
        self._paths: dict[str, None] = {}
        self._is_on = True
        sys.addaudithook(self._see)

    def stop(self) -> tuple[str, ...]:
        """Stop collecting.

        Returns:
            The absolute paths of those files that exist, in the order in which they were first opened.
        """
        self._is_on = False
        return tuple(path for path in self._paths if Path(path).is_file())

    def _see(self, event: str, args: tuple[Any, ...]) -> None:
        if event != "open" or not self._is_on or len(self._paths) >= _LIMIT:
            return
        path, mode, flags = args
        if isinstance(path, bytes):
            path = os.fsdecode(path)
        if not isinstance(path, str):
            return
        if isinstance(mode, str):
            is_writing = any(letter in mode for letter in "wax+")
        else:
            is_writing = isinstance(flags, int) and bool(flags & _WRITING)
        if is_writing and not any(part in path for part in _NOT_THE_SCRIPTS) and not path.startswith(_SYSTEM):
            self._paths[str(Path(path).absolute())] = None
