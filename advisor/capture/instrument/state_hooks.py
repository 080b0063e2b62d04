"""Notifies a `StateWatch` when the script assigns variables, changes tables or opens files for writing.

In: the imported `tensorflow` module.  Out: calls of `StateWatch.assigned` and `opened_for_writing`. The overhead is a
dictionary lookup per call of a wrapped method and a string comparison per audit event.
"""

from __future__ import annotations

import functools
import inspect
import os
import sys
from collections.abc import Callable
from types import FrameType, ModuleType
from typing import Any

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.state_watch import Place, StateWatch

_ASSIGNING = ("assign", "assign_add", "assign_sub", "batch_scatter_update", "count_up_to")
_SCATTERING = "scatter_"
_TABLE_METHODS = ("insert", "insert_or_assign", "remove", "erase")
_WRITING = os.O_WRONLY | os.O_RDWR | os.O_APPEND | os.O_TRUNC
_NOT_THE_SCRIPTS = ("__pycache__", "__autograph_generated_file")


def watch_writes(watch: StateWatch, finder: SiteFinder) -> None:
    """Watch the files that Python opens for writing, renames, truncates and removes.

    This uses an audit hook. Audit hooks cannot be removed, so it ignores all events after the watch was closed.

    Args:
        watch: Is notified.
        finder: Finds the line of the script.
    """

    def on_audit_event(event: str, args: tuple[Any, ...]) -> None:
        if event not in ("open", "os.rename", "os.remove", "os.truncate") or not watch.is_open:
            return
        if event == "open" and not _is_writing(args[1], args[2]):
            return
        frame = sys._getframe(1)
        for path in args[: 2 if event == "os.rename" else 1]:
            if isinstance(path, (str, bytes, os.PathLike)):
                name = os.fsdecode(path)
                if not any(part in name for part in _NOT_THE_SCRIPTS):
                    watch.opened_for_writing(name, lambda: _place(finder, frame))

    sys.addaudithook(on_audit_event)


def watch_tensorflow(
    tensorflow: ModuleType, watch: StateWatch, finder: SiteFinder, warn: Callable[[str], None]
) -> None:
    """Wrap the functions of TensorFlow that assign variables, change tables or write files.

    Args:
        tensorflow: The imported module.
        watch: Is notified.
        finder: Finds the line of the script.
        warn: Called with the text of each warning.
    """
    try:
        from tensorflow.python.lib.io import file_io, tf_record
        from tensorflow.python.ops import lookup_ops, resource_variable_ops

        for variable in (resource_variable_ops.BaseResourceVariable, resource_variable_ops.ResourceVariable):
            names = [*_ASSIGNING, *(name for name in vars(variable) if name.startswith(_SCATTERING))]
            _wrap(variable, names, "was assigned", watch, finder)  # the subclass overrides some of them
        for table in (lookup_ops.MutableHashTable, lookup_ops.DenseHashTable):
            _wrap(table, _TABLE_METHODS, "was changed", watch, finder)
        _wrap_writer(file_io.FileIO, "__init__", watch, finder, lambda mode: any(letter in mode for letter in "wa+"))
        _wrap_writer(tf_record.TFRecordWriter, "__init__", watch, finder)
        _wrap_function(tensorflow.io, "write_file", watch, finder, ((0, "filename"),))
        _wrap_function(tensorflow.io.gfile, "copy", watch, finder, ((1, "dst"),))
        _wrap_function(tensorflow.io.gfile, "rename", watch, finder, ((0, "src"), (1, "dst")))
        _wrap_function(tensorflow.io.gfile, "remove", watch, finder, ((0, "path"),))
    except (ImportError, AttributeError) as error:
        warn(
            f"Assignments to variables and tables cannot be recorded ({error}); they are compared from epoch to epoch."
        )


def _is_writing(mode: object, flags: object) -> bool:
    if isinstance(mode, str):
        return any(letter in mode for letter in "wax+")
    return isinstance(flags, int) and bool(flags & _WRITING)


def _wrap(cls: type, names: Any, how: str, watch: StateWatch, finder: SiteFinder) -> None:  # noqa: ANN401
    for name in names:
        original = cls.__dict__.get(name)
        if inspect.isfunction(original):
            setattr(cls, name, _changing(original, how, watch, finder))


def _changing(original: Callable[..., Any], how: str, watch: StateWatch, finder: SiteFinder) -> Callable[..., Any]:
    @functools.wraps(original)
    def changed(owner: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        result = original(owner, *args, **kwargs)
        frame = sys._getframe(1)
        watch.assigned(owner, how, lambda: _place(finder, frame))
        return result

    return changed


def _wrap_writer(
    cls: type, name: str, watch: StateWatch, finder: SiteFinder, is_writing: Callable[[str], bool] = lambda mode: True
) -> None:
    original = cls.__dict__[name]

    @functools.wraps(original)
    def opened(writer: Any, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if is_writing(str(kwargs.get("mode", args[1] if len(args) > 1 else ""))):
            path = kwargs.get("name", kwargs.get("path", args[0] if args else None))
            _notify(watch, finder, path, sys._getframe(1))
        return original(writer, *args, **kwargs)

    setattr(cls, name, opened)


def _wrap_function(
    module: Any,  # noqa: ANN401
    name: str,
    watch: StateWatch,
    finder: SiteFinder,
    paths: tuple[tuple[int, str], ...],
) -> None:
    """Wrap a function that writes to the files named by `paths`: position and name of the parameters."""
    original = getattr(module, name)

    @functools.wraps(original)
    def written(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        frame = sys._getframe(1)
        for position, parameter in paths:
            _notify(watch, finder, kwargs.get(parameter, args[position] if len(args) > position else None), frame)
        return original(*args, **kwargs)

    setattr(module, name, written)


def _notify(watch: StateWatch, finder: SiteFinder, path: Any, frame: FrameType) -> None:  # noqa: ANN401
    """Notify the watch that a file is opened for writing. A path in a graph tensor is unknown and ignored."""
    try:
        value = path.numpy() if hasattr(path, "numpy") else path
        if isinstance(value, (str, bytes, os.PathLike)):
            watch.opened_for_writing(os.fsdecode(value), lambda: _place(finder, frame))
    except Exception:  # wrong arguments in the script: TensorFlow raises the error
        return


def _place(finder: SiteFinder, frame: FrameType) -> Place:
    try:
        site = finder.place(frame).site
    except Exception:  # the line is optional
        return "", 0
    return ("", 0) if site is None else (site.file, site.line)
