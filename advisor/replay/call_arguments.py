"""Computes the arguments with which a recorded call is replayed.

In: the original arguments and the changes made by edits.  Out: new arguments, or `CannotReplay` if that is not possible.
"""

from __future__ import annotations

import inspect
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from advisor.model.edits import Code, Value
from advisor.replay.edited import CannotReplay

Arguments = tuple[tuple[Any, ...], dict[str, Any]]
FILE_ARGUMENT = {"cache": "filename", "snapshot": "path"}
"""Methods that write files -> the parameter with the path."""
INTEGERS = {"tf.data.AUTOTUNE": -1, "tf.int64.max": 2**63 - 1}
"""Names of integers -> their values, as they are recorded. Source: `dataset_ops.AUTOTUNE = -1`."""
_LITERALS = {"True": True, "False": False, "None": None}


def value_of(value: Value, tensorflow: Any) -> Any:  # noqa: ANN401
    """Return the run-time value of an edit's value, without executing code.

    Args:
        value: A value, or source text: a literal or a dotted name that starts with `tf`.
        tensorflow: The imported module.

    Raises:
        CannotReplay: TensorFlow does not have this name.
    """
    if not isinstance(value, Code):
        return value
    if value.text in _LITERALS:
        return _LITERALS[value.text]
    root, *names = value.text.split(".")
    attribute = tensorflow if root == "tf" else None
    for name in names:
        attribute = getattr(attribute, name, None) if name.isidentifier() else None
    if attribute is None:
        raise CannotReplay(value.text, "TensorFlow does not have this name")
    return attribute


def with_changes(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], changes: Mapping[str, Any]
) -> Arguments:
    """Replace or add arguments of a call.

    Args:
        name: Name of the call for error messages.
        function: The called function.
        args: Positional arguments.
        kwargs: Keyword arguments.
        changes: Parameter -> new value.

    Raises:
        CannotReplay: The function does not have one of the parameters.
    """
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


def with_function(
    name: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    wrap: Callable[[Callable[..., Any]], Callable[..., Any]],
) -> Arguments:
    """Replace the user function of a `map` by one that wraps it.

    Args:
        name: Name of the call for error messages.
        function: The called method.
        args: Positional arguments.
        kwargs: Keyword arguments.
        wrap: Returns the new function.

    Raises:
        CannotReplay: The call has no user function.
    """
    bound = inspect.signature(function).bind(*args, **kwargs)
    bound.arguments["map_func"] = wrap(function_passed(name, function, args, kwargs))
    return bound.args, bound.kwargs


def function_passed(
    name: str, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Callable[..., Any]:
    """Return the user function of a `map` or `flat_map`.

    Args:
        name: Name of the call for error messages.
        function: The called method.
        args: Positional arguments.
        kwargs: Keyword arguments.

    Raises:
        CannotReplay: The call has no user function.
    """
    passed: Callable[..., Any] | None = inspect.signature(function).bind(*args, **kwargs).arguments.get("map_func")
    if not callable(passed):
        raise CannotReplay(name, "it has no function")
    return passed


def with_own_files(
    name: str,
    method: str,
    function: Callable[..., Any],
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    own: Path | None,
    is_touched: bool,
) -> Arguments:
    """Replace the path of a file cache or snapshot, so that the script's files are never written.

    A complete file cache or snapshot of the script is used as it is.

    Args:
        name: Name of the call for error messages.
        method: The called method.
        function: The called function.
        args: Positional arguments.
        kwargs: Keyword arguments.
        own: Path to use instead of the script's; None: there is none.
        is_touched: An edit changes the call or one upstream of it.

    Raises:
        CannotReplay: The call would write a file, and `own` is None.
    """
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
