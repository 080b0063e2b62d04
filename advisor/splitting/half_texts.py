"""Writes the two halves of a function, with the statements exactly as they are in the file.

In: the function, the place of the cut, and the names that cross it.  Out: `Texts`.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass, replace
from typing import NamedTuple

from advisor.model.edits import WrappedHalves
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import NEWLINE
from advisor.splitting.function_text import FunctionText, first_line, is_constant
from advisor.splitting.names_across import NamesAcross, fresh_name
from advisor.splitting.wrappers import Wrapper


class Suffixes(NamedTuple):
    """What is appended to the name of the function for its halves; the second is unused where it replaces the function."""

    first: str
    second: str


@dataclass(frozen=True, slots=True)
class Texts:
    """Two functions as they are written into the file."""

    first: str
    """A definition with the indentation of the function, or a lambda expression."""
    second: str
    first_name: str
    """Empty for a lambda."""
    second_name: str
    original: str
    """The definition as written in the file, in whole lines; empty for a lambda."""
    line: int
    """Line in which the definition begins; 0 for a lambda."""
    is_replaced: bool
    """Whether the halves take the place of the definition; otherwise they are added after it, because it has other users."""
    wrapped: WrappedHalves | None = None
    """What the calls get instead of the names, if the function is passed in a lambda or a partial."""


def texts_of(
    function_text: FunctionText,
    body: list[ast.stmt],
    cut: int,
    inner: ast.expr | None,
    names: NamesAcross,
    is_used_once: bool,
    suffixes: Suffixes,
) -> Texts:
    """Return the texts of the two halves.

    Args:
        function_text: The function.
        body: Its statements, without its docstring.
        cut: Number of the first statement of the second half.
        inner: The expression in that statement that belongs to the first half; None if there is none.
        names: What crosses the cut.
        is_used_once: Whether nothing but the `map` uses the function.
        suffixes: For the names of the halves.

    Raises:
        CannotSplitError: The statements are not on lines of their own.
    """
    if isinstance(function_text.function, ast.Lambda):
        texts = _lambdas(function_text, function_text.function, inner, names)
    else:
        texts = _Definition(function_text, function_text.function, suffixes).texts(
            body, cut, inner, names, is_used_once
        )
    for text in (texts.first, texts.second):
        _check_syntax(text, function_text)
    wrapper = function_text.wrapper
    return texts if wrapper is None else replace(texts, wrapped=_wrapped(function_text, wrapper, names, texts))


def _wrapped(function_text: FunctionText, wrapper: Wrapper, names: NamesAcross, texts: Texts) -> WrappedHalves:
    """Write what the calls get for each half: `lambda x: load_cached(x, size)`, `self.load_random`."""
    node, called = wrapper.node, wrapper.called
    whole, first = function_text.caller.code(node), function_text.wrapper_around(texts.first_name)
    owner = f"{function_text.caller.code(called.value)}." if isinstance(called, ast.Attribute) else ""
    second_name, name = f"{owner}{texts.second_name}", f"{owner}{wrapper.name}"
    if not names.bound:
        return WrappedHalves(name, first, second_name if owner else "", ())
    values = [wrapper.bound[name] for name in names.bound]
    if not all(is_constant(value, frozenset()) for value in values):
        raise CannotSplitError(f"`{whole[:60]}` computes an argument that both halves need")
    given = [f"{name}={function_text.caller.code(value)}" for name, value in zip(names.bound, values, strict=True)]
    if not isinstance(node, ast.Lambda):
        assert isinstance(node, ast.Call)
        second = f"{function_text.caller.code(node.func)}({', '.join([second_name, *given])})"
        return WrappedHalves(name, first, second, names.bound)
    read = [*values, *([called.value] if isinstance(called, ast.Attribute) else [])]
    inside = {inner.id for value in read for inner in ast.walk(value) if isinstance(inner, ast.Name)}
    if inside & set(names.crossing):
        raise CannotSplitError(f"`{min(inside & set(names.crossing))}` is also the name of a value that it computes")
    crossing = ", ".join(_parameters_of_lambda(function_text, names, inside))
    second = f"lambda {crossing}: {second_name}({crossing}, {', '.join(given)})"
    return WrappedHalves(name, first, second, names.bound)


def _lambdas(function_text: FunctionText, function: ast.Lambda, inner: ast.expr | None, names: NamesAcross) -> Texts:
    assert inner is not None and not names.repeated  # a lambda has one statement, so that the cut is inside it
    whole, part = function_text.file.code(function.body), function_text.file.code(inner)
    if "#" in function_text.file.code(function):
        raise CannotSplitError("the lambda contains a comment")
    passed = [part if name == names.value else name for name in names.crossing]
    head = function_text.file.unparsed(function.args)
    results = ", ".join(passed)
    first = f"lambda{' ' * bool(head)}{head}: {results if len(passed) == 1 else f'({results})'}"
    start = function_text.file.offset(inner.lineno, inner.col_offset)
    start -= function_text.file.offset(function.body.lineno, function.body.col_offset)
    rest = f"{whole[:start]}{names.value}{whole[start + len(part) :]}"
    return Texts(first, f"lambda {_parameters(names)}: {rest}", "", "", "", 0, is_replaced=True)


def _parameters_of_lambda(function_text: FunctionText, names: NamesAcross, used: set[str]) -> tuple[str, ...]:
    """The parameters of the second lambda: unlike those of all others, of which AutoGraph cannot tell two in one line apart."""
    lambdas = [node for node in ast.walk(function_text.caller.tree) if isinstance(node, ast.Lambda)]
    if tuple(names.crossing) not in {tuple(parameter.arg for parameter in node.args.args) for node in lambdas}:
        return names.crossing
    return (fresh_name(function_text, names.crossing[0], used), *names.crossing[1:])


class _Definition:
    """A `def` in the text."""

    def __init__(self, function_text: FunctionText, function: ast.FunctionDef, suffixes: Suffixes) -> None:
        self._found, self._function, self._suffixes = function_text, function, suffixes
        self._newline = match.group() if (match := NEWLINE.search(function_text.file.text)) else "\n"
        self._start, self._end = first_line(function), function.end_lineno or function.lineno
        self._indent = re.match(r"[ \t]*", function_text.file.lines[self._start - 1]).group()  # type: ignore[union-attr]
        docstring = ast.get_docstring(function, clean=False)
        head_end = self._head_end() if docstring is None else function.body[0].lineno - 1
        if "#" in function_text.file.between(self._start, head_end):
            raise CannotSplitError("its signature contains a comment")

    def texts(
        self, body: list[ast.stmt], cut: int, inner: ast.expr | None, names: NamesAcross, is_used_once: bool
    ) -> Texts:
        function_text, function, newline = self._found, self._function, self._newline
        inside = re.match(r"[ \t]*", function_text.file.lines[body[0].lineno - 1]).group()  # type: ignore[union-attr]
        begin, middle = self._begin(body[0]), self._begin(body[cut])
        last = body[cut - 1] if cut else None
        is_shared = last is not None and (last.end_lineno or last.lineno) >= middle
        if (
            is_shared
            or len(inside) <= len(self._indent)
            or function_text.file.lines[body[0].lineno - 1][len(inside) :][:1] in ("", "#")
        ):
            raise CannotSplitError("its statements are not on lines of their own")
        first_name = fresh_name(function_text, function.name + self._suffixes.first)
        second_name = (
            function.name if is_used_once else fresh_name(function_text, function.name + self._suffixes.second)
        )
        statements = (
            function_text.file.between(begin, middle - 1).rstrip() + newline
            if function_text.file.between(begin, middle - 1).strip()
            else ""
        )
        part = self._part(inner)
        first = [
            self._head(first_name, function_text.file.unparsed(function.args)),
            statements,
            f"{inside}{names.value} = {part}{newline}" if part else "",
            f"{inside}return {', '.join(names.crossing)}{newline}",
        ]
        returns = f" -> {function_text.file.unparsed(function.returns)}" if function.returns is not None else ""
        second = [
            self._head(second_name, _parameters(names), returns),
            self._docstring(body[0]) if is_used_once else "",
            *(f"{inside}{function_text.file.code(statement)}{newline}" for statement in names.repeated),
            self._rest(middle, inner, names.value),
        ]
        return Texts(
            "".join(first),
            "".join(second),
            first_name,
            second_name,
            function_text.file.between(self._start, self._end),
            self._start,
            is_used_once,
        )

    def _begin(self, statement: ast.stmt) -> int:
        """The first line of a statement, with the comments above it."""
        line = first_line(statement) if isinstance(statement, ast.FunctionDef) else statement.lineno
        above = self._found.file.lines
        while (
            line - 2 >= 0
            and line - 1 > self._head_end()
            and (not above[line - 2].strip() or above[line - 2].lstrip().startswith("#"))
        ):
            line -= 1
        return line

    def _head_end(self) -> int:
        """The last line of the signature and the docstring."""
        function = self._function
        first = function.body[0]
        if ast.get_docstring(function, clean=False) is not None:
            return first.end_lineno or first.lineno
        line, lines = first.lineno, self._found.file.lines
        while line - 2 >= 0 and (not lines[line - 2].strip() or lines[line - 2].lstrip().startswith("#")):
            line -= 1
        return line - 1

    def _head(self, name: str, parameters: str, returns: str = "") -> str:
        decorators = [
            f"{self._indent}@{self._found.file.unparsed(node)}{self._newline}" for node in self._function.decorator_list
        ]
        return "".join([*decorators, f"{self._indent}def {name}({parameters}){returns}:{self._newline}"])

    def _docstring(self, first: ast.stmt) -> str:
        docstring = self._function.body[0]
        return (
            ""
            if docstring is first
            else self._found.file.between(docstring.lineno, docstring.end_lineno or docstring.lineno)
        )

    def _part(self, inner: ast.expr | None) -> str:
        if inner is None:
            return ""
        text = self._found.file.code(inner)
        return f"({text})" if NEWLINE.search(text) else text

    def _rest(self, line: int, inner: ast.expr | None, value: str) -> str:
        """The statements of the second half, with `value` in place of the expression."""
        text = self._found.file.between(line, self._end)
        if inner is not None:
            origin = self._found.file.offset(line, 0)
            start = self._found.file.offset(inner.lineno, inner.col_offset) - origin
            end = self._found.file.offset(inner.end_lineno or inner.lineno, inner.end_col_offset or 0) - origin
            text = f"{text[:start]}{value}{text[end:]}"
        text = re.sub(r"\A(?:[ \t]*(?:\r\n|\r|\n))+", "", text)  # blank lines above the cut
        return text if text.endswith(("\n", "\r")) else text + self._newline


def _parameters(names: NamesAcross) -> str:
    own = [names.receiver] if names.receiver else []
    defaults = (f"{name}={default}" for name, default in names.defaults)
    return ", ".join([*own, *names.crossing, *names.bound, *defaults])


def _check_syntax(text: str, function_text: FunctionText) -> None:
    try:
        ast.parse(
            text
            if isinstance(function_text.function, ast.Lambda)
            else f"if True:\n{text}"
            if text[:1] in " \t"
            else text
        )
    except SyntaxError:
        raise CannotSplitError("the halves would not be valid Python") from None
