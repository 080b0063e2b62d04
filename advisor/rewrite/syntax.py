"""Locates calls in a source text, to the character.

In: the text of a file.  Out: `Source`, which finds the `LocatedCall` of a recorded `Call`, or raises CannotRewriteError; it never
guesses.

LibCST parses the text, but edits are made on the text itself, so that everything outside them is preserved byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

import libcst as cst
from libcst.metadata import (
    MetadataWrapper,
    ParentNodeProvider,
    PositionProvider,
    WhitespaceInclusivePositionProvider,
)

from advisor.model.call_parameters import POSITIONS
from advisor.model.calls import Call, line_note
from advisor.rewrite.call_forms import Form, form_of
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.names import Names, names_in

NEWLINE = re.compile(r"\r\n|\r|\n")
_SPACE = re.compile(r"(?:[ \t\f\r\n]|\\(?=[\r\n])|#[^\r\n]*)*")
_Node = TypeVar("_Node", bound=cst.CSTNode)


@dataclass(frozen=True, slots=True)
class LocatedArgument:
    """One argument; `start` and `end` delimit its value, including parentheses, as character offsets."""

    keyword: str | None
    star: str
    start: int
    end: int
    comma_end: int | None
    """Offset after its comma; None if it has none."""


@dataclass(frozen=True, slots=True, eq=False)
class LocatedCall:
    """A call in a text; all offsets are in characters."""

    node: cst.Call
    method: str
    """The recorded method."""
    form: Form
    """The form of the call in the text."""
    arguments: tuple[LocatedArgument, ...]
    """Arguments of the call that contains the method's arguments; the first `form.skip` are not the method's."""
    open_end: int
    """Offset after the opening parenthesis of that call."""
    link_start: int | None
    """Start of `.method(...)`, including whitespace before the dot; None if it is no method call."""
    dot_space: str
    """That whitespace, including line breaks, backslashes and comments."""
    end: int


@dataclass(slots=True, eq=False)
class Source:
    """A parsed text.

    Raises:
        CannotRewriteError: It is not valid Python.
    """

    text: str
    module: cst.Module = field(init=False)
    names: Names = field(init=False)
    _starts: list[int] = field(init=False)
    _wrapper: MetadataWrapper = field(init=False)
    _calls: dict[tuple[int, int], cst.Call] = field(init=False)
    """(end line, end column) -> call; no two calls end at the same place."""

    def __post_init__(self) -> None:
        try:
            self._wrapper = MetadataWrapper(cst.parse_module(self.text), unsafe_skip_copy=True)
        except (cst.ParserSyntaxError, RecursionError):
            raise CannotRewriteError("The file cannot be parsed as Python.") from None
        self.module = self._wrapper.module
        if self.module.code != self.text:  # offsets would be wrong
            raise CannotRewriteError("The file contains characters whose positions are uncertain.")
        self._starts = [0, *(match.end() for match in NEWLINE.finditer(self.text))]
        finder = _CallFinder()
        self._wrapper.visit(finder)
        self._calls, self.names = finder.calls, names_in(self.module)

    def locate(self, call: Call) -> LocatedCall:
        """Return the call recorded at `call.site`.

        Raises:
            CannotRewriteError: The text has another call there, or none, or its form is not supported.
        """
        site = call.site
        node = None if site is None else self._calls.get((site.end_line, site.end_column - 1))
        if site is None or node is None:
            raise CannotRewriteError(
                f"No call ends where {call.method} was recorded{line_note(call.site)}: the file has changed."
            )
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        start = self._range(name).start
        if (start.line, start.column) != (site.line, site.column - 1) or not self._is_same_text(call, name, node):
            raise CannotRewriteError(
                f"There is a different call where {call.method} was recorded{line_note(call.site)}."
            )
        form = form_of(node, call, self.names)
        if form is None:
            raise CannotRewriteError(
                f"The text does not show that {self.code(node.func)} calls {call.method}{line_note(call.site)}."
            )
        located = self._located(node, call.method, form)
        given = len(located.arguments) - form.skip
        has_stars = any(argument.star for argument in located.arguments)
        is_counted = (
            form.is_direct
            and not form.is_library
            and not has_stars
            and POSITIONS.get(call.method, ("",))[0] in call.explicit
        )
        if is_counted and given != len(call.explicit):
            raise CannotRewriteError(
                f"The arguments of {call.method} differ from those recorded{line_note(call.site)}."
            )
        return located

    def located(self, node: cst.Call, name: str) -> LocatedCall:
        """Return a call that was not recorded, such as a decorator, under a name for messages.

        Args:
            node: The call in the text.
            name: What messages call it.
        """
        return self._located(node, name, Form(node))

    def parents(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """Return the nodes that enclose `node`, innermost first."""
        lookup = self._wrapper.resolve(ParentNodeProvider)
        parents: list[cst.CSTNode] = []
        parent = lookup.get(node)
        while parent is not None:
            parents.append(parent)
            parent = lookup.get(parent)
        return parents

    def statement(self, node: cst.CSTNode) -> tuple[cst.CSTNode, cst.Module | cst.IndentedBlock]:
        """Return the statement that contains `node`, and its block."""
        previous = node
        for parent in self.parents(node):
            if isinstance(parent, cst.Module | cst.IndentedBlock):
                return previous, parent
            previous = parent
        raise CannotRewriteError("The call is not part of a statement.")

    def scope(self, node: cst.CSTNode) -> cst.FunctionDef | cst.ClassDef | cst.Module:
        """Return the innermost function, class or module that contains `node`."""
        kinds = cst.FunctionDef | cst.ClassDef | cst.Module
        return next(parent for parent in self.parents(node) if isinstance(parent, kinds))

    def code(self, node: cst.CSTNode) -> str:
        """Return a node's text on one line."""
        return " ".join(self.module.code_for_node(node).split())

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return start and end of a node without its parentheses and surrounding whitespace."""
        place = self._range(node)
        return self._offset(place.start.line, place.start.column), self._offset(place.end.line, place.end.column)

    def line_span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Return start and end of the lines that contain a node, including the last line break."""
        place = self._range(node)
        first = place.start.line
        for decorator in getattr(node, "decorators", ()):
            first = min(first, self._range(decorator).start.line)
        ends = [*self._starts[1:], len(self.text)]
        return self._starts[first - 1], ends[place.end.line - 1]

    def indent(self, statement: cst.CSTNode) -> str:
        """Return the whitespace before a statement."""
        start = self.line_span(statement)[0]
        return re.match(r"[ \t\f]*", self.text[start:]).group()  # type: ignore[union-attr]

    def line_number(self, node: cst.CSTNode) -> int:
        """Return the line in which a node begins."""
        return self._range(node).start.line

    def line_note(self, node: cst.CSTNode) -> str:
        """Return ` (line 12)` for the sentence that names a node."""
        return f" (line {self.line_number(node)})"

    def outer_span(self, node: cst.BaseExpression) -> tuple[int, int]:
        """Return start and end of an expression with its parentheses."""
        start, end = self.span(node)
        if node.lpar:
            place = self._wrapper.resolve(WhitespaceInclusivePositionProvider)[node].start
            start = self._offset(place.line, place.column)
        return start, self._skip_closing(end, len(node.rpar))

    def call_ending_at(self, line: int, column: int) -> cst.Call | None:
        """Return the call that ends at a place; lines count from 1 and columns from 0, as in LibCST."""
        return self._calls.get((line, column))

    def place(self, node: cst.CSTNode) -> tuple[int, int, int, int]:
        """Return (line, column, end line, end column) of a node, lines from 1 and columns from 0."""
        place = self._range(node)
        return place.start.line, place.start.column, place.end.line, place.end.column

    def line_before(self, offset: int) -> str:
        """Return the part of the line before `offset`."""
        return self.text[max(start for start in self._starts if start <= offset) : offset]

    def line_after(self, offset: int) -> str:
        """Return the rest of the line after `offset`, without the line break."""
        match = NEWLINE.search(self.text, offset)
        return self.text[offset : match.start() if match else len(self.text)]

    @property
    def newline(self) -> str:
        """The text's own line break."""
        match = NEWLINE.search(self.text)
        return match.group() if match else "\n"

    def _is_same_text(self, call: Call, name: cst.CSTNode, node: cst.Call) -> bool:
        """Whether the call's text equals the recorded one (the recorder joins lines and truncates long calls)."""
        if not call.text:
            return True
        text = self.text[self.span(name)[0] : self.span(node)[1]]
        now = " ".join(line.strip() for line in NEWLINE.split(text))
        was = call.text
        if was.endswith("…"):
            return now.startswith(was.removeprefix(".")[:-1])
        return now == was or was.endswith("." + now)

    def _located(self, node: cst.Call, method: str, form: Form) -> LocatedCall:
        link_start, dot_space = None, ""
        if isinstance(node.func, cst.Attribute):
            receiver = node.func.value
            link_start = self._skip_closing(self.span(receiver)[1], len(receiver.rpar))
            dot_space = self.text[link_start : self._skip_space(link_start)]
        holder = form.holder
        open_end = self._skip_space(self._skip_closing(self.span(holder.func)[1], len(holder.func.rpar))) + 1
        arguments: list[LocatedArgument] = []
        begin = open_end
        for argument in holder.args:
            arguments.append(self._argument(argument, begin))
            begin = arguments[-1].comma_end or arguments[-1].end
        return LocatedCall(node, method, form, tuple(arguments), open_end, link_start, dot_space, self.span(node)[1])

    def _argument(self, argument: cst.Arg, begin: int) -> LocatedArgument:
        start = self._skip_space(begin)
        if argument.star:
            start = self._skip_space(start + len(argument.star))
        if argument.keyword is not None:
            equals = self._skip_space(start + len(argument.keyword.value))
            start = self._skip_space(equals + 1)
        end = self._skip_closing(self.span(argument.value)[1], len(argument.value.rpar))
        comma_end = self._skip_space(end) + 1 if isinstance(argument.comma, cst.Comma) else None
        keyword = argument.keyword.value if argument.keyword else None
        return LocatedArgument(keyword, argument.star, start, end, comma_end)

    def _skip_space(self, offset: int) -> int:
        """Offset after whitespace, line breaks, backslashes and comments."""
        match = _SPACE.match(self.text, offset)
        return match.end() if match else offset

    def _skip_closing(self, offset: int, count: int) -> int:
        """Offset after `count` closing parentheses."""
        for _ in range(count):
            offset = self._skip_space(offset) + 1
        return offset

    def _range(self, node: cst.CSTNode) -> cst.metadata.CodeRange:
        return self._wrapper.resolve(PositionProvider)[node]

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


def mentions(node: cst.CSTNode) -> list[str]:
    """Return every name in a piece of source, with repetitions; attributes and keywords do not count."""
    names: list[str] = []

    class Mentions(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            names.append(node.value)

        def visit_Attribute(self, node: cst.Attribute) -> bool:
            node.value.visit(self)
            return False

        def visit_Arg(self, node: cst.Arg) -> bool:
            node.value.visit(self)
            return False

    node.visit(Mentions())
    return names


def find_all(node: cst.CSTNode, kind: type[_Node]) -> list[_Node]:
    """Return all nodes of a kind in a piece of source, in order."""
    nodes: list[_Node] = []

    class Finder(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, kind):
                nodes.append(node)
            return True

    node.visit(Finder())
    return nodes


class _CallFinder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple[int, int], cst.Call] = {}

    def visit_Call(self, node: cst.Call) -> None:
        end = self.get_metadata(PositionProvider, node).end
        self.calls[end.line, end.column] = node


__all__ = ["NEWLINE", "LocatedArgument", "LocatedCall", "Source", "find_all", "mentions"]
