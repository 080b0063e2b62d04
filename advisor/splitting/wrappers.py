"""Finds the function behind what a transformation gets: `self.load`, `lambda x: load(x, 224)`, `partial(load, size=224)`.

In: the expression that a transformation gets.  Out: `Wrapper`, what it calls and which parameters it fills; or None if it does
more than that. Nothing is executed.
"""

from __future__ import annotations

import ast
from dataclasses import dataclass

from advisor.splitting.cannot_split import CannotSplitError

Wrapping = ast.Lambda | ast.Call | ast.Attribute


@dataclass(frozen=True, slots=True)
class Wrapper:
    """A lambda or a `functools.partial` around a function, or the attribute that is a method."""

    node: Wrapping
    called: ast.Name | ast.Attribute
    """The function in it: a name, or a method of what a name or attribute stands for."""
    receiver: str
    """The first parameter of a method, `self`; empty for a function."""
    filled: tuple[str, ...] | None
    """The parameters of the function that a lambda fills from its own; None for the others, which leave the first ones."""
    bound: dict[str, ast.expr]
    """Parameter of the function -> what the wrapper passes for it, the same for all elements."""

    @property
    def name(self) -> str:
        """The name of the function or method."""
        return self.called.id if isinstance(self.called, ast.Name) else self.called.attr


def called_by(argument: ast.expr) -> ast.Name | ast.Attribute | None:
    """Return the function that a wrapper calls; None if the expression is no wrapper.

    Args:
        argument: What a transformation gets.
    """
    match argument:
        case ast.Lambda(body=ast.Call(func=ast.Name() | ast.Attribute(value=ast.Name()) as called) as call):
            return called if _only_passes(argument, call) else None
        case ast.Call(func=function, args=[ast.Name() | ast.Attribute() as called, *_]):
            return called if ast.unparse(function) in _PARTIAL and _is_owner(called) else None
        case ast.Attribute():
            return argument if _is_owner(argument) else None
    return None


_PARTIAL = ("functools.partial", "partial")


def wrapper_of(argument: ast.expr, function: ast.FunctionDef, is_method: bool) -> Wrapper:
    """Return which parameters of a function a wrapper fills.

    Args:
        argument: The wrapper, see `called_by`.
        function: The definition of the function that it calls.
        is_method: Whether this is a method.

    Raises:
        CannotSplitError: The text does not show it.
    """
    called = called_by(argument)
    assert called is not None and isinstance(argument, Wrapping)
    parameters = [parameter.arg for parameter in function.args.args]
    receiver = parameters[0] if is_method and parameters else ""
    if function.args.posonlyargs or (is_method and not receiver):
        raise CannotSplitError("some of its parameters have no name for a caller")
    if isinstance(argument, ast.Attribute):
        return Wrapper(argument, called, receiver, None, {})
    call = argument.body if isinstance(argument, ast.Lambda) else argument
    assert isinstance(call, ast.Call)
    given = call.args if isinstance(argument, ast.Lambda) else call.args[1:]
    parameters = parameters[bool(receiver) :]
    named = [*parameters, *(parameter.arg for parameter in function.args.kwonlyargs)]
    values = dict(zip(parameters, given, strict=False))
    values |= {keyword.arg: keyword.value for keyword in call.keywords if keyword.arg is not None}
    has_stars = any(isinstance(value, ast.Starred) for value in given) or any(k.arg is None for k in call.keywords)
    if has_stars or len(values) != len(given) + len(call.keywords) or not values.keys() <= set(named):
        raise CannotSplitError(f"`{ast.unparse(argument)[:60]}` does not show which parameters it fills")
    if not isinstance(argument, ast.Lambda):
        return Wrapper(argument, called, receiver, None, values)
    own = {parameter.arg for parameter in argument.args.args}
    filled = tuple(name for name in named if isinstance(node := values.get(name), ast.Name) and node.id in own)
    bound = {name: value for name, value in values.items() if name not in filled}
    return Wrapper(argument, called, receiver, filled, bound)


def _is_owner(called: ast.Name | ast.Attribute) -> bool:
    """Whether looking the function up does nothing else: a name, or an attribute of one."""
    node: ast.expr = called
    while isinstance(node, ast.Attribute):
        node = node.value
    return isinstance(node, ast.Name)


def _only_passes(function: ast.Lambda, call: ast.Call) -> bool:
    """Whether a lambda passes each of its parameters on as it is, once, and computes nothing from them."""
    arguments = function.args
    own = [parameter.arg for parameter in arguments.args]
    given = [*call.args, *(keyword.value for keyword in call.keywords)]
    passed = [value.id for value in given if isinstance(value, ast.Name) and value.id in own]
    uses = [node.id for node in ast.walk(call) if isinstance(node, ast.Name) and node.id in own]
    has_more = (
        arguments.vararg or arguments.kwarg or arguments.kwonlyargs or arguments.posonlyargs or arguments.defaults
    )
    return not has_more and sorted(own) == sorted(passed) == sorted(uses)
