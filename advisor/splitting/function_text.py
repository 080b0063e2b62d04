"""Finds the function of a recorded `map` or `flat_map` in the text of its file.

In: the text with the call, the recorded call, and how to read the file that defines its function.  Out: `FunctionText`, or
`CannotSplitError` if the text does not show which function it is, or if the function has a form that is never cut.
"""

from __future__ import annotations

import ast
from collections.abc import Callable
from dataclasses import dataclass

from advisor.model.calls import Call, Site
from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.file_text import FileText, bindings_of, file_text
from advisor.splitting.imported_function import Imported, check_project, imported_function
from advisor.splitting.wrappers import Wrapper, called_by, wrapper_of

ReadText = Callable[[str], str | None]
"""Returns the text of a file, as recorded calls name it; None if it cannot be read."""
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

    file: FileText
    """The file that defines it."""
    function: Function
    scope: ast.AST
    """The function or module in which it is defined."""
    caller: FileText
    """The file with the call."""
    wrapper: Wrapper | None = None
    """The lambda or partial that the call gets, if that only calls the function; the expression, if that is an attribute."""
    imported: Imported | None = None
    """Where it comes from; None if the file of the call defines it."""

    @property
    def name(self) -> str:
        """`load`, or `<lambda>`."""
        return self.function.name if isinstance(self.function, ast.FunctionDef) else "<lambda>"

    def wrapper_around(self, name: str) -> str:
        """Return the text of the wrapper, with another function or method in the place of the one that it calls; empty if none.

        Args:
            name: The name of the other function or method.

        Raises:
            CannotSplitError: It contains a comment.
        """
        if self.wrapper is None:
            return ""
        node, called, caller = self.wrapper.node, self.wrapper.called, self.caller
        whole = caller.code(node)
        if "#" in whole:
            raise CannotSplitError(f"the {'lambda' if isinstance(node, ast.Lambda) else 'partial'} contains a comment")
        end = caller.offset(called.end_lineno or called.lineno, called.end_col_offset or 0)
        end -= caller.offset(node.lineno, node.col_offset)
        return f"{whole[: end - len(self.wrapper.name)]}{name}{whole[end:]}"


def no_other_file(file: str) -> None:
    """Read none of the other files, so that functions in them are not found."""


def function_of(text: str, call: Call, read: ReadText = no_other_file, *, is_unwrapped: bool = False) -> FunctionText:
    """Return the function of a `map` or `flat_map`.

    Args:
        text: The text of the file that contains the call.
        call: The recorded call.
        read: Reads the file that defines the function, if it is another one.
        is_unwrapped: Whether to return the function that a lambda or a partial only calls, instead of the lambda.

    Raises:
        CannotSplitError: It cannot be found in this text, or is never cut.
    """
    caller = file_text(text)
    located = _located(caller.tree, caller.lines, call)
    argument = _argument(located, call.method)
    called = called_by(argument) if is_unwrapped else None
    behind = _site_behind(argument, call) if called is not None else None
    function: Function
    imported, wrapper = None, None
    if called is not None and behind is not None:
        definition, file, imported = _found(called, call, behind, caller, read, caller.scopes(located))
        is_method = isinstance(file.parents.get(definition), ast.ClassDef)
        function, wrapper = definition, wrapper_of(argument, definition, is_method)
    elif isinstance(argument, ast.Lambda):
        _check_alone(caller.tree, argument)
        function, file = argument, caller
    elif isinstance(argument, ast.Name):
        site = call.function.site if call.function is not None else None
        function, file, imported = _found(argument, call, site, caller, read, caller.scopes(located))
    else:
        raise CannotSplitError(f"it is passed as `{ast.unparse(argument)[:60]}`, not by the name of a function")
    _check(function, file.parents, is_method=wrapper is not None and wrapper.receiver != "")
    return FunctionText(file, function, file.scopes(function)[0], caller, wrapper, imported)


def _found(
    called: ast.Name | ast.Attribute,
    call: Call,
    site: Site | None,
    caller: FileText,
    read: ReadText,
    scopes: list[ast.AST],
) -> tuple[ast.FunctionDef, FileText, Imported | None]:
    """Return the definition that an expression names, in the file of the call or in another one.

    Args:
        called: `load`, `self.load`, `data.load`.
        call: The recorded call.
        site: Where the function was recorded to be defined; None if that is unknown.
        caller: The file with the call.
        read: Reads another file.
        scopes: The functions around the call, innermost first, and the module.
    """
    name = called.id if isinstance(called, ast.Name) else called.attr
    if site is None or call.site is None:
        raise CannotSplitError(f"it is unknown where `{name}` is defined")
    if site.file == call.site.file:
        if isinstance(called, ast.Attribute):
            return _method(caller, caller, name, site), caller, None
        return _definition(name, site, scopes), caller, None
    check_project(name, site.file)
    text = read(site.file)
    if text is None:
        raise CannotSplitError(f"`{name}` is defined in another file, which cannot be read")
    file = file_text(text)
    at_top = [node for node in file.tree.body if isinstance(node, ast.FunctionDef) and _is_at(node, site)]
    if at_top:
        imported = imported_function(called, at_top[0].name, caller, call.site.file, site.file)
        return _definition(at_top[0].name, site, [file.tree]), file, imported
    if isinstance(called, ast.Attribute):
        return _method(file, caller, name, site), file, Imported(site.file, "")
    raise CannotSplitError(f"`{name}` is not plainly imported from the file that defines it")


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


def _definition(name: str, site: Site, scopes: list[ast.AST]) -> ast.FunctionDef:
    """Return the definition that a name refers to.

    Args:
        name: The name.
        site: Where the function was recorded to be defined.
        scopes: The functions around the name, innermost first, and the module.
    """
    for scope in scopes:
        bindings = bindings_of(name, scope)
        if len(bindings) > 1:
            raise CannotSplitError(f"`{name}` is bound more than once")
        if bindings:
            function = bindings[0]
            if not isinstance(function, ast.FunctionDef) or not _is_at(function, site):
                break
            return function
    raise CannotSplitError(f"`{name}` does not name a function that is defined where it was recorded")


def _is_at(function: ast.FunctionDef, site: Site) -> bool:
    return site.line in (first_line(function), function.lineno)


def first_line(function: ast.FunctionDef | ast.AsyncFunctionDef) -> int:
    """Return the first line of a definition, with its decorators."""
    return min([function.lineno, *(decorator.lineno for decorator in function.decorator_list)])


def _check_alone(tree: ast.Module, function: ast.Lambda) -> None:
    """Raise CannotSplitError if its first line contains another lambda: ops are assigned to lines."""
    others = [node for node in ast.walk(tree) if isinstance(node, ast.Lambda) and node is not function]
    if any(node.lineno == function.lineno for node in others):
        raise CannotSplitError("its line contains more than one lambda", function.lineno)


def _method(file: FileText, caller: FileText, name: str, site: Site) -> ast.FunctionDef:
    """Return the definition of a method, if no other class and no assignment of the files gives the name another meaning.

    Args:
        file: The file that defines it.
        caller: The file with the call.
        name: Its name.
        site: Where it was recorded to be defined.
    """
    found = [node for node in ast.walk(file.tree) if isinstance(node, ast.FunctionDef) and node.name == name]
    methods = [node for node in found if isinstance(file.parents.get(node), ast.ClassDef)]
    is_assigned = any(
        isinstance(node, ast.Attribute) and node.attr == name and not isinstance(node.ctx, ast.Load)
        for tree in (file.tree, caller.tree)
        for node in ast.walk(tree)
    )
    if len(methods) > 1 or is_assigned or name.startswith("__"):
        raise CannotSplitError(f"`{name}` has more than one meaning")
    if not methods or not _is_at(methods[0], site):
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
