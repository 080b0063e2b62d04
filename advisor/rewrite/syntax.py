"""Where calls stand in a source text, to the character.

In: the text of a file.  Out: `Source`, which finds the `LocatedCall` of a recorded `Call`, or raises CannotRewriteError:
nothing is ever guessed.

LibCST reads the text; edits are made on the text itself, so that whatever they do not touch stays byte for byte.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from typing import TypeVar

import libcst as cst
from libcst.metadata import MetadataWrapper, ParentNodeProvider, PositionProvider

from advisor.model.call_parameters import POSITIONS
from advisor.model.recording import Call
from advisor.rewrite.call_forms import Form, form_of
from advisor.rewrite.cannot_rewrite import CannotRewriteError
from advisor.rewrite.names import Names, names_in

NEWLINE = re.compile(r"\r\n|\r|\n")
_SPACE = re.compile(r"(?:[ \t\f\r\n]|\\(?=[\r\n])|#[^\r\n]*)*")
_Node = TypeVar("_Node", bound=cst.CSTNode)


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
    method: str
    """The recorded method."""
    form: Form
    """How the text calls it."""
    arguments: tuple[LocatedArgument, ...]
    """All of the call in which the method's arguments stand; `form.skip` of them come before those."""
    open_end: int
    """Behind the opening parenthesis of that call."""
    link_start: int | None
    """Where `.method(...)` begins, whitespace before the dot included; None: no method call."""
    dot_space: str
    """That whitespace (line breaks, backslashes and comments are part of it)."""
    end: int


@dataclass(slots=True, eq=False)
class Source:
    """A parsed text. Raises CannotRewriteError for what is no Python."""

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
            raise CannotRewriteError("The file is no Python that can be read.") from None
        self.module = self._wrapper.module
        if self.module.code != self.text:  # places would be wrong
            raise CannotRewriteError("The file has characters whose places are not certain.")
        self._starts = [0, *(match.end() for match in NEWLINE.finditer(self.text))]
        finder = _CallFinder()
        self._wrapper.visit(finder)
        self._calls, self.names = finder.calls, names_in(self.module)

    def locate(self, call: Call) -> LocatedCall:
        """The call that was recorded at `call.site`; CannotRewriteError if another one, or none, stands there now."""
        site = call.site
        node = None if site is None else self._calls.get((site.end_line, site.end_column - 1))
        if site is None or node is None:
            raise CannotRewriteError(
                f"No call ends where {call.method} was recorded{_line(call)}: the file is another one now."
            )
        name = node.func.attr if isinstance(node.func, cst.Attribute) else node.func
        start = self._range(name).start
        if (start.line, start.column) != (site.line, site.column - 1) or not self._is_same_text(call, name, node):
            raise CannotRewriteError(f"Another call stands where {call.method} was recorded{_line(call)}.")
        form = form_of(node, call, self.names)
        if form is None:
            raise CannotRewriteError(
                f"That {self.code(node.func)} makes {call.method} is not plain from the text{_line(call)}."
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
            raise CannotRewriteError(f"The arguments of {call.method} are not those that were recorded{_line(call)}.")
        return located

    def parents(self, node: cst.CSTNode) -> list[cst.CSTNode]:
        """The nodes around `node`, nearest first."""
        lookup = self._wrapper.resolve(ParentNodeProvider)
        found: list[cst.CSTNode] = []
        parent = lookup.get(node)
        while parent is not None:
            found.append(parent)
            parent = lookup.get(parent)
        return found

    def statement(self, node: cst.CSTNode) -> tuple[cst.CSTNode, cst.Module | cst.IndentedBlock]:
        """The statement on lines of its own that holds `node`, and its block."""
        previous = node
        for parent in self.parents(node):
            if isinstance(parent, cst.Module | cst.IndentedBlock):
                return previous, parent
            previous = parent
        raise CannotRewriteError("The call stands in no statement.")

    def scope(self, node: cst.CSTNode) -> cst.FunctionDef | cst.ClassDef | cst.Module:
        """The function, class or module whose names `node` sees first."""
        kinds = cst.FunctionDef | cst.ClassDef | cst.Module
        return next(parent for parent in self.parents(node) if isinstance(parent, kinds))

    def code(self, node: cst.CSTNode) -> str:
        """A node's text, on one line."""
        return " ".join(self.module.code_for_node(node).split())

    def span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of a node without its parentheses and surrounding whitespace."""
        place = self._range(node)
        return self._offset(place.start.line, place.start.column), self._offset(place.end.line, place.end.column)

    def line_span(self, node: cst.CSTNode) -> tuple[int, int]:
        """Start and end of the whole lines that a node stands on, the last line break included."""
        place = self._range(node)
        first = place.start.line
        for decorator in getattr(node, "decorators", ()):
            first = min(first, self._range(decorator).start.line)
        ends = [*self._starts[1:], len(self.text)]
        return self._starts[first - 1], ends[place.end.line - 1]

    def indent(self, statement: cst.CSTNode) -> str:
        """The whitespace before a statement."""
        start = self.line_span(statement)[0]
        return re.match(r"[ \t\f]*", self.text[start:]).group()  # type: ignore[union-attr]

    def line_before(self, offset: int) -> str:
        """What stands on the line of `offset` before it."""
        return self.text[max(start for start in self._starts if start <= offset) : offset]

    def line_after(self, offset: int) -> str:
        """What stands on the line of `offset` behind it, without the line break."""
        match = NEWLINE.search(self.text, offset)
        return self.text[offset : match.start() if match else len(self.text)]

    @property
    def newline(self) -> str:
        """The text's own line break."""
        match = NEWLINE.search(self.text)
        return match.group() if match else "\n"

    def argument_span(self, located: LocatedCall, index: int) -> tuple[int, int]:
        """Start and end of an argument, its name included."""
        before = located.open_end if index == 0 else located.arguments[index - 1].comma_end
        return self._skip_space(before or located.open_end), located.arguments[index].end

    def _is_same_text(self, call: Call, name: cst.CSTNode, node: cst.Call) -> bool:
        """Whether the call reads as it did when it was recorded (the recorder joins lines, and cuts long calls short)."""
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


def _line(call: Call) -> str:
    return f" (line {call.site.line})" if call.site is not None else ""


def mentions(node: cst.CSTNode) -> list[str]:
    """Every name that a piece of source mentions, as often as it does; attributes and keywords are no names."""
    found: list[str] = []

    class Mentions(cst.CSTVisitor):
        def visit_Name(self, node: cst.Name) -> None:
            found.append(node.value)

        def visit_Attribute(self, node: cst.Attribute) -> bool:
            node.value.visit(self)
            return False

        def visit_Arg(self, node: cst.Arg) -> bool:
            node.value.visit(self)
            return False

    node.visit(Mentions())
    return found


def find_all(node: cst.CSTNode, kind: type[_Node]) -> list[_Node]:
    """All nodes of a kind in a piece of source, in its order."""
    found: list[_Node] = []

    class Finder(cst.CSTVisitor):
        def on_visit(self, node: cst.CSTNode) -> bool:
            if isinstance(node, kind):
                found.append(node)
            return True

    node.visit(Finder())
    return found


class _CallFinder(cst.CSTVisitor):
    METADATA_DEPENDENCIES = (PositionProvider,)

    def __init__(self) -> None:
        super().__init__()
        self.calls: dict[tuple[int, int], cst.Call] = {}

    def visit_Call(self, node: cst.Call) -> None:
        end = self.get_metadata(PositionProvider, node).end
        self.calls[end.line, end.column] = node


__all__ = ["NEWLINE", "LocatedArgument", "LocatedCall", "Source", "find_all", "mentions"]
