"""Determines which values the first half of a function passes on to the second.

In: the statements of a function and the place of the cut.  Out: `NamesAcross`, or `CannotSplitError` if a value may not exist at
the cut, or is a function.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from advisor.splitting.cannot_split import CannotSplitError
from advisor.splitting.function_text import FunctionText, is_constant
from advisor.splitting.names_used import names_bound, names_needed, surely_bound


@dataclass(frozen=True, slots=True)
class NamesAcross:
    """The values that the second half of a function needs."""

    crossing: tuple[str, ...]
    """Names that the first half returns: parameters, then others in the order of their first assignment, then `value`."""
    repeated: tuple[ast.stmt, ...]
    """Statements of the first half that the second one repeats: constants and imports."""
    defaults: tuple[tuple[str, str], ...]
    """(parameter, text of its default) of parameters that the element does not fill."""
    bound: tuple[str, ...]
    """Parameters that a lambda or partial around the function fills."""
    receiver: str
    """The first parameter of a method, which both halves have; empty for a function."""
    value: str
    """Name of the value of the expression that is taken out of the statement at the cut; empty if there is none."""


def names_across(
    function_text: FunctionText, body: list[ast.stmt], cut: int, inner: ast.expr | None, element_spec: str
) -> NamesAcross:
    """Return what crosses the cut.

    Args:
        function_text: The function.
        body: Its statements.
        cut: Number of the first statement of the second half.
        inner: The expression in that statement that belongs to the first half; None if there is none.
        element_spec: The element spec of the input of the `map`, as recorded.

    Raises:
        CannotSplitError: A value cannot be passed on.
    """
    first = body[:cut]
    value = fresh_name(function_text, "value") if inner is not None else ""
    needed = names_needed([without(body[cut], inner, value), *body[cut + 1 :]])
    passed, defaults = parameters_of(function_text, element_spec)
    filled = function_text.wrapper.bound if function_text.wrapper is not None else {}
    bound = names_bound(first)
    repeatable = constant_statements(body, first, {*passed, *defaults, *filled})
    repeated: list[ast.stmt] = []
    for statement in reversed(first):
        names = set(names_bound([statement])) & needed
        if names and statement in repeatable:
            repeated.insert(0, statement)
            needed |= names_needed([statement])
            needed -= names
    kept = {name: text for name, text in defaults.items() if name in needed and name not in bound}
    again = tuple(name for name in filled if name in needed and name not in bound)
    receiver = function_text.wrapper.receiver if function_text.wrapper is not None else ""
    if receiver and receiver in bound:
        raise CannotSplitError(f"it assigns `{receiver}`")
    certain = {*passed, *(name for name in (*defaults, *filled) if name not in kept), *surely_bound(first)}
    _check_values(first, needed)
    order = dict.fromkeys([*passed, *defaults, *filled, *bound])
    unsure = [name for name in order if name in needed and name not in certain and name not in kept]
    if unsure:
        raise CannotSplitError(f"`{unsure[0]}` is not assigned on every way to it")
    crossing = tuple(name for name in order if name in needed and name not in kept and name not in again)
    crossing += (value,) if value else ()
    if not crossing:
        raise CannotSplitError("the rest uses nothing that is computed before it")
    return NamesAcross(crossing, tuple(repeated), tuple(kept.items()), again, receiver, value)


def fresh_name(function_text: FunctionText, base: str, taken: Collection[str] = ()) -> str:
    """Return a name that neither the file of the function nor that of the call uses, nor the caller (`taken`).

    Args:
        function_text: The function, with the files.
        base: The name to begin with; `base_2`, `base_3` and so on follow.
        taken: Further names that must not be used.
    """
    used: set[str] = set(taken)
    trees = {id(file.tree): file.tree for file in (function_text.file, function_text.caller)}.values()
    for node in (node for tree in trees for node in ast.walk(tree)):
        for attribute in ("id", "arg", "name", "attr", "asname"):
            name = getattr(node, attribute, None)
            used |= {name} if isinstance(name, str) else set()
    return next(name for name in (base, *(f"{base}_{number}" for number in range(2, 1000))) if name not in used)


def parameters_of(function_text: FunctionText, element_spec: str) -> tuple[list[str], dict[str, str]]:
    """Return the parameters that the element fills, and the others with their defaults.

    Raises:
        CannotSplitError: The element spec does not show which these are.
    """
    arguments, wrapper = function_text.function.args, function_text.wrapper
    positional = [*arguments.posonlyargs, *arguments.args][bool(wrapper is not None and wrapper.receiver) :]
    default_texts = [function_text.file.unparsed(value) for value in arguments.defaults]
    with_default = dict(
        zip(
            [parameter.arg for parameter in positional[len(positional) - len(default_texts) :]],
            default_texts,
            strict=True,
        )
    )
    only = {
        parameter.arg: function_text.file.unparsed(value)
        for parameter, value in zip(arguments.kwonlyargs, arguments.kw_defaults, strict=True)
        if value is not None
    }
    bound = wrapper.bound if wrapper is not None else {}
    if wrapper is not None and wrapper.filled is not None:
        rest = {name: text for name, text in (with_default | only).items() if name not in (*wrapper.filled, *bound)}
        return list(wrapper.filled), rest
    with_default = {name: text for name, text in with_default.items() if name not in bound}
    only = {name: text for name, text in only.items() if name not in bound}
    positional = [parameter for parameter in positional if parameter.arg not in bound]
    if not with_default:
        return [parameter.arg for parameter in positional], only
    count = _components(element_spec)
    if count is None or not len(positional) - len(with_default) <= count <= len(positional):
        raise CannotSplitError("it is unknown which of its parameters keep their defaults")
    passed = [parameter.arg for parameter in positional[:count]]
    return passed, {name: text for name, text in with_default.items() if name not in passed} | only


def _components(spec: str) -> int | None:
    """Number of arguments that an element of this spec is passed as; None if the spec does not show it."""
    if not spec or spec.endswith("…"):
        return None
    if not spec.startswith("("):
        return 1 if spec.startswith(("TensorSpec(", "RaggedTensorSpec(", "SparseTensorSpec(", "{")) else None
    depth = count = 0
    for character in spec[1:-1].rstrip(","):
        depth += (character in "([{") - (character in ")]}")
        count += character == "," and depth == 0
    return count + 1


def constant_statements(body: Sequence[ast.stmt], among: Sequence[ast.stmt], parameters: set[str]) -> list[ast.stmt]:
    """Return the statements that may be executed elsewhere, or twice: constants that are assigned once, and imports.

    Args:
        body: The statements of a function.
        among: Those to choose from.
        parameters: The parameters of the function.
    """
    local = {*parameters, *names_bound(body)}
    repeatable: list[ast.stmt] = []
    for statement in among:
        names = set(names_bound([statement]))
        is_only = not names & parameters and sum(bool(names & names_bound([other]).keys()) for other in body) == 1
        is_fixed = isinstance(statement, ast.Import | ast.ImportFrom) or (
            isinstance(statement, ast.Assign)
            and all(isinstance(target, ast.Name) for target in statement.targets)
            and is_constant(statement.value, frozenset(local))
        )
        if is_only and is_fixed:
            repeatable.append(statement)
            local -= names
    return repeatable


def _check_values(first: list[ast.stmt], needed: set[str]) -> None:
    for statement in first:
        names = set(names_bound([statement])) & needed
        is_function = isinstance(statement, ast.FunctionDef) or (
            isinstance(statement, ast.Assign) and isinstance(statement.value, ast.Lambda)
        )
        if names and is_function:
            raise CannotSplitError(f"the rest calls `{min(names)}`, a function that is defined before it")


def without(statement: ast.stmt, inner: ast.expr | None, value: str) -> ast.stmt:
    """Return the statement with a name in place of an expression; the statement itself if there is none.

    Args:
        statement: The statement; it is not changed.
        inner: The expression in it; None if there is none.
        value: The name that takes its place.
    """
    if inner is None:
        return statement
    start = tuple(getattr(inner, name) for name in _PLACE)

    class Replacing(ast.NodeTransformer):
        def visit(self, node: ast.AST) -> ast.AST:
            place = tuple(getattr(node, name, None) for name in _PLACE)
            if place == start and type(node) is type(inner):
                return ast.copy_location(ast.Name(value, ast.Load()), node)
            return self.generic_visit(node)

    replaced = copy.deepcopy(statement)
    Replacing().visit(replaced)  # the statement itself is no expression, so that it is changed in place
    return replaced


_PLACE = ("lineno", "col_offset", "end_lineno", "end_col_offset")
