"""The text of a file with its syntax tree, and positions in it.

In: a text.  Out: `FileText`, or `CannotSplitError` if it cannot be parsed.
"""

from __future__ import annotations

import ast
import io
import re
import tokenize
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property

from advisor.splitting.cannot_split import CannotSplitError

NEWLINE = re.compile(r"\r\n|\r|\n")


@dataclass(frozen=True)
class FileText:
    """A file of the project."""

    tree: ast.Module
    lines: tuple[str, ...]
    """The lines of the text with their line breaks."""

    @cached_property
    def text(self) -> str:
        """The whole text."""
        return "".join(self.lines)

    @cached_property
    def parents(self) -> dict[ast.AST, ast.AST]:
        """Node -> the node around it."""
        return {child: parent for parent in ast.walk(self.tree) for child in ast.iter_child_nodes(parent)}

    def code(self, node: ast.AST) -> str:
        """Return the text of an expression as it is written."""
        return ast.get_source_segment(self.text, node) or ast.unparse(node)

    def unparsed(self, node: ast.AST) -> str:
        """Return the text of a node that does not stand in the file, with the quotes that the file prefers."""
        text = ast.unparse(node)
        return _with_double_quotes(text) if self._has_double_quotes else text

    @cached_property
    def _has_double_quotes(self) -> bool:
        """Whether more texts begin with a double quote than with a single one, docstrings left out."""
        opened = [match.group(2) for token in _texts(self.text) if (match := _QUOTED.match(token.string))]
        return opened.count('"') > opened.count("'")

    def offset(self, line: int, column: int) -> int:
        """Return the offset in characters of a position of `ast`, whose columns are UTF-8 bytes."""
        return sum(map(len, self.lines[: line - 1])) + len(self.lines[line - 1].encode()[:column].decode())

    def between(self, first: int, last: int) -> str:
        """Return the lines from `first` to `last`, both inclusive, numbered from 1."""
        return "".join(self.lines[first - 1 : last])

    def scopes(self, node: ast.AST) -> list[ast.AST]:
        """Return the functions around a node, innermost first, and the module."""
        return [outer for outer in self._outside(node) if isinstance(outer, ast.FunctionDef | ast.Lambda | ast.Module)]

    def _outside(self, node: ast.AST) -> Iterator[ast.AST]:
        while node in self.parents:
            node = self.parents[node]
            yield node


_QUOTED = re.compile(r"""([A-Za-z]*)(["'])(?!\2\2)(.*)\2$""", re.DOTALL)
"""A text that is not in triple quotes: its prefix, its quote, and what is between."""


def _texts(text: str) -> list[tokenize.TokenInfo]:
    """The tokens that are texts and not inside f-strings, in which Python before 3.12 does not allow the quotes around them."""
    found, depth = [], 0
    try:
        for token in tokenize.generate_tokens(io.StringIO(text).readline):
            name = tokenize.tok_name[token.type]
            depth += name.endswith("STRING_START") - name.endswith("STRING_END")
            if token.type == tokenize.STRING and not depth:
                found.append(token)
    except (tokenize.TokenError, SyntaxError):
        return []
    return found


def _with_double_quotes(text: str) -> str:
    """The same code with double quotes around texts that need no escape for it; f-strings stay as they are."""
    lines = text.split("\n")
    for token in reversed(_texts(text)):
        match = _QUOTED.match(token.string)
        (row, start), (end_row, end) = token.start, token.end
        is_plain = match is not None and row == end_row and match[2] == "'" and "f" not in match[1].lower()
        if match is None or not is_plain or set(match[3]) & set("\\\"'"):
            continue
        line = lines[row - 1]
        lines[row - 1] = f'{line[:start]}{match[1]}"{match[3]}"{line[end:]}'
    return "\n".join(lines)


def file_text(text: str) -> FileText:
    """Parse a text.

    Raises:
        CannotSplitError: It is not valid Python.
    """
    lines = tuple(re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text))
    try:
        return FileText(ast.parse(text), lines)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CannotSplitError("the file cannot be parsed") from None


def bindings_of(name: str, scope: ast.AST) -> list[ast.AST]:
    """Return the nodes of a scope that give a name its meaning: definitions, parameters, imports, assignments.

    Args:
        name: The name.
        scope: A function or module; the bodies of functions in it do not count.
    """
    return [node for node in _own_nodes(scope) if _binds(node, name)]


def _own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Yield the nodes of a scope, with the definitions in it but without their bodies."""
    pending = list(ast.iter_child_nodes(scope))
    while pending:
        node = pending.pop()
        yield node
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.Lambda | ast.ClassDef):
            pending += ast.iter_child_nodes(node)


def _binds(node: ast.AST, name: str) -> bool:
    if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
        return node.name == name
    if isinstance(node, ast.arg):
        return node.arg == name
    if isinstance(node, ast.alias):
        return (node.asname or node.name.partition(".")[0]) == name
    if isinstance(node, ast.Global | ast.Nonlocal):
        return name in node.names
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del) and node.id == name
