"""Writes a function that parses batches of records from the text of a function that parses one.

In: the text of a file, and the recorded call of a `map`.  Out: `BatchText`; or `CannotSplitError`. The new function is a copy
with `parse_example` in place of `parse_single_example`: TensorFlow passes both to the same op.
"""

from __future__ import annotations

import ast

from advisor.model.calls import Call
from advisor.splitting.batched_text import BatchText
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.copied_function import copied_definition, copy_of
from advisor.splitting.function_text import ReadText, no_other_file

_OF_ONE, _OF_BATCHES = "parse_single_example", "parse_example"


def batched_parser(text: str, call: Call, read: ReadText = no_other_file) -> BatchText:
    """Return a function that does with a batch of records what the function of a `map` does with each of them.

    Whether its other lines treat a batch like each record does not show in the text: see `FunctionFacts.parses_batches`.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call.
        read: Reads the file that defines the function, if it is another one.

    Raises:
        CannotSplitError: The text cannot be copied safely.
    """
    function_text, function = copied_definition(text, call, read)
    changes = []
    for node in ast.walk(function):
        if isinstance(node, ast.Name) and node.id == _OF_ONE:
            raise CannotSplitError(f"it calls `{_OF_ONE}` by its name alone", node.lineno)
        if isinstance(node, ast.Attribute) and node.attr == _OF_ONE:
            stop = function_text.file.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
            changes.append((stop - len(_OF_ONE), stop, _OF_BATCHES))
    if not changes:
        raise CannotSplitError(f"it does not call `{_OF_ONE}` itself")
    return copy_of(function_text, function, changes)


__all__ = ["batched_parser"]
