"""Cuts a function at the first statement that draws a random number; of a `flat_map` or `interleave`, that makes a dataset.

In: the text of a file and the recorded call.  Out: `Halves`, the texts of two functions; or `CannotSplitError`. The
first half returns the names that the second one reads; the second one takes them as parameters. All statements keep their order,
so that the two halves together execute the same statements as the function.
"""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from advisor.model.calls import Call, FunctionLine
from advisor.model.op_effects import is_dataset_op
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.function_text import FunctionText, ReadText, function_of, no_other_file
from advisor.splitting.half_texts import Suffixes, Texts, texts_of
from advisor.splitting.imported_function import Imported
from advisor.splitting.inner_call import fixed_part, is_worth_it
from advisor.splitting.names_across import NamesAcross, names_across


@dataclass(frozen=True, slots=True)
class Halves:
    """The two halves of a function."""

    texts: Texts
    line: int
    """The line at which the function is cut."""
    names: tuple[str, ...]
    """The values that the first half passes on, in order."""
    ops: dict[str, int] = field(default_factory=dict)
    """Op type -> number of such ops in the first half."""
    bytes: int | None = None
    """Size of the values that it passes on for one element; None if a shape is unknown."""
    assumptions: tuple[str, ...] = ()
    """What the text does not show, as clauses: another class may override a method."""
    imported: Imported | None = None
    """Where the function comes from; None if the file of the call defines it."""


@dataclass(frozen=True, slots=True)
class _Cut:
    """What the second half of a function begins with."""

    what: str
    """As a clause: `draws the random numbers`."""
    them: str
    """What it makes, as a pronoun."""
    suffixes: Suffixes


_RANDOM = _Cut("draws the random numbers", "them", Suffixes("_cached", "_random"))
_DATASET = _Cut("makes the dataset", "it", Suffixes("_values", "_dataset"))


def split_function(text: str, call: Call, element_spec: str, is_script: bool, read: ReadText = no_other_file) -> Halves:
    """Cut the function of a `map`, `flat_map` or `interleave` in two.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call.
        element_spec: The element spec of its input, as recorded.
        is_script: Whether the file is the script, so that no other file uses its functions.
        read: Reads the file that defines the function, if it is another one.

    Raises:
        CannotSplitError: The text cannot be cut safely.
    """
    facts = call.function
    line = facts.random_site.line if facts is not None and facts.random_site is not None else None
    try:
        return _split(text, call, element_spec, is_script, read)
    except CannotSplitError as error:
        raise CannotSplitError(error.reason, error.line or line) from None


def _split(text: str, call: Call, element_spec: str, is_script: bool, read: ReadText) -> Halves:
    function_text = function_of(text, call, read, is_unwrapped=True)
    is_script = is_script and function_text.imported is None
    kind = _RANDOM if call.method == "map" else _DATASET
    lines = _marked(_lines(call, function_text), kind)
    if not any(line.is_random for line in lines):
        raise CannotSplitError(f"the traced graph does not show which of its lines {kind.what}")
    body = _body(function_text)
    numbers = [_statement(body, line) for line in lines]
    cut = min(number for number, line in zip(numbers, lines, strict=True) if line.is_random)
    statement = body[cut]
    own = [line for number, line in zip(numbers, lines, strict=True) if number == cut]
    inner = fixed_part(statement, own)
    before = [line for number, line in zip(numbers, lines, strict=True) if number < cut]
    if inner is not None:
        called = {ast.unparse(node.func).rpartition(".")[2] for node in ast.walk(inner) if isinstance(node, ast.Call)}
        inside = [line for line in own if line.called in called]
        is_kept = kind is _DATASET or is_worth_it({op for line in inside for op in line.ops})
        if any(line.ops for line in before) and not is_kept:
            inner = None
        else:
            before += inside
    _check_first(body[:cut])
    ops = Counter[str]()
    for line in before:
        ops.update(line.ops)
    if not ops:
        block = _BLOCKS.get(type(statement))
        reason = f"everything is inside the {block} that {kind.what.split()[0]} {kind.them}" if block else ""
        raise CannotSplitError(reason or "nothing is computed before it", statement.lineno)
    names = names_across(function_text, body, cut, inner, element_spec)
    rest = [line for line in lines if line not in before]
    return Halves(
        texts_of(function_text, body, cut, inner, names, _is_used_once(function_text, is_script), kind.suffixes),
        statement.lineno,
        names.crossing,
        dict(ops),
        _bytes(rest, names),
        (f"no class in another file overrides `{function_text.name}`",) if names.receiver and not is_script else (),
        function_text.imported,
    )


_BLOCKS: dict[type[ast.stmt], str] = {
    ast.With: "`with`",
    ast.If: "`if`",
    ast.For: "loop",
    ast.While: "loop",
    ast.Try: "`try`",
}


def _lines(call: Call, function_text: FunctionText) -> tuple[FunctionLine, ...]:
    """What the lines of the function do; of a lambda that only calls it, of the called function."""
    facts = call.function
    if facts is None:
        return ()
    return facts.called.lines if function_text.wrapper is not None and facts.called is not None else facts.lines


def _marked(lines: Sequence[FunctionLine], kind: _Cut) -> tuple[FunctionLine, ...]:
    """The lines, with those marked as random that the second half may begin with."""
    if kind is _RANDOM:
        return tuple(lines)
    return tuple(replace(line, is_random=any(is_dataset_op(op) for op in line.ops)) for line in lines)


def _body(function_text: FunctionText) -> list[ast.stmt]:
    """The statements of the function without its docstring; the body of a lambda as the value of a `return`."""
    function = function_text.function
    if isinstance(function, ast.Lambda):
        return [ast.copy_location(ast.Return(function.body), function.body)]
    has_docstring = ast.get_docstring(function, clean=False) is not None
    return function.body[1:] if has_docstring else function.body


def _statement(body: list[ast.stmt], line: FunctionLine) -> int:
    for number, statement in enumerate(body):
        if statement.lineno <= line.line <= (statement.end_lineno or statement.lineno):
            return number
    raise CannotSplitError(f"line {line.line} is not one of its statements")


def _check_first(statements: list[ast.stmt]) -> None:
    """Raise CannotSplitError if the first half has more than one way out."""
    for statement in statements:
        for node in _own_nodes(statement):
            if isinstance(node, ast.Return):
                raise CannotSplitError(f"it may return before, in line {node.lineno}")
            if isinstance(node, ast.Try | ast.TryStar):
                raise CannotSplitError(f"it catches exceptions before, in line {node.lineno}")


def _own_nodes(statement: ast.stmt) -> list[ast.AST]:
    """The nodes of a statement without those of functions inside it."""
    nodes: list[ast.AST] = []
    pending: list[ast.AST] = [statement]
    while pending:
        node = pending.pop()
        nodes.append(node)
        if not isinstance(node, ast.FunctionDef | ast.Lambda):
            pending += ast.iter_child_nodes(node)
    return nodes


def _is_used_once(function_text: FunctionText, is_script: bool) -> bool:
    """Whether nothing but the call can use the function, so that its definition may be replaced; never so for a method."""
    if function_text.wrapper is not None and function_text.wrapper.receiver:
        return False
    name = function_text.name
    is_nested = not isinstance(function_text.scope, ast.Module)
    uses = sum(isinstance(node, ast.Name) and node.id == name for node in ast.walk(function_text.scope))
    others = any(
        (isinstance(node, ast.Attribute) and node.attr == name)
        or (isinstance(node, ast.Constant) and node.value == name)
        for node in ast.walk(function_text.scope)
    )
    return (is_nested or is_script) and uses == 1 and not others


def _bytes(rest: list[FunctionLine], names: NamesAcross) -> int | None:
    return rest[0].bytes_before if rest and names.crossing else None


__all__ = ["Halves", "split_function"]
