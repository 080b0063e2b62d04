"""Where calls stand in a source text, to the character.

In: the text of a file.  Out: `Source`, which finds the `LocatedCall` of a recorded `Call`, or None: nothing is ever guessed.

LibCST reads the text; edits are made on the text itself, so that whatever they do not touch stays byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from advisor.fixes.names import Imports
from advisor.model.recording import Call

_NEWLINE = re.compile(r"\r\n|\r|\n")
_SPACE = re.compile(r"(?:[ \t\f\r\n]|\\(?=[\r\n])|#[^\r\n]*)*")


@dataclass(frozen=True, slots=True)
class LocatedArgument:
    """One argument; `start` to `end` is its value, parentheses included."""

    keyword: str | None
    star: str
    start: int
    end: int
    comma_end: int | None
    """Behind its comma; None: it has none."""


@dataclass(frozen=True, slots=True, eq=False)
class LocatedCall:
    """A call in a text; numbers are offsets in characters."""

    node: cst.Call
    name: str
    arguments: tuple[LocatedArgument, ...]
    link_start: int | None
    """Where `.method(...)` begins, whitespace before the dot included; None: no method call."""
    dot_space: str
    """That whitespace (line breaks, backslashes and comments are part of it)."""
    open_end: int
    """Behind the opening parenthesis."""
    end: int


@dataclass(slots=True, eq=False)
class Source:
    """A parsed text. Raises `libcst.ParserSyntaxError` for what is no Python."""

    text: str
    module: cst.Module = field(init=False)
    imports: Imports = field(init=False)
    _starts: list[int] = field(init=False)
    _wrapper: MetadataWrapper = field(init=False)
    _calls: dict[tuple[int, int], cst.Call] = field(init=False)
    """(end line, end column) -> call; no two calls end at the same place."""

    def __post_init__(self) -> None:
        self._wrapper = MetadataWrapper(cst.parse_module(self.text), unsafe_skip_copy=True)
        self.module = self._wrapper.module
        self._starts = [0, *(match.end() for match in _NEWLINE.finditer(self.text))]
        finder = _Finder()
        self._wrapper.visit(finder)
        self._calls = finder.calls
        self.imports = finder.imports

    def locate(self, call: Call) -> LocatedCall | None:
        """The call that was recorded at `call.site`; None if another one, or none, stands there now."""
        site = call.site
        if site is None:
            return None
        node = self._calls.get((site.end_line, site.end_column - 1))
        if node is None or not isinstance(node.func, cst.Attribute | cst.Name):
            return None
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        start = self._range(name).start
        if name.value != call.method or (start.line, start.column) != (site.line, site.column - 1):
            return None
        return self._located(node, name)

    def parents(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The nodes around `node`, nearest first."""
        lookup = self._wrapper.resolve(ParentNodeProvider)
        found: list[cst.CSTNode] = []
        parent = lookup.get(node)
        while parent is not None:
            found.append(parent)
            parent = lookup.get(parent)
        return found

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of a node without its parentheses and surrounding whitespace."""
        place = self._range(node)
        return self._offset(place.start.line, place.start.column), self._offset(place.end.line, place.end.column)

    def line_span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of the whole lines that a node stands on, the last line break included."""
        place = self._range(node)
        ends = [*self._starts[1:], len(self.text)]
        return self._starts[place.start.line - 1], ends[place.end.line - 1]

    def line_before(self, offset: int) -> str:
        """What stands on the line of `offset` before it."""
        return self.text[max(start for start in self._starts if start <= offset) : offset]

    def line_after(self, offset: int) -> str:
        """What stands on the line of `offset` behind it, without the line break."""
        match = _NEWLINE.search(self.text, offset)
        return self.text[offset : match.start() if match else len(self.text)]

    @property
    def newline(self) -> str:
        """The text's own line break."""
        match = _NEWLINE.search(self.text)
        return match.group() if match else "\n"

    def _located(self, node: cst.Call, name: cst.Name) -> LocatedCall:
        link_start, dot_space = None, ""
        if isinstance(node.func, cst.Attribute):
            receiver = node.func.value
            link_start = self._skip_closing(self.span(receiver)[1], len(receiver.rpar))
            dot_space = self.text[link_start : self._skip_space(link_start)]
        open_end = self._skip_space(self._skip_closing(self.span(node.func)[1], len(node.func.rpar))) + 1
        arguments: list[LocatedArgument] = []
        begin = open_end
        for argument in node.args:
            arguments.append(self._argument(argument, begin))
            begin = arguments[-1].comma_end or arguments[-1].end
        return LocatedCall(node, name.value, tuple(arguments), link_start, dot_space, open_end, self.span(node)[1])

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
        """Behind whitespace, line breaks, backslashes and comments."""
        match = _SPACE.match(self.text, offset)
        return match.end() if match else offset

    def _skip_closing(self, offset: int, count: int) -> int:
        """Behind so many closing parentheses."""
        for _ in range(count):
            offset = self._skip_space(offset) + 1
        return offset

    def _range(self, node: cst.CSTNode) -> cst.metadata.CodeRange:
        return self._wrapper.resolve(PositionProvider)[node]

    def _offset(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column


class _Finder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider, ParentNodeProvider)

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple[int, int], cst.Call] = {}
        self.imports = Imports()
        self._functions: list[cst.CSTNode] = []

    def visit_Call(self, node: cst.Call) -> None:
        end = self.get_metadata(PositionProvider, node).end
        self.calls[end.line, end.column] = node

    def visit_Import(self, node: cst.Import) -> None:
        self.imports.add_import(node, self._functions)

    def visit_ImportFrom(self, node: cst.ImportFrom) -> None:
        self.imports.add_import_from(node, self._functions)

    def visit_AssignTarget(self, node: cst.AssignTarget) -> None:
        self.imports.add_assignment(node.target)

    def visit_Param(self, node: cst.Param) -> None:
        self.imports.add_assignment(node.name)

    def visit_FunctionDef(self, node: cst.FunctionDef) -> None:
        self._functions.append(node)

    def leave_FunctionDef(self, original_node: cst.FunctionDef) -> None:
        self._functions.pop()

    def visit_ClassDef(self, node: cst.ClassDef) -> None:
        self._functions.append(node)

    def leave_ClassDef(self, original_node: cst.ClassDef) -> None:
        self._functions.pop()
