"""Writes a function that makes the rows of a whole batch from the text of a function that makes one row of a given length.

In: the text of a file, the recorded call of a `map`, and the component of its elements that is the length.  Out: `BatchText`; or
`CannotSplitError`. The new function is a copy in which the rows follow each other in one vector: `tf.ragged.range` numbers their
values, random numbers are drawn for the sum of the lengths, and what is returned is cut into rows and padded.
"""

from __future__ import annotations

import ast

from advisor.model.calls import Call
from advisor.model.edits import FROM_ROW_LENGTHS, RAGGED_RANGE, REDUCE_SUM, STANDING_FOR
from advisor.splitting.batched_text import BatchText
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.copied_function import Change, copied_definition, copy_of
from advisor.splitting.file_text import FileText
from advisor.splitting.function_text import ReadText, no_other_file
from advisor.splitting.names_across import parameters_of


def batched_rows(
    text: str, call: Call, element_spec: str, length: int, rows: tuple[bool, ...], read: ReadText = no_other_file
) -> BatchText:
    """Return a function that makes the padded rows of a batch.

    That each value of a row is computed in the same way does not show in the text: see `FunctionFacts.row_length`.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call.
        element_spec: The element spec of its input, as recorded: a scalar, or a tuple of scalars.
        length: The component that is the length of the rows.
        rows: For each component of its result, whether it is a row; empty if the result is a single row and no tuple.
        read: Reads the file that defines the function, if it is another one.

    Raises:
        CannotSplitError: The text cannot be copied safely.
    """
    function_text, function = copied_definition(text, call, read)
    file = function_text.file
    if any(name in file.text for name in STANDING_FOR):
        raise CannotSplitError("the file uses a name that stands for another one here")
    parameters, _ = parameters_of(function_text, element_spec)
    if length >= len(parameters):
        raise CannotSplitError("it is unknown which of its parameters is the length of its rows")
    name = parameters[length]
    if any(isinstance(node, ast.Name) and node.id == name and _is_bound(node) for node in ast.walk(function)):
        raise CannotSplitError(f"it assigns `{name}`, the length of its rows", function.lineno)
    changes = [change for node in ast.walk(function) for change in _row_changes(file, node, name)]
    if not changes:
        raise CannotSplitError(f"it does not make its rows of `{name}` itself")
    return copy_of(function_text, function, [*changes, *_results(file, function, name, rows)])


def _is_bound(node: ast.Name) -> bool:
    return not isinstance(node.ctx, ast.Load)


def _row_changes(file: FileText, node: ast.AST, length: str) -> list[Change]:
    """`tf.range(length)` and `[length]` as the argument of a call, for the rows of a batch."""
    if not isinstance(node, ast.Call):
        return []
    is_range = isinstance(node.func, ast.Attribute) and node.func.attr == "range" and not node.keywords
    if is_range and [_is_length(value, length) for value in node.args] in ([True], [False, True], [False, True, False]):
        end = _end(file, node)
        return [(_start(file, node.func), _end(file, node.func), RAGGED_RANGE), (end, end, ".flat_values")]
    changes: list[Change] = []
    for value in (*node.args, *(keyword.value for keyword in node.keywords)):
        if isinstance(value, ast.List | ast.Tuple) and len(value.elts) == 1 and _is_length(value.elts[0], length):
            only = value.elts[0]
            changes.append((_start(file, only), _end(file, only), f"{REDUCE_SUM}({length})"))
    return changes


def _results(file: FileText, function: ast.FunctionDef, length: str, rows: tuple[bool, ...]) -> list[Change]:
    """What is returned, cut into rows and padded."""
    last = function.body[-1]
    returns = [node for node in ast.walk(function) if isinstance(node, ast.Return)]
    if returns != [last] or not isinstance(last, ast.Return) or last.value is None:
        raise CannotSplitError("it does not return once, at its end", function.lineno)
    if not rows:
        values: list[ast.expr] = [last.value]
    elif isinstance(last.value, ast.Tuple) and len(last.value.elts) == len(rows):
        values = [value for value, is_row in zip(last.value.elts, rows, strict=True) if is_row]
    else:
        raise CannotSplitError("what it returns is not written as a tuple", last.lineno)
    if any(isinstance(value, ast.Starred | ast.Tuple | ast.Lambda) for value in values):
        raise CannotSplitError("what it returns is not written as a tuple of tensors", last.lineno)
    changes: list[Change] = []
    for value in values:
        start, end = _start(file, value), _end(file, value)
        changes += [(start, start, f"{FROM_ROW_LENGTHS}("), (end, end, f", {length}).to_tensor()")]
    return changes


def _is_length(node: ast.expr, length: str) -> bool:
    return isinstance(node, ast.Name) and node.id == length


def _start(file: FileText, node: ast.expr) -> int:
    return file.offset(node.lineno, node.col_offset)


def _end(file: FileText, node: ast.expr) -> int:
    return file.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)


__all__ = ["batched_rows"]
