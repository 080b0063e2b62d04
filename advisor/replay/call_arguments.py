"""The arguments with which a recorded call is made again.

In: the call's own arguments and what edits make of them.  Out: new ones; `CannotReplay` where they cannot be given.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from advisor.model.finding import Code, Value
from advisor.replay.edited import CannotReplay

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
FILE_ARGUMENT = {"cache": "filename", "snapshot": "path"}
"""Methods that write files, and the parameter that says where."""
_LITERALS = {"True": True, "False": False, "None": None}


def value_of(value: Value, tensorflow: Any) -> Any:  # noqa: ANN401
    """What a value of an edit is at run time. Source text is a literal or a dotted name below `tf`; nothing is executed."""
    if not isinstance(value, Code):
        return value
    if value.text in _LITERALS:
        return _LITERALS[value.text]
    root, *names = value.text.split(".")
    found = tensorflow if root == "tf" else None
    for name in names:
        found = getattr(found, name, None) if name.isidentifier() else None
    if found is None:
        raise CannotReplay(value.text, "it is no name that TensorFlow has")
    return found


def with_changes(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changes: Mapping[str, Any]
) -> Arguments:
    """The arguments with some exchanged or added. `name`: of the call, for people."""
    if not changes:
        return args, kwargs
    parameters = inspect.signature(function).parameters
    names = [n for n, p in parameters.items() if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    positional, keywords = list(args), dict(kwargs)
    for parameter, value in changes.items():
        if parameter not in parameters:
            raise CannotReplay(name, f"it takes no argument {parameter}")
        if parameter in names[: len(args)]:
            positional[names.index(parameter)] = value
        else:
            keywords[parameter] = value
    return tuple(positional), keywords


def with_own_files(
    name: str,
    method: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    own: Path | None,
    is_touched: bool,
) -> Arguments:
    """A file cache or snapshot at `own`; the script's stays as it is, and is read where it is complete."""
    parameter = FILE_ARGUMENT.get(method)
    if parameter is None:
        return args, kwargs
    bound = inspect.signature(function).bind(*args, **kwargs)
    path = bound.arguments.get(parameter)
    if isinstance(path, os.PathLike):
        path = os.fspath(path)
    if not isinstance(path, str) or not path:
        return args, kwargs
    if (method == "cache" and Path(f"{path}.index").exists()) or (
        method == "snapshot" and not is_touched and Path(path).exists()
    ):
        return args, kwargs
    if own is None:
        raise CannotReplay(name, f"it writes to {path}")
    bound.arguments[parameter] = str(own)
    return bound.args, bound.kwargs
