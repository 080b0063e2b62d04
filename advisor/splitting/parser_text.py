"""Writes a function that parses batches of records from the text of a function that parses one.

In: the text of a file, and the recorded call of a `map`.  Out: `BatchText`; or `CannotSplitError`. The new function is a copy
with `parse_example` in place of `parse_single_example`: TensorFlow passes both to the same op.
"""

from __future__ import annotations

import ast
import re

from advisor.model.calls import Call
from advisor.splitting.batched_text import BatchText
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import NEWLINE
from advisor.splitting.function_text import FunctionText, ReadText, first_line, function_of, no_other_file
from advisor.splitting.names_across import fresh_name

_OF_ONE, _OF_BATCHES = "parse_single_example", "parse_example"
_ALLOWED = (
    ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.FunctionDef, ast.If, ast.Import, ast.ImportFrom, ast.Pass,
    ast.Return,
)  # fmt: skip
"""Statements of a function that is copied. Loops run over features: a loop over a tensor would have left its ops in the graph."""


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
    function_text = function_of(text, call, read, is_unwrapped=True)
    function, file, wrapper = function_text.function, function_text.file, function_text.wrapper
    if not isinstance(function, ast.FunctionDef):
        raise CannotSplitError("it is a lambda, of which no copy is written")
    if function.decorator_list:
        raise CannotSplitError("it has a decorator")
    _check_statements(function)
    start, end = first_line(function), function.end_lineno or function.lineno
    original = file.between(start, end)
    name = fresh_name(function_text, f"{function.name}_batch")
    return BatchText(
        text=_copied(function_text, function, name, original),
        name=name,
        original=original,
        line=start,
        cuts=(),
        vectorized_ops=frozenset(),
        argument=function_text.wrapper_around(name),
        called=function_text.caller.code(wrapper.called)
        if wrapper is not None and isinstance(wrapper.node, ast.Lambda)
        else "",
        method=function.name if wrapper is not None and wrapper.receiver else "",
        imported=function_text.imported,
    )


def _check_statements(function: ast.FunctionDef) -> None:
    """Raise CannotSplitError if another run of the script could take a way that was not traced."""
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and not isinstance(node, _ALLOWED):
            raise CannotSplitError("it contains a statement that is not copied", node.lineno)
        tests = [node.test] if isinstance(node, ast.If | ast.IfExp) else getattr(node, "ifs", [])
        if isinstance(node, ast.BoolOp) or not all(map(_asks_for_type, tests)):
            raise CannotSplitError("it branches", getattr(node, "lineno", function.lineno))
        if isinstance(node, ast.FunctionDef) and node is not function:
            raise CannotSplitError("it defines a function", node.lineno)
        if isinstance(node, ast.Name) and node.id == _OF_ONE:
            raise CannotSplitError(f"it calls `{_OF_ONE}` by its name alone", node.lineno)


def _asks_for_type(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"


def _copied(function_text: FunctionText, function: ast.FunctionDef, name: str, original: str) -> str:
    """The definition with the new name, in whole lines, with the other parser in place of each call."""
    file = function_text.file
    start = file.offset(first_line(function), 0)
    head = re.compile(rf"def\s+{function.name}\b").match(file.text, file.offset(function.lineno, function.col_offset))
    if head is None:
        raise CannotSplitError("its name does not follow its `def`", function.lineno)
    changes = [(head.end() - len(function.name), head.end(), name)]
    for node in ast.walk(function):
        if isinstance(node, ast.Attribute) and node.attr == _OF_ONE:
            stop = file.offset(node.end_lineno or node.lineno, node.end_col_offset or 0)
            changes.append((stop - len(_OF_ONE), stop, _OF_BATCHES))
    if len(changes) == 1:
        raise CannotSplitError(f"it does not call `{_OF_ONE}` itself")
    newline = match.group() if (match := NEWLINE.search(file.text)) else "\n"
    text = original if original.endswith(("\n", "\r")) else f"{original}{newline}"
    for first, last, written in sorted(changes, reverse=True):
        text = f"{text[: first - start]}{written}{text[last - start :]}"
    return text


__all__ = ["batched_parser"]
