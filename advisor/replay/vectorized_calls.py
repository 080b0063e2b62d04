"""Replays the `map` whose function is called once per batch, with the form of the function that takes batches.

In: the recorded call, the edit, and the arguments of the replayed call.  Out: a dataset.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.replay_log import LoggedCall
from advisor.model.edits import (
    FROM_ROW_LENGTHS,
    RAGGED_RANGE,
    REDUCE_SUM,
    VECTORIZED_MAP,
    Vectorize,
    VectorizeParts,
    VectorizeRagged,
)
from advisor.replay.attempt import attempted
from advisor.replay.batch_function import batch_function, draws_per_row
from advisor.replay.batch_parts import check_parts, function_of_parts
from advisor.replay.call_arguments import with_function
from advisor.replay.edited import CannotReplay, CannotVectorize
from advisor.replay.ragged_function import ragged_function


def vectorized_call(
    name: str,
    edit: Vectorize,
    logged: LoggedCall,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    is_checked: bool,
) -> Any:  # noqa: ANN401
    """Return the recorded `map` with its function called once per batch.

    Args:
        name: Name of the call for error messages.
        edit: How the function takes batches.
        logged: The recorded call.
        args: Positional arguments of the replayed call.
        kwargs: Keyword arguments of the replayed call.
        is_checked: Whether to compare the text of a `VectorizeParts` with the function first.

    Raises:
        CannotVectorize: The function has no such form.
    """
    if isinstance(edit, VectorizeParts) and is_checked:
        check_parts(name, edit, logged)
    args, kwargs = with_function(
        name, logged.original, args, kwargs, lambda function: _function_of_batches(name, edit, function)
    )
    try:
        result = attempted(name, logged.original, args, kwargs)
    except CannotReplay as error:
        raise CannotVectorize(error.name, f"its function has no vectorised form ({error.reason})") from error
    joins_rows = isinstance(edit, VectorizeParts) and edit.joins_rows
    if not draws_per_row(logged.dataset, result, joins_rows=joins_rows):
        raise CannotVectorize(name, "its function would not draw random numbers of its own for each row")
    return result


def _function_of_batches(name: str, edit: Vectorize, function: Callable[..., Any]) -> Callable[..., Any]:
    import tensorflow as tf

    if isinstance(edit, VectorizeParts):
        functions = {
            VECTORIZED_MAP: tf.vectorized_map,
            RAGGED_RANGE: tf.ragged.range,
            REDUCE_SUM: tf.reduce_sum,
            FROM_ROW_LENGTHS: tf.RaggedTensor.from_row_lengths,
        }
        return function_of_parts(name, edit, function, functions)
    if isinstance(edit, VectorizeRagged):
        return ragged_function(edit, function)
    return batch_function(function, edit.is_plain, tf)
