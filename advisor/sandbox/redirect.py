"""Redirects file access inside the script's process if the kernel does not allow a private view of the disk.

In: the working copies made by the launcher.  Out: Python's file functions, SQLite, h5py and TensorFlow's file system,
checkpoint and summary writers use the working copy for paths in a copied folder. TensorFlow's checkpoints and summaries elsewhere
are written to a folder that is removed after the run. Relative paths need no redirection, because the run's current folder is
the copy.

Writes of other native code to absolute paths are not redirected.
"""

from __future__ import annotations

import builtins
import functools
import importlib
import io
import json
import os
from collections.abc import Callable
from types import ModuleType
from typing import Any

from advisor.sandbox.launch_steps import REDIRECT
from advisor.sandbox.mounts import is_below

_ONE_PATH = (
    "access", "chmod", "listdir", "lstat", "mkdir", "open", "readlink", "remove", "rmdir", "scandir", "stat", "statvfs",
    "truncate", "unlink", "utime", "chdir", "mknod", "mkfifo",
)  # fmt: skip
_TWO_PATHS = ("link", "rename", "replace", "symlink")
_URI = "://"


class Redirection:
    """The mapping from paths to redirected paths in a run."""

    def __init__(self, copies: dict[str, str], left_out: list[str], covered: list[str], elsewhere: str) -> None:
        """Create a mapping.

        Args:
            copies: Folder -> its working copy.
            left_out: Paths in these folders that are not in the copies.
            covered: Folders whose files are removed after the run anyway.
            elsewhere: Folder for checkpoints and summaries outside of all these.
        """
        self._copies, self._left_out = copies, tuple(left_out)
        self._covered, self._elsewhere = tuple(covered), elsewhere

    def path(self, path: Any) -> Any:  # noqa: ANN401
        """Return the redirected path if `path` is absolute and in a copied folder; otherwise `path` itself."""
        text = _text(path)
        if text is None or not text.startswith("/"):
            return path
        plain = os.path.normpath(text)
        for folder, copy in self._copies.items():
            if is_below(plain, folder) and not any(is_below(plain, part) for part in self._left_out):
                moved = copy + text[len(folder) :] if text.startswith(folder) else copy + plain[len(folder) :]
                return os.fsencode(moved) if isinstance(path, bytes) else moved
        return path

    def written_path(self, path: Any) -> Any:  # noqa: ANN401
        """Return the path to use for files that TensorFlow writes. Outside the copies it is in the folder `elsewhere`."""
        moved = self.path(path)
        text = _text(moved)
        is_local = text is not None and text.startswith("/") and _URI not in text
        if not is_local or text is None or moved is not path or self._is_ours(text):
            return moved
        target = self._elsewhere + text
        os.makedirs(os.path.dirname(target), exist_ok=True)  # noqa: PTH103, PTH120  # the hooks are active here
        return target.encode() if isinstance(path, bytes) else target

    def read_path(self, path: Any) -> Any:  # noqa: ANN401
        """Return the path to use for files that TensorFlow reads: the redirected checkpoint, if this run wrote one."""
        moved = self.path(path)
        text = _text(moved)
        if text is not None and text.startswith("/") and moved is path:
            target = self._elsewhere + text
            if os.path.exists(target + ".index") or os.path.exists(target):  # noqa: PTH110
                return target
        return moved

    def _is_ours(self, text: str) -> bool:
        own = (self._elsewhere, *self._covered, *self._copies.values(), os.environ.get("TMPDIR") or self._elsewhere)
        return any(is_below(text, folder) for folder in own)


def redirect_if_told() -> Redirection | None:
    """Install the hooks in Python's modules if the launcher requested a redirection; return it."""
    text = os.environ.pop(REDIRECT, None)
    if text is None:
        return None
    redirection = Redirection(**json.loads(text))
    _install_in_python(redirection)
    return redirection


def install_in_tensorflow(redirection: Redirection) -> None:
    """Install the hooks in TensorFlow. Functions that this version does not have are skipped."""
    for name, hook in (
        ("tensorflow.python.lib.io._pywrap_file_io", _hook_file_system),
        ("tensorflow.python.ops.gen_summary_ops", _hook_summaries),
        ("tensorflow.python.checkpoint.checkpoint", _hook_checkpoints),
    ):
        try:
            hook(importlib.import_module(name), redirection)
        except (ImportError, AttributeError):
            continue


def install_in_h5py(module: ModuleType, redirection: Redirection) -> None:
    """Install the hook in h5py, which opens files in native code."""
    module.File.__init__ = _wrapped(module.File.__init__, redirection.path, (1,), ("name",))


def _install_in_python(redirection: Redirection) -> None:
    path = redirection.path
    for name in _ONE_PATH:
        if hasattr(os, name):
            setattr(os, name, _wrapped(getattr(os, name), path, (0,), ("path", "file")))
    for name in _TWO_PATHS:
        setattr(os, name, _wrapped(getattr(os, name), path, (0, 1), ("src", "dst")))
    os.supports_follow_symlinks = _renewed(os.supports_follow_symlinks)
    os.supports_dir_fd, os.supports_fd = _renewed(os.supports_dir_fd), _renewed(os.supports_fd)
    opened = _wrapped(io.open, path, (0,), ("file",))
    builtins.open = io.open = opened
    try:
        import sqlite3
        import sqlite3.dbapi2
    except ImportError:
        return
    connect = _wrapped(sqlite3.connect, path, (0,), ("database",))
    sqlite3.connect = sqlite3.dbapi2.connect = connect


def _renewed(functions: set[Any]) -> set[Any]:
    """Add the wrapped functions to a set of `os.supports_*`: they support the same features as the original ones."""
    wrapped = {getattr(os, function.__name__, function) for function in functions}
    return functions | wrapped


def _hook_file_system(module: ModuleType, redirection: Redirection) -> None:
    for name in dir(module):
        member = getattr(module, name)
        if name.startswith("_") or not callable(member) or name in ("TransactionToken", "FileStatistics"):
            continue
        if isinstance(member, type):
            if name in ("BufferedInputStream", "WritableFile"):
                member.__init__ = _wrapped(member.__init__, redirection.path, (1,), ())  # type: ignore[misc]
        else:
            setattr(module, name, _wrapped(member, redirection.path, (0, 1), ()))


def _hook_summaries(module: ModuleType, redirection: Redirection) -> None:
    for name in ("create_summary_file_writer", "create_summary_db_writer"):
        if hasattr(module, name):
            original = getattr(module, name)
            setattr(module, name, _wrapped(original, _of_tensor(redirection.written_path), (1,), ("logdir", "db_uri")))


def _hook_checkpoints(module: ModuleType, redirection: Redirection) -> None:
    saver = module.TrackableSaver
    saver.save = _wrapped(saver.save, _of_tensor(redirection.written_path), (1,), ("file_prefix",))
    saver.restore = _wrapped(saver.restore, redirection.read_path, (1,), ("save_path",))


def _of_tensor(change: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """Extend `change` to paths in eager string tensors."""

    def changed(path: Any) -> Any:  # noqa: ANN401
        if hasattr(path, "numpy") and getattr(path, "shape", None) == ():
            return change(path.numpy().decode())
        return change(path)

    return changed


def _wrapped(original: Any, change: Callable[[Any], Any], places: tuple[int, ...], names: tuple[str, ...]) -> Any:  # noqa: ANN401
    """Wrap a function so that `change` is applied to its path arguments.

    Args:
        original: The function.
        change: Returns the path to use for a path.
        places: Positions of the path arguments.
        names: Names of the path arguments.
    """

    @functools.wraps(original)
    def call(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        changed = list(args)
        for place in places:
            if place < len(changed):
                changed[place] = change(changed[place])
        for name in names:
            if name in kwargs:
                kwargs[name] = change(kwargs[name])
        return original(*changed, **kwargs)

    return call


def _text(path: Any) -> str | None:  # noqa: ANN401
    """Return the path as text; None for other objects, such as file descriptors."""
    if isinstance(path, str):
        return path
    if isinstance(path, bytes):
        return os.fsdecode(path)
    if hasattr(path, "__fspath__"):
        return _text(path.__fspath__())
    return None
