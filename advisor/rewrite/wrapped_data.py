"""Writes an expression around the data of a source, and checks that one call alone takes the elements of a dataset.

In: `Source`, a located call and the edit.  Out: the splice of the argument, or CannotRewriteError if the dataset has other uses.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Callable

import libcst as cst

from advisor.model.edits import DATA, Number, WrapData
from advisor.rewrite.arguments import find_argument
from advisor.rewrite.batch_function import NameOf
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.new_function import TENSORFLOW_NAMES
from advisor.rewrite.scopes import Scopes
from advisor.rewrite.splices import Splice
from advisor.rewrite.syntax import LocatedCall, Source, find_all

_PLAIN = {
    ast.Expression, ast.Name, ast.Attribute, ast.Constant, ast.Load, ast.BinOp, ast.Add, ast.Sub, ast.Mult, ast.FloorDiv,
    ast.UnaryOp, ast.USub,
}  # fmt: skip
"""What an expression consists of that has no effect."""


def wrap_data(
    source: Source, call: LocatedCall, edit: WrapData, located: Callable[[str], LocatedCall], name_of: NameOf
) -> Splice:
    """Put an expression around the data that a source is called with.

    Args:
        source: The text.
        call: The call of the source.
        edit: The edit with the expression.
        located: Finds the call with an id in the text.
        name_of: Returns a name of TensorFlow as the file writes it.

    Raises:
        CannotRewriteError: The data is not an argument of this call, or the dataset has other uses.
    """
    reader = located(edit.reader_id)
    check_only_reader(source, call, reader)
    argument = find_argument(call, "tensors")
    if argument is None or any(other.star for other in call.arguments):
        raise CannotRewriteError(f"The data of {call.method} is not an argument in this line.")
    texts = {number.parameter: _number(source, call, number, reader) for number in edit.numbers}
    texts[DATA] = source.text[argument.start : argument.end]
    text = TENSORFLOW_NAMES.sub(lambda match: name_of(match.group(), call.node), edit.text)
    names = re.compile(rf"\b(?:{'|'.join(texts)})\b(?!=)")
    return Splice(argument.start, argument.end, names.sub(lambda match: texts[match.group()], text))


def check_only_reader(source: Source, call: LocatedCall, reader: LocatedCall) -> None:
    """Raise CannotRewriteError unless a dataset goes from one call to the other and nowhere else.

    Args:
        source: The text.
        call: The call that makes the dataset.
        reader: The call that takes its elements.
    """
    receiver = _receiver(reader, call.node)
    if receiver is call.node:
        return
    statement, block = source.statement(call.node)
    assign = source.parents(call.node)[0]
    if isinstance(assign, cst.Assign) and len(assign.targets) == 1 and isinstance(receiver, cst.Name):
        target, scopes = assign.targets[0].target, Scopes(source.module)
        variable = scopes.find(receiver)
        if isinstance(target, cst.Name) and variable is not None and scopes.find(target) is variable:
            is_only_read = len(variable.reads) == len(variable.bindings) == 1 and not variable.is_shared
            if is_only_read or _is_assigned_again(source, reader, target.value, statement, block):
                return
    line = source.line_number(statement)
    raise CannotRewriteError(
        f"The dataset that {call.method} in line {line} makes may be used by more than {reader.method}."
    )


def _receiver(reader: LocatedCall, end: cst.BaseExpression) -> cst.BaseExpression:
    """What the first call of a chain is called on, or `end` if that comes first."""
    node: cst.BaseExpression = reader.node
    while node is not end and isinstance(node, cst.Call) and isinstance(node.func, cst.Attribute):
        node = node.func.value
    return node


def _is_assigned_again(
    source: Source, reader: LocatedCall, name: str, statement: cst.CSTNode, block: cst.Module | cst.IndentedBlock
) -> bool:
    """Whether the next statement of a block that has a name is `name = name.reader(...)`, which ends the use of its value."""
    following, its_block = source.statement(reader.node)
    if its_block is not block:
        return False
    lines = list(block.body)
    between = lines[lines.index(statement) + 1 : lines.index(following)]  # type: ignore[arg-type]
    if any(node.value == name for line in between for node in find_all(line, cst.Name)):
        return False
    assigns = [parent for parent in source.parents(reader.node) if isinstance(parent, cst.Assign)]
    names = [node for node in find_all(following, cst.Name) if node.value == name]
    return (
        len(assigns) == 1
        and len(assigns[0].targets) == 1
        and isinstance(assigns[0].targets[0].target, cst.Name)
        and assigns[0].targets[0].target.value == name
        and len(names) == 2
    )


def _number(source: Source, call: LocatedCall, number: Number, reader: LocatedCall) -> str:
    """Return the expression that is passed to the other call, if it means the same in this one; else the number.

    It does if the other call is of the same chain, and the expression has no effect: it may be computed earlier.
    """
    argument = find_argument(reader, number.parameter)
    if argument is None or argument.star or _receiver(reader, call.node) is not call.node:
        return str(number.value)
    text = source.text[argument.start : argument.end]
    try:
        parts = {type(part) for part in ast.walk(ast.parse(text, mode="eval"))}
    except SyntaxError:  # an expression in several lines
        return str(number.value)
    return text if parts <= _PLAIN else str(number.value)
