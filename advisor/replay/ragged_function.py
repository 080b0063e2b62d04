"""Makes the function of batches of a `VectorizeRagged` edit.

In: the function as the script passed it, and the edit.  Out: a function with the same graph as the text that
`advisor.rewrite.ragged_function` writes.
"""

from __future__ import annotations

import linecache
from collections.abc import Callable
from typing import Any

from advisor.model.edits import VectorizeRagged


def ragged_function(edit: VectorizeRagged, function: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that calls `function` with a batch, and pads its results.

    Args:
        edit: The edit.
        function: The function as the script passed it.
    """
    source = f"def on_batch(*rows):\n    results = function(*rows)\n    return {edit.expression('results')}\n"
    file = f"<ragged function {hash(source):x}>"
    # AutoGraph reads the source of a function through `linecache`; entries without a time stamp are kept.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {"function": function}
    exec(compile(source, file, "exec", dont_inherit=True), namespace)
    made: Callable[..., Any] = namespace["on_batch"]
    return made
