"""Makes the function of batches of a `VectorizeParts` edit from its text, and checks it against the function of one element.

In: the function as the script passed it, and the edit.  Out: a function. `check_parts` traces it for one element, with plain
functions in place of `tf.vectorized_map` and of what joins and cuts rows: the graph must equal that of the script's function, op
by op.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import MethodType, SimpleNamespace
from typing import Any

from advisor.capture.instrument.graph_identity import traced_identity
from advisor.capture.instrument.replay_log import LoggedCall
from advisor.model.edits import FROM_ROW_LENGTHS, RAGGED_RANGE, REDUCE_SUM, VECTORIZED_MAP, VectorizeParts
from advisor.replay.call_arguments import with_function
from advisor.replay.edited import CannotVectorize
from advisor.replay.halves import Extended, closure_of, compiled, plain_function


def function_of_parts(
    name: str,
    edit: VectorizeParts,
    function: Any,  # noqa: ANN401
    functions: Mapping[str, Callable[..., Any]],
) -> Callable[..., Any]:
    """Compile the function of batches with the globals and the closure of the function of one element.

    Args:
        name: Name of the call for error messages.
        edit: The text.
        function: The function as the script passed it.
        functions: The functions for which names of the text stand.

    Raises:
        CannotVectorize: The function is no plain Python function, or a variable of its closure has no value yet.
    """
    if isinstance(function, functools.partial):
        inner = function_of_parts(name, edit, function.func, functions)
        return functools.partial(inner, *function.args, **function.keywords)
    if isinstance(function, MethodType):
        return MethodType(function_of_parts(name, edit, function.__func__, functions), function.__self__)
    plain = plain_function(function)
    closure = None if plain is None else closure_of(plain)
    if plain is None or closure is None:
        raise CannotVectorize(name, "its function is not a Python function, or uses a variable that has no value yet")
    if not edit.called:
        return compiled(plain, edit.text, edit.name, closure, functions)
    values = {**plain.__globals__, **closure}
    owner, _, called = edit.called.rpartition(".")
    one = getattr(values.get(owner), called, None) if owner else values.get(called)
    own = {edit.name: function_of_parts(name, replace(edit, called=""), one, functions)}
    names = {**closure, owner: Extended(values[owner], own)} if owner else {**closure, **own}
    return compiled(plain, edit.argument, "", names)


def check_parts(name: str, edit: VectorizeParts, logged: LoggedCall) -> None:
    """Compare the graph of the new function, for one element, with that of the script's function.

    Args:
        name: Name of the call for error messages.
        edit: The text.
        logged: The recorded call of `map`.

    Raises:
        CannotVectorize: The graphs differ, or a part takes or returns something else than tensors.
    """
    import tensorflow as tf

    problems: list[str] = []

    def of_one_row(part: Callable[..., Any], rows: Any, fallback_to_while_loop: bool) -> Any:  # noqa: ANN401
        result = part(rows)
        for value in tf.nest.flatten((rows, result)):
            if not isinstance(value, tf.Tensor):
                problems.append(f"a part of its function takes or returns a {type(value).__name__} instead of a tensor")
        return result

    as_they_are = tf.autograph.experimental.do_not_convert
    functions = {
        VECTORIZED_MAP: as_they_are(of_one_row),
        RAGGED_RANGE: as_they_are(lambda *ends: SimpleNamespace(flat_values=tf.range(*ends))),
        REDUCE_SUM: as_they_are(lambda length: length),
        FROM_ROW_LENGTHS: as_they_are(lambda row, length: SimpleNamespace(to_tensor=as_they_are(lambda: row))),
    }
    args, kwargs = with_function(
        name,
        logged.original,
        logged.args,
        logged.kwargs,
        lambda function: function_of_parts(name, edit, function, functions),
    )
    try:
        dataset = logged.original(*args, **kwargs)
    except CannotVectorize:
        raise
    except Exception as error:
        last = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        reason = problems[0] if problems else f"its parts fail: {last[:200].rstrip('.')}"
        raise CannotVectorize(name, reason) from error
    if problems:
        raise CannotVectorize(name, problems[0])
    if traced_identity(dataset) != traced_identity(logged.dataset):
        raise CannotVectorize(name, "its parts have another graph than its function")
