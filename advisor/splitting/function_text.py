"""Finds the function of a recorded `map` or `flat_map` in the text of its file.

In: a text and the recorded call.  Out: `FunctionText`, or `CannotSplitError` if the text does not show which function it is, or
if the function has a form that is never cut.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

from advisor.model.calls import Call, Site
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.wrappers import Wrapper, called_by, wrapper_of

NEWLINE = re.compile(r"\r\n|\r|\n")
Function = ast.FunctionDef | ast.Lambda
_FORBIDDEN: tuple[tuple[tuple[type[ast.AST], ...], str], ...] = (
    ((ast.Global, ast.Nonlocal), "it assigns names of an enclosing scope"),
    ((ast.Yield, ast.YieldFrom), "it is a generator"),
    ((ast.Await, ast.AsyncFor, ast.AsyncWith, ast.AsyncFunctionDef), "it is asynchronous"),
    ((ast.NamedExpr,), "it contains an assignment expression (:=)"),
    ((ast.Delete,), "it contains `del`"),
    ((ast.ClassDef,), "it contains a class"),
)
_INTROSPECTION = frozenset({"locals", "globals", "vars", "dir", "eval", "exec", "super", "__class__", "inspect"})


@dataclass(frozen=True, slots=True)
class FunctionText:
    """A function that is passed to a transformation, in the text."""

    tree: ast.Module
    lines: tuple[str, ...]
    """The lines of the text with their line breaks."""
    function: Function
    scope: ast.AST
    """The function or module in which it is defined."""
    wrapper: Wrapper | None = None
    """The lambda or partial that the call gets, if that only calls the function."""

    @property
    def name(self) -> str:
        """`load`, or `<lambda>`."""
        return self.function.name if isinstance(self.function, ast.FunctionDef) else "<lambda>"

    def code(self, node: ast.AST) -> str:
        """Return the text of an expression as it is written."""
        return ast.get_source_segment("".join(self.lines), node) or ast.unparse(node)

    def offset(self, line: int, column: int) -> int:
        """Return the offset in characters of a position of `ast`, whose columns are UTF-8 bytes."""
        return sum(map(len, self.lines[: line - 1])) + len(self.lines[line - 1].encode()[:column].decode())

    def wrapper_around(self, name: str) -> str:
        """Return the text of the wrapper, with another function or method in the place of the one that it calls; empty if none.

        Args:
            name: The name of the other function or method.

        Raises:
            CannotSplitError: It contains a comment.
        """
        if self.wrapper is None:
            return ""
        node, called = self.wrapper.node, self.wrapper.called
        whole = self.code(node)
        if "#" in whole:
            raise CannotSplitError(f"the {'lambda' if isinstance(node, ast.Lambda) else 'partial'} contains a comment")
        end = self.offset(called.end_lineno or called.lineno, called.end_col_offset or 0)
        end -= self.offset(node.lineno, node.col_offset)
        return f"{whole[: end - len(self.wrapper.name)]}{name}{whole[end:]}"

    def between(self, first: int, last: int) -> str:
        """Return the lines from `first` to `last`, both inclusive, numbered from 1."""
        return "".join(self.lines[first - 1 : last])


def function_of(text: str, call: Call, *, is_unwrapped: bool = False) -> FunctionText:
    """Return the function of a `map` or `flat_map`.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call.
        is_unwrapped: Whether to return the function that a lambda or a partial only calls, instead of the lambda.

    Raises:
        CannotSplitError: It cannot be found in this text, or is never cut.
    """
    lines = tuple(re.findall(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+$", text))
    try:
        tree = ast.parse(text)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise CannotSplitError("the file cannot be parsed") from None
    parents = {child: parent for parent in ast.walk(tree) for child in ast.iter_child_nodes(parent)}
    located = _located(tree, lines, call)
    function: Function
    argument = _argument(located, call.method)
    wrapper = None
    called = called_by(argument) if is_unwrapped else None
    behind = _site_behind(argument, call) if called is not None else None
    if called is not None and behind is not None:
        if isinstance(called, ast.Attribute):
            function = _method(tree, called.attr, call, behind, parents)
        else:
            function = _definition(called.id, call, behind, _scopes(located, parents))
        wrapper = wrapper_of(argument, function, is_method=isinstance(called, ast.Attribute))
    elif isinstance(argument, ast.Lambda):
        function = argument
        _check_alone(tree, argument)
    elif isinstance(argument, ast.Name):
        site = call.function.site if call.function is not None else None
        function = _definition(argument.id, call, site, _scopes(located, parents))
    else:
        raise CannotSplitError(f"it is passed as `{ast.unparse(argument)[:60]}`, not by the name of a function")
    _check(function, parents, is_method=wrapper is not None and wrapper.receiver != "")
    return FunctionText(tree, lines, function, _scopes(function, parents)[0], wrapper)


def _site_behind(argument: ast.expr, call: Call) -> Site | None:
    """Where the function is defined that a lambda or partial calls; None if that is unknown."""
    facts = call.function
    if facts is None or not isinstance(argument, ast.Lambda):
        return facts.site if facts is not None else None
    return facts.called.site if facts.called is not None else None


def _located(tree: ast.Module, lines: tuple[str, ...], call: Call) -> ast.Call:
    site = call.site
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call) or site is None or node.end_lineno != site.end_line:
            continue
        line = lines[node.end_lineno - 1].encode()[: node.end_col_offset].decode(errors="replace")
        if len(line) == site.end_column - 1 and isinstance(node.func, ast.Attribute) and node.func.attr == call.method:
            return node
    raise CannotSplitError(f"the text has no call of {call.method} where it was recorded")


def _argument(call: ast.Call, method: str) -> ast.expr:
    named = [keyword.value for keyword in call.keywords if keyword.arg == "map_func"]
    is_unbound = isinstance(call.func, ast.Attribute) and ast.unparse(call.func.value).rpartition(".")[2] in (
        "Dataset",
        "DatasetV2",
    )
    has_stars = any(isinstance(value, ast.Starred) for value in call.args) or any(k.arg is None for k in call.keywords)
    if has_stars or is_unbound or not (named or call.args):
        raise CannotSplitError(f"the call of {method} does not show which function it gets")
    return named[0] if named else call.args[0]


def _definition(name: str, call: Call, site: Site | None, scopes: list[ast.AST]) -> ast.FunctionDef:
    """Return the definition that a name refers to.

    Args:
        name: The name.
        call: The recorded call.
        site: Where the function was recorded to be defined.
        scopes: The functions around the call, innermost first, and the module.
    """
    if site is None or call.site is None or site.file != call.site.file:
        raise CannotSplitError(f"`{name}` is defined in another file")
    for scope in scopes:
        bindings = [node for node in _own_nodes(scope) if _binds(node, name)]
        if len(bindings) > 1:
            raise CannotSplitError(f"`{name}` is bound more than once")
        if bindings:
            function = bindings[0]
            if not isinstance(function, ast.FunctionDef) or site.line not in (first_line(function), function.lineno):
                break
            return function
    raise CannotSplitError(f"`{name}` does not name a function that is defined where it was recorded")


def _scopes(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    return [outer for outer in _outside(node, parents) if isinstance(outer, ast.FunctionDef | ast.Lambda | ast.Module)]


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
        return (node.asname or node.name) == name
    if isinstance(node, ast.Global | ast.Nonlocal):
        return name in node.names
    return isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store | ast.Del) and node.id == name


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the first line of a definition, with its decorators."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _check_alone(tree: ast.Module, function: ast.Lambda) -> None:
    """Raise CannotSplitError if its first line contains another lambda: ops are assigned to lines."""
    others = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node is not function]
    if any(node.lineno == function.lineno for node in others):
        raise CannotSplitError("its line contains more than one lambda", function.lineno)


def _outside(node: ast.AST, parents: dict[ast.AST, ast.AST]) -> list[ast.AST]:
    outside = []
    while node in parents:
        node = parents[node]
        outside.append(node)
    return outside


def _method(tree: ast.Module, name: str, call: Call, site: Site, parents: dict[ast.AST, ast.AST]) -> ast.FunctionDef:
    """Return the definition of a method, if no other class and no assignment of the file gives the name another meaning."""
    if call.site is None or site.file != call.site.file:
        raise CannotSplitError(f"`{name}` is defined in another file")
    found = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    methods = [node for node in found if isinstance(parents.get(node), ast.ClassDef)]
    is_assigned = any(
        isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load)
        for node in ast.walk(tree)
    )
    if len(methods) > 1 or is_assigned or name.startswith("__"):
        raise CannotSplitError(f"`{name}` has more than one meaning")
    if not methods or site.line not in (first_line(methods[0]), methods[0].lineno):
        raise CannotSplitError(f"`{name}` does not name a method that is defined where it was recorded")
    return methods[0]


def _check(function: Function, parents: dict[ast.AST, ast.AST], is_method: bool) -> None:
    """Raise CannotSplitError if the function has a form that is never cut."""
    for node in ast.walk(function):
        for kinds, reason in _FORBIDDEN:
            if isinstance(node, kinds):
                raise CannotSplitError(reason)
        if isinstance(node, ast.Name) and node.id in _INTROSPECTION:
            raise CannotSplitError(f"it uses `{node.id}`")
    arguments = function.args
    if arguments.vararg is not None or arguments.kwarg is not None:
        raise CannotSplitError("it takes a variable number of arguments")
    defaults = [*arguments.defaults, *(value for value in arguments.kw_defaults if value is not None)]
    if any(not is_constant(value, frozenset()) for value in defaults):
        raise CannotSplitError("a default of its parameters is more than a name or a literal")
    if isinstance(function, ast.Lambda):
        return
    if isinstance(parents.get(function), ast.ClassDef) and not is_method:
        raise CannotSplitError("it is a method")
    if any(
        ast.unparse(decorator) not in ("tf.function", "tensorflow.function") for decorator in function.decorator_list
    ):
        raise CannotSplitError("it has a decorator other than tf.function")
    if getattr(function, "type_params", ()):
        raise CannotSplitError("it has type parameters")
    names = {node.attr if isinstance(node, ast.Attribute) else getattr(node, "id", "") for node in ast.walk(function)}
    if function.name in names:
        raise CannotSplitError("it calls itself")


def is_constant(node: ast.expr, local: frozenset[str]) -> bool:
    """Return whether an expression has the same value wherever the function evaluates it.

    Args:
        node: An expression of literals, names, attributes of names and operators, or anything else.
        local: Names of the function that have another value elsewhere.
    """
    match node:
        case ast.Constant():
            return True
        case ast.Name():
            return node.id not in local
        case ast.Attribute():
            return is_constant(node.value, local)
        case ast.UnaryOp():
            return is_constant(node.operand, local)
        case ast.BinOp():
            return is_constant(node.left, local) and is_constant(node.right, local)
        case ast.Tuple():
            return all(is_constant(element, local) for element in node.elts)
        case _:
            return False
