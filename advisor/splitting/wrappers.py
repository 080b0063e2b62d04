"""Finds the function that a lambda or a `functools.partial` only calls: `lambda x: load(x, 224)`, `partial(load, size=224)`.

In: the expression that a transformation gets.  Out: `Wrapper`, what it calls and which parameters it fills; or None if it does
more than that. Nothing is executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from advisor.splitting.cannot_split import CannotSplitError

Wrapping = ast.Lambda | ast.Call


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A lambda or a `functools.partial` around a function."""

    node: Wrapping
    called: ast.Name
    """The name of the function in it."""
    filled: tuple[str, ...] | None
    """The parameters of the function that a lambda fills from its own; None for a partial, which leaves the first ones."""
    bound: dict[str, ast.expr]
    """Parameter of the function -> what the wrapper passes for it, the same for all elements."""


def called_by(argument: ast.expr) -> ast.Name | None:
    """Return the name of the function that a wrapper calls; None if the expression is no wrapper.

    Args:
        argument: The function that a transformation gets.
    """
    match argument:
        case ast.Lambda(body=ast.Call(func=ast.Name() as called)):
            return called
        case ast.Call(func=function, args=[ast.Name() as called, *_]) if ast.unparse(function) in _PARTIAL:
            return called
    return None


_PARTIAL = ("functools.partial", "partial")


def wrapper_of(argument: ast.expr, function: ast.FunctionDef) -> Wrapper | None:
    """Return which parameters of a function a wrapper fills; None if it is a lambda that does more than call the function.

    Args:
        argument: The wrapper, see `called_by`.
        function: The definition of the function that it calls.

    Raises:
        CannotSplitError: The text does not show it.
    """
    called = called_by(argument)
    assert called is not None and isinstance(argument, Wrapping)
    call = argument.body if isinstance(argument, ast.Lambda) else argument
    assert isinstance(call, ast.Call)
    given = call.args if isinstance(argument, ast.Lambda) else call.args[1:]
    parameters = [parameter.arg for parameter in (*function.args.posonlyargs, *function.args.args)]
    named = [*parameters, *(parameter.arg for parameter in function.args.kwonlyargs)]
    values = dict(zip(parameters, given, strict=False))
    values |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    has_stars = any(isinstance(value, ast.Starred) for value in given) or any(k.arg is None for k in call.keywords)
    if has_stars or len(values) != len(given) + len(call.keywords) or not values.keys() <= set(named):
        raise CannotSplitError(f"`{ast.unparse(argument)[:60]}` does not show which parameters it fills")
    if function.args.posonlyargs:
        raise CannotSplitError("some of its parameters have no name for a caller")
    if not isinstance(argument, ast.Lambda):
        return Wrapper(argument, called, None, values)
    own = _parameters(argument)
    filled = {name: value.id for name, value in values.items() if isinstance(value, ast.Name) and value.id in own}
    bound = {name: value for name, value in values.items() if name not in filled}
    inside = {node.id for value in bound.values() for node in ast.walk(value) if isinstance(node, ast.Name)}
    if sorted(filled.values()) != sorted(own) or inside & set(own):
        return None
    return Wrapper(argument, called, tuple(name for name in named if name in filled), bound)


def _parameters(function: ast.Lambda) -> list[str]:
    arguments = function.args
    has_more = (
        arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or arguments.defaults
    )
    if has_more:
        raise CannotSplitError("the lambda has parameters with defaults, or a variable number of them")
    return [parameter.arg for parameter in arguments.args]
