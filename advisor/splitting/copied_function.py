"""Writes a copy of a function in which only some calls are exchanged, for batches.

In: the text of a file, the recorded call of a `map`, and what takes the place of what.  Out: `BatchText`; or `CannotSplitError`.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence

from advisor.model.calls import Call
from advisor.splitting.batched_text import BatchText
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import NEWLINE
from advisor.splitting.function_text import FunctionText, ReadText, first_line, function_of
from advisor.splitting.names_across import fresh_name

Change = tuple[int, int, str]
"""Offsets in the file between which this text is written."""
_ALLOWED = (
    ast.AnnAssign, ast.Assign, ast.AugAssign, ast.Expr, ast.For, ast.FunctionDef, ast.If, ast.Import, ast.ImportFrom, ast.Pass,
    ast.Return,
)  # fmt: skip
"""Statements of a function that is copied. Loops run over features: a loop over a tensor would have left its ops in the graph."""


def copied_definition(text: str, call: Call, read: ReadText) -> tuple[FunctionText, ast.FunctionDef]:
    """Return the definition of the function of a `map`, if it can be copied.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call.
        read: Reads the file that defines the function, if it is another one.

    Raises:
        CannotSplitError: It is not found, or another run of the script could take a way in it that was not traced.
    """
    function_text = function_of(text, call, read, is_unwrapped=True)
    function = function_text.function
    if not isinstance(function, ast.FunctionDef):
        raise CannotSplitError("it is a lambda, of which no copy is written")
    if function.decorator_list:
        raise CannotSplitError("it has a decorator")
    for node in ast.walk(function):
        if isinstance(node, ast.stmt) and not isinstance(node, _ALLOWED):
            raise CannotSplitError("it contains a statement that is not copied", node.lineno)
        tests = [node.test] if isinstance(node, ast.If | ast.IfExp) else getattr(node, "ifs", [])
        if isinstance(node, ast.BoolOp) or not all(map(_asks_for_type, tests)):
            raise CannotSplitError("it branches", getattr(node, "lineno", function.lineno))
        if isinstance(node, ast.FunctionDef) and node is not function:
            raise CannotSplitError("it defines a function", node.lineno)
    return function_text, function


def _asks_for_type(test: ast.expr) -> bool:
    return isinstance(test, ast.Call) and isinstance(test.func, ast.Name) and test.func.id == "isinstance"


def copy_of(function_text: FunctionText, function: ast.FunctionDef, changes: Sequence[Change]) -> BatchText:
    """Return the copy of a function, under a name of its own.

    Args:
        function_text: Where it was found.
        function: Its definition.
        changes: What differs in the copy; what is inserted at one place is written in this order.

    Raises:
        CannotSplitError: Its name does not follow its `def`, or its wrapper contains a comment.
    """
    file, wrapper = function_text.file, function_text.wrapper
    line, end = first_line(function), function.end_lineno or function.lineno
    name, original, start = (
        fresh_name(function_text, f"{function.name}_batch"),
        file.between(line, end),
        file.offset(line, 0),
    )
    head = re.compile(rf"def\s+{function.name}\b").match(file.text, file.offset(function.lineno, function.col_offset))
    if head is None:
        raise CannotSplitError("its name does not follow its `def`", function.lineno)
    newline = match.group() if (match := NEWLINE.search(file.text)) else "\n"
    text = original if original.endswith(("\n", "\r")) else f"{original}{newline}"
    ordered = sorted(
        (first, last, number, written)
        for number, (first, last, written) in enumerate([(head.end() - len(function.name), head.end(), name), *changes])
    )
    for first, last, _, written in reversed(ordered):
        text = f"{text[: first - start]}{written}{text[last - start :]}"
    is_in_lambda = wrapper is not None and isinstance(wrapper.node, ast.Lambda)
    return BatchText(
        text=text,
        name=name,
        original=original,
        line=line,
        cuts=(),
        vectorized_ops=frozenset(),
        argument=function_text.wrapper_around(name),
        called=function_text.caller.code(wrapper.called) if wrapper is not None and is_in_lambda else "",
        method=function.name if wrapper is not None and wrapper.receiver else "",
        imported=function_text.imported,
    )
