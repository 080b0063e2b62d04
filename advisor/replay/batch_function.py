"""Wraps the function of a `map` so that it can be applied to whole batches.

In: the function as the script passed it.  Out: a function of a batch, which has the same graph as the text that
`advisor.rewrite.batch_function` writes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def batch_function(function: Callable[..., Any], tensorflow: Any) -> Callable[..., Any]:  # noqa: ANN401
    """Return a function that applies `function` to every row of a batch at once.

    Tracing it raises a ValueError if an op of `function` has no vectorised form. `tf.function` is needed because AutoGraph does
    not convert functions that TensorFlow itself calls.

    Args:
        function: The function of one element, with an argument per component.
        tensorflow: The imported module.
    """

    def on_batch(*rows: Any) -> Any:  # noqa: ANN401
        return tensorflow.vectorized_map(
            lambda row: tensorflow.function(function)(*row), rows, fallback_to_while_loop=False
        )

    return tensorflow.autograph.experimental.do_not_convert(on_batch)  # type: ignore[no-any-return]
