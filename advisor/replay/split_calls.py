"""Replays the calls of a function that is split, with one of its halves.

In: the recorded call, the edit with the texts, and the arguments of the replayed call.  Out: datasets.
"""

from __future__ import annotations

from typing import Any

from advisor.capture.instrument.replay_log import LoggedCall
from advisor.model.edits import SplitFunction
from advisor.replay.attempt import attempted
from advisor.replay.call_arguments import function_passed, with_function
from advisor.replay.halves import check_first, check_halves, halves_of


def map_with_first_half(
    name: str,
    edit: SplitFunction,
    logged: LoggedCall,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_checked: bool,
) -> Any:  # noqa: ANN401
    """Return the recorded `map` with the first half of its function.

    Args:
        name: Name of the call for error messages.
        edit: The texts.
        logged: The recorded call.
        args: Positional arguments of the replayed call.
        kwargs: Keyword arguments of the replayed call.
        is_checked: Whether to compare the halves with the function first.

    Raises:
        CannotSplit: The halves are not known to compute the same as the function.
    """
    if is_checked:
        check_halves(name, edit, logged, args, kwargs)
    args, kwargs = with_function(
        name, logged.original, args, kwargs, lambda function: halves_of(name, edit, function).first
    )
    result = attempted(name, logged.original, args, kwargs)
    check_first(name, result)
    return result


def parallel_map_with_first_half(
    name: str, edit: SplitFunction, logged: LoggedCall, args: tuple[Any, ...], kwargs: dict[str, Any], own_id: str
) -> Any:  # noqa: ANN401
    """Return a parallel `map` over the input of the recorded call, with the first half of its function.

    Args:
        name: Name of the call for error messages.
        edit: The texts.
        logged: The recorded call.
        args: Positional arguments of the replayed call.
        kwargs: Keyword arguments of the replayed call.
        own_id: The id of the `map`.

    Raises:
        CannotSplit: The first half may compute something else when it runs earlier.
    """
    import tensorflow as tf

    first = halves_of(name, edit, function_passed(name, logged.original, args, kwargs)).first
    parallel = {"num_parallel_calls": tf.data.AUTOTUNE, "name": own_id}
    result = attempted(name, type(args[0]).map, (args[0], first), parallel)
    check_first(name, result)
    return result


def call_with_second_half(
    name: str, edit: SplitFunction, logged: LoggedCall, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> Any:  # noqa: ANN401
    """Return the recorded call with the second half of its function.

    Args:
        name: Name of the call for error messages.
        edit: The texts.
        logged: The recorded call.
        args: Positional arguments of the replayed call.
        kwargs: Keyword arguments of the replayed call.
    """
    args, kwargs = with_function(
        name, logged.original, args, kwargs, lambda function: halves_of(name, edit, function).second
    )
    return attempted(name, logged.original, args, kwargs)
