"""Takes a statement apart into pieces, each of which treats a batch in one way.

In: a statement and what its lines do to a batch.  Out: `Piece`s: the statement itself, or expressions in it that get names, and
what is left of it.
"""

from __future__ import annotations

import ast
import enum
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass

from advisor.model.calls import BatchLine
from advisor.model.vectorizable_ops import DRAWING_OPS, LOOP_INVARIANT_OPS, VECTORIZABLE_OPS
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.inner_call import called_in, operands
from advisor.splitting.names_across import without

_SHAPE_NAMES = frozenset({"shape", "get_shape", "set_shape", "ndim", "rank", "len"})
"""Names with which Python code asks for the shape of a tensor, which is another one for a batch."""
_WITH_VALUE = ast.Assign | ast.AnnAssign | ast.Return | ast.Expr
_OPERATORS = ast.BinOp | ast.UnaryOp | ast.Compare | ast.BoolOp


class Way(enum.Flag):
    """How ops can be applied to a batch."""

    AS_IT_IS = enum.auto()
    VECTORIZED = enum.auto()


_BOTH = Way.AS_IT_IS | Way.VECTORIZED
_NONE = Way(0)


@dataclass(frozen=True, slots=True)
class Piece:
    """A statement, and the ways in which it can be applied to a batch."""

    statement: ast.stmt
    ways: Way
    ops: frozenset[str]
    is_in_file: bool = True
    """Whether the statement stands in the file as it is."""


def pieces_of(statement: ast.stmt, lines: Sequence[BatchLine], fresh: Callable[[], str]) -> list[Piece]:
    """Return the pieces of a statement, in the order of execution.

    Args:
        statement: The statement.
        lines: What its lines do to a batch.
        fresh: Returns a new name for the value of an expression.

    Raises:
        CannotSplitError: Some op cannot be applied to a batch, or the text does not show where it is.
    """
    for line in lines:
        if not _ways_of(line):
            unknown = sorted(op for op in line.ops if op not in VECTORIZABLE_OPS | LOOP_INVARIANT_OPS | DRAWING_OPS)
            raise CannotSplitError(f"{unknown[0]} has no form for batches", line.line)
    ways = _joint(lines) & _shape_ways(statement) & _branch_ways(statement, lines)
    if ways:
        return [Piece(statement, ways, _ops_of(lines))]
    return list(_taken_apart(statement, lines, fresh))


def _ways_of(line: BatchLine) -> Way:
    is_convertible = (VECTORIZABLE_OPS | LOOP_INVARIANT_OPS | DRAWING_OPS).issuperset(line.ops)
    return (Way.AS_IT_IS if line.takes_batches else _NONE) | (Way.VECTORIZED if is_convertible else _NONE)


def _shape_ways(node: ast.AST) -> Way:
    """Without `AS_IT_IS` if the code may ask for the shape of a tensor."""
    names = {inner.attr for inner in ast.walk(node) if isinstance(inner, ast.Attribute)}
    names |= {inner.id for inner in ast.walk(node) if isinstance(inner, ast.Name)}
    return Way.VECTORIZED if names & _SHAPE_NAMES else _BOTH


def _branch_ways(statement: ast.stmt, lines: Sequence[BatchLine]) -> Way:
    """Without `AS_IT_IS` if there is a branch that was not traced, and that another call of the function may take.

    Of an expression that is one of two, it is unknown which one made the ops of its line, so neither counts as traced.
    """
    traced = {line.line for line in lines}
    for inner in ast.walk(statement):
        unknown: list[ast.AST] = []
        if isinstance(inner, ast.If | ast.While | ast.For):
            blocks = [block for block in (inner.body, inner.orelse) if block and not isinstance(block[-1], ast.Raise)]
            unknown = [part for block in blocks if not _holds(block, traced) for part in block]
        elif isinstance(inner, ast.IfExp):
            unknown = [inner.body, inner.orelse]
        if any(isinstance(node, ast.Call) or _is_operator(node) for part in unknown for node in ast.walk(part)):
            return Way.VECTORIZED
    return _BOTH


def _holds(block: Sequence[ast.stmt], lines: Collection[int]) -> bool:
    return any(part.lineno <= line <= (part.end_lineno or part.lineno) for part in block for line in lines)


def _taken_apart(statement: ast.stmt, lines: Sequence[BatchLine], fresh: Callable[[], str]) -> Iterator[Piece]:
    if not isinstance(statement, _WITH_VALUE) or statement.value is None:
        raise CannotSplitError("it mixes what takes batches and what does not inside one block", statement.lineno)
    if any(line.has_constants for line in lines):
        raise CannotSplitError("a call in it uses a constant that another call makes", statement.lineno)
    by_name: dict[str, list[BatchLine]] = {}
    for line in lines:
        by_name.setdefault(line.called, []).append(line)
    hidden = by_name.keys() - called_in(statement) - {""}
    if hidden:
        raise CannotSplitError(f"its text does not show where `{min(hidden)}` is called", statement.lineno)
    is_in_file = True
    while True:
        whole = _lines_in(statement, by_name)
        ways = _joint(whole) & _shape_ways(statement)
        if ways:
            yield Piece(statement, ways, _ops_of(whole), is_in_file)
            return
        value = statement.value
        assert value is not None
        parts = (part for part in _with_ops(value, by_name) if part is not value)
        inner = next((part for part in parts if _piece_ways(part, by_name)), None)
        if inner is None:
            raise CannotSplitError("one call in it does both what takes batches and what does not", statement.lineno)
        name = fresh()
        assignment = ast.copy_location(ast.Assign([ast.Name(name, ast.Store())], inner), statement)
        yield Piece(
            ast.fix_missing_locations(assignment),
            _piece_ways(inner, by_name),
            _ops_of(_lines_in(inner, by_name)),
            is_in_file=False,
        )
        rest = ast.fix_missing_locations(without(statement, inner, name))
        assert isinstance(rest, _WITH_VALUE)  # the same statement with a name in place of the expression
        statement, is_in_file = rest, False


def _ops_of(lines: Sequence[BatchLine]) -> frozenset[str]:
    return frozenset(op for line in lines for op in line.ops)


def _with_ops(value: ast.expr, by_name: Mapping[str, list[BatchLine]]) -> Iterator[ast.expr]:
    """Yield an expression, the first operand of it that makes ops, the first one of that, and so on."""
    following: ast.expr | None = value
    while following is not None:
        if isinstance(following, ast.Call | _OPERATORS | ast.Subscript):
            yield following
        following = next((operand for operand in operands(following) if _lines_in(operand, by_name)), None)


def _piece_ways(part: ast.expr, by_name: Mapping[str, list[BatchLine]]) -> Way:
    return _joint(_lines_in(part, by_name)) & _shape_ways(part)


def _joint(lines: Sequence[BatchLine]) -> Way:
    ways = _BOTH
    for line in lines:
        ways &= _ways_of(line)
    return ways


def _lines_in(node: ast.AST, by_name: Mapping[str, list[BatchLine]]) -> list[BatchLine]:
    """What the calls and operators in a piece of code do to a batch."""
    names = called_in(node)
    if "" in by_name and any(_is_operator(inner) for inner in ast.walk(node)):
        names = names | {""}
    return [line for name in names if name in by_name for line in by_name[name]]


def _is_operator(node: ast.AST) -> bool:
    """Whether the node may make an op; a dictionary's item does not."""
    if isinstance(node, ast.Subscript):
        return not (isinstance(node.slice, ast.Constant) and isinstance(node.slice.value, str))
    return isinstance(node, _OPERATORS)
