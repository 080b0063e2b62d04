"""Replays a call with another function or other data, given as text.

In: the recorded call, the text of the function or expression, and the arguments of the replayed call.  Out: the dataset.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.replay_log import LoggedCall
from advisor.model.edits import DATA, WrapData, defined_name
from advisor.replay.attempt import attempted
from advisor.replay.call_arguments import with_function
from advisor.replay.dataset_objects import mark


def with_new_function(name: str, text: str, logged: LoggedCall, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:  # noqa: ANN401
    """Return the dataset of a call with another function.

    Args:
        name: Name of the call for error messages.
        text: The function, see `SetFunction.text`.
        logged: The recorded call.
        args: Positional arguments of the replayed call.
        kwargs: Keyword arguments of the replayed call.
    """
    args, kwargs = with_function(name, logged.original, args, kwargs, lambda function: _compiled(text))
    return attempted(name, logged.original, args, kwargs)


def with_wrapped_data(name: str, edit: WrapData, logged: LoggedCall) -> Any:  # noqa: ANN401
    """Return a source of data that is computed from the elements of a recorded one.

    Args:
        name: Name of the call for error messages.
        edit: The edit with the expression.
        logged: A recorded `from_tensor_slices` of one tensor.
    """
    import tensorflow as tf

    function = _compiled(f"lambda {', '.join([DATA, *(number.parameter for number in edit.numbers)])}: {edit.text}")

    def made() -> Any:  # noqa: ANN401
        rows = logged.dataset.batch(tf.int64.max).get_single_element()
        return tf.data.Dataset.from_tensor_slices(
            function(rows, *(number.value for number in edit.numbers)), name=logged.id
        )

    dataset = attempted(name, made, (), {})
    mark(dataset, logged.id)
    return dataset


def _compiled(text: str) -> Callable[..., Any]:
    """Return the function that the text means where `tf` is TensorFlow."""
    import tensorflow as tf

    name = defined_name(text)
    file, source = f"<new function {hash(text):x}>", text if name else f"new_function = {text}\n"
    # AutoGraph reads the source of a function through `linecache`; entries without a time stamp are kept.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"tf": tf}
    exec(compile(source, file, "exec", dont_inherit=True), namespace)
    function: Callable[..., Any] = namespace[name or "new_function"]
    return function
