"""Replays a call with another function, given as text.

In: the recorded call, the text of the function and the arguments of the replayed call.  Out: the dataset.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from advisor.capture.instrument.replay_log import LoggedCall
from advisor.model.edits import defined_name
from advisor.replay.attempt import attempted
from advisor.replay.call_arguments import with_function


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
