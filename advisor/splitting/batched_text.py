"""Writes a function of batches from the lines of a function of one element.

In: the text of a file, and the recorded call of a `map`.  Out: `BatchText`; or `CannotSplitError`. Statements whose ops treat a
batch like each of its elements stay as they are; the others become inner functions, which `tf.vectorized_map` applies to every
row. All statements keep their order, so that for one element the new function executes what the old one does.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.calls import BatchLine, Call
from advisor.model.edits import VECTORIZED_MAP
from advisor.model.vectorizable_ops import DRAWING_OPS
from advisor.splitting.batch_pieces import Piece, Way, pieces_of
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import NEWLINE
from advisor.splitting.function_text import FunctionText, ReadText, first_line, function_of, no_other_file
from advisor.splitting.imported_function import Imported
from advisor.splitting.names_across import constant_statements, fresh_name, parameters_of
from advisor.splitting.names_used import names_bound, names_needed, surely_bound


@dataclass(frozen=True, slots=True)
class BatchText:
    """A function of batches."""

    text: str
    """Its definition in whole lines, with the indentation of the function; with the names of `STANDING_FOR`."""
    name: str
    original: str
    """The definition of the function as it stands in the file, in whole lines."""
    line: int
    """Line in which that begins."""
    cuts: tuple[int, ...]
    """The lines at which one part ends and the next one begins."""
    vectorized_ops: frozenset[str]
    """Types of the ops in the parts that `tf.vectorized_map` applies."""
    argument: str = ""
    """As in `VectorizeParts`."""
    called: str = ""
    """As in `VectorizeParts`."""
    method: str = ""
    """The name of the method of one element; empty for a function."""
    imported: Imported | None = None
    """Where the function comes from; None if the file of the call defines it."""


@dataclass(frozen=True, slots=True)
class _Part:
    """Statements that are treated in one way."""

    is_vectorized: bool
    pieces: tuple[Piece, ...]

    @property
    def statements(self) -> list[ast.stmt]:
        return [piece.statement for piece in self.pieces]

    @property
    def ops(self) -> frozenset[str]:
        return frozenset(op for piece in self.pieces for op in piece.ops)


def batch_text(text: str, call: Call, element_spec: str, read: ReadText = no_other_file) -> BatchText:
    """Return a function that computes for a batch what the function of a `map` computes for each element.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call, with the `batch_lines` of its function.
        element_spec: The element spec of its input, as recorded.
        read: Reads the file that defines the function, if it is another one.

    Raises:
        CannotSplitError: The text cannot be put together safely.
    """
    function_text = function_of(text, call, read, is_unwrapped=True)
    lines, wrapper = _lines(call, function_text), function_text.wrapper
    if not lines:
        raise CannotSplitError("it is unknown what its lines do to a batch")
    function = function_text.function
    if not isinstance(function, ast.FunctionDef):
        raise CannotSplitError("it is a lambda, whose statements have no lines of their own")
    if function.decorator_list:
        raise CannotSplitError("it has a decorator")
    if VECTORIZED_MAP in function_text.file.text:
        raise CannotSplitError(f"the file uses the name {VECTORIZED_MAP}")
    body = function.body[1:] if ast.get_docstring(function, clean=False) is not None else function.body
    _check_body(body)
    passed, defaults = parameters_of(function_text, element_spec)
    bound = () if wrapper is None else (wrapper.receiver, *wrapper.bound)
    constants = constant_statements(body, body, {*passed, *defaults, *bound})
    rest = [statement for statement in body if statement not in constants]
    parts = _parts(_all_pieces(function_text, rest, lines))
    if len(parts) < 2:
        raise CannotSplitError("all of its lines are of one kind")
    writer = _Writer(function_text, function, body[0])
    written = writer.definition(constants, parts, passed)
    cuts = tuple(part.statements[0].lineno for part in parts[1:])
    vectorized = frozenset[str]().union(*(part.ops for part in parts if part.is_vectorized))
    start, end = first_line(function), function.end_lineno or function.lineno
    return BatchText(
        text=written,
        name=writer.name,
        original=function_text.file.between(start, end),
        line=start,
        cuts=cuts,
        vectorized_ops=vectorized,
        argument=function_text.wrapper_around(writer.name),
        called=function_text.caller.code(wrapper.called)
        if wrapper is not None and isinstance(wrapper.node, ast.Lambda)
        else "",
        method=function.name if wrapper is not None and wrapper.receiver else "",
        imported=function_text.imported,
    )


def _lines(call: Call, function_text: FunctionText) -> tuple[BatchLine, ...]:
    """What the lines of the function do to a batch; of a lambda that only calls it, those of the called function."""
    facts, wrapper = call.function, function_text.wrapper
    if facts is None:
        return ()
    if wrapper is None or not isinstance(wrapper.node, ast.Lambda):
        return facts.batch_lines
    return facts.called.batch_lines if facts.called is not None else ()


def _check_body(body: Sequence[ast.stmt]) -> None:
    """Raise CannotSplitError if there is more than one way out, or a function whose variables may be those of a row."""
    if not body or not isinstance(body[-1], ast.Return) or body[-1].value is None:
        raise CannotSplitError("its last statement does not return a value")
    for statement in body:
        for node in ast.walk(statement):
            if isinstance(node, ast.Return) and node is not body[-1]:
                raise CannotSplitError(f"it may return before its end, in line {node.lineno}")
            if isinstance(node, ast.Try | ast.TryStar):
                raise CannotSplitError(f"it catches exceptions, in line {node.lineno}")
            if isinstance(node, ast.FunctionDef):
                raise CannotSplitError(f"it defines a function, in line {node.lineno}")
            if isinstance(node, ast.Assign | ast.AnnAssign) and isinstance(node.value, ast.Lambda):
                raise CannotSplitError(f"it defines a function, in line {node.lineno}")


def _all_pieces(function_text: FunctionText, body: Sequence[ast.stmt], lines: Sequence[BatchLine]) -> list[Piece]:
    by_statement: dict[int, list[BatchLine]] = {}
    for line in lines:
        numbers = [
            number
            for number, statement in enumerate(body)
            if statement.lineno <= line.line <= (statement.end_lineno or statement.lineno)
        ]
        if len(numbers) != 1:
            raise CannotSplitError(f"line {line.line} is not one of its statements, or more than one")
        by_statement.setdefault(numbers[0], []).append(line)
    used: set[str] = set()

    def fresh() -> str:
        name = fresh_name(function_text, "value", used)
        used.add(name)
        return name

    return [
        piece
        for number, statement in enumerate(body)
        for piece in pieces_of(statement, by_statement.get(number, ()), fresh)
    ]


def _parts(pieces: Sequence[Piece]) -> list[_Part]:
    """Group pieces; one that can be treated in both ways goes to the part before it."""
    groups: list[tuple[Way, list[Piece]]] = []
    for piece in pieces:
        if groups and groups[-1][0] & piece.ways:
            groups[-1] = groups[-1][0] & piece.ways, [*groups[-1][1], piece]
        else:
            groups.append((piece.ways, [piece]))
    return [_Part(Way.AS_IT_IS not in ways, tuple(group)) for ways, group in groups]


class _Writer:
    """Writes the definition."""

    def __init__(self, function_text: FunctionText, function: ast.FunctionDef, first: ast.stmt) -> None:
        self._found, self._function = function_text, function
        lines = function_text.file.lines
        self._indent = _indent(lines[first_line(function) - 1])
        self._inside = _indent(lines[first.lineno - 1])
        if len(self._inside) <= len(self._indent):
            raise CannotSplitError("its statements are not on lines of their own")
        self._newline = match.group() if (match := NEWLINE.search("".join(lines))) else "\n"
        self.name = fresh_name(function_text, f"{function.name}_batch")
        self._used = {self.name}

    def definition(self, constants: Sequence[ast.stmt], parts: Sequence[_Part], passed: Sequence[str]) -> str:
        """Return the lines of the definition."""
        head = f"{self._indent}def {self.name}({self._found.file.unparsed(self._function.args)}):"
        lines = [head, *(line for statement in constants for line in self._written(statement, self._inside))]
        known, certain = dict.fromkeys(passed), set(passed)
        for number, part in enumerate(parts):
            rest = [statement for later in parts[number + 1 :] for statement in later.statements]
            if part.is_vectorized:
                lines += [""] if len(lines) > 1 else []
                lines += self._vectorized(part, rest, list(known), certain)
            else:
                lines += self._pieces(part, self._inside)
            known |= names_bound(part.statements)
            certain |= surely_bound(part.statements)
        return "".join(f"{line}{self._newline}" for line in lines)

    def _vectorized(self, part: _Part, rest: Sequence[ast.stmt], known: Sequence[str], certain: set[str]) -> list[str]:
        """Return an inner function of one row, and its call."""
        statements = part.statements
        bound, sure = names_bound(statements), surely_bound(statements)
        outputs = [name for name in bound if name in names_needed(rest)]
        kept = [name for name in outputs if name not in sure]
        needed = names_needed(statements).union(kept)
        inputs = [name for name in known if name in needed]
        for name in (*inputs, *kept):
            if name not in certain:
                raise CannotSplitError(f"`{name}` is not assigned on every way to it", statements[0].lineno)
        if not inputs and part.ops & DRAWING_OPS:  # the rows of any value tell how many numbers to draw
            inputs = [name for name in known if name in certain][:1]
        if not inputs or (rest and not outputs):
            raise CannotSplitError("nothing is passed on to it, or from it", statements[0].lineno)
        function = self._fresh(f"{self._function.name}_rows")
        deeper = self._inside + self._inside[len(self._indent) :]
        listed, returned = ", ".join(inputs), ", ".join(outputs)
        is_single = len(inputs) == 1
        row = "" if is_single else self._fresh("row")
        lines = [f"{self._inside}def {function}({listed if is_single else row}):"]
        lines += [] if is_single else [f"{deeper}{listed} = {row}"]
        lines += self._pieces(part, deeper)
        lines += [f"{deeper}return {returned}"] if rest else []
        argument = listed if is_single else f"({listed})"
        result = f"{returned} =" if rest else "return"
        called = f"{VECTORIZED_MAP}({function}, {argument}, fallback_to_while_loop=False)"
        return [*lines, "", f"{self._inside}{result} {called}"]

    def _pieces(self, part: _Part, indent: str) -> list[str]:
        return [line for piece in part.pieces for line in self._written(piece.statement, indent, piece.is_in_file)]

    def _fresh(self, name: str) -> str:
        name = fresh_name(self._found, name, self._used)
        self._used.add(name)
        return name

    def _written(self, statement: ast.stmt, indent: str, is_in_file: bool = True) -> list[str]:
        """The lines of a statement, as it stands in the file unless a text in it would be indented."""
        text = ast.get_source_segment(self._found.file.text, statement) if is_in_file else None
        inner = (node for node in ast.walk(statement) if isinstance(node, ast.Constant | ast.JoinedStr))
        if text is None or any(node.end_lineno != node.lineno for node in inner):
            text = self._found.file.unparsed(statement)
            return [f"{indent}{line}" for line in text.split("\n")]
        first, *others = NEWLINE.split(text)
        own = self._inside
        return [indent + first, *(indent + line[len(own) :] if line.startswith(own) else line for line in others)]


def _indent(line: str) -> str:
    return re.match(r"[ \t]*", line).group()  # type: ignore[union-attr]


__all__ = ["BatchText", "batch_text"]
