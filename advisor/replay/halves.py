"""Makes the two halves of a split function from the text that is written into the script, and checks them against the function.

In: the function as the script passed it, and the `SplitFunction`.  Out: two functions.

`check_halves` traces both halves as one function, whose graph must equal that of the script's function, op by op. In between,
containers are rebuilt as tf.data does, so that the second half gets what a dataset passes on.
"""

from __future__ import annotations
import __future__

import functools
import inspect
import linecache
import operator
from collections.abc import Callable, Mapping
from dataclasses import replace
from types import FunctionType, MethodType
from typing import Any, NamedTuple

from advisor.capture.instrument.graph_identity import traced_identity
from advisor.capture.instrument.replay_log import LoggedCall
from advisor.capture.instrument.traced_functions import function_facts
from advisor.model import op_effects
from advisor.model.edits import SplitFunction, WrappedHalves
from advisor.replay.call_arguments import with_function
from advisor.replay.edited import CannotSplit


class Halves(NamedTuple):
    """The two halves of a function."""

    first: Callable[..., Any]
    second: Callable[..., Any]


def halves_of(name: str, edit: SplitFunction, function: Any) -> Halves:  # noqa: ANN401
    """Compile the two halves with the globals and the closure of the function.

    Args:
        name: Name of the call for error messages.
        edit: The texts.
        function: The function as the script passed it.

    Raises:
        CannotSplit: The function is no plain Python function, or a variable of its closure has no value yet.
    """
    if isinstance(function, functools.partial):
        return _partials(name, edit, function)
    if isinstance(function, MethodType):
        return _methods(name, edit, function)
    plain, closure = _plain_and_closure(name, function)
    if edit.wrapped is not None and plain.__name__ == "<lambda>":
        return _lambdas(name, edit, edit.wrapped, plain, closure)
    return Halves(
        compiled(plain, edit.first, edit.first_name, closure), compiled(plain, edit.second, edit.second_name, closure)
    )


def _plain_and_closure(name: str, function: Any) -> tuple[FunctionType, dict[str, Any]]:  # noqa: ANN401
    plain = plain_function(function)
    if plain is None:
        raise CannotSplit(name, "its function is not a Python function")
    closure = closure_of(plain)
    if closure is None:
        raise CannotSplit(name, "its function uses a variable that has no value yet")
    return plain, closure


def _partials(name: str, edit: SplitFunction, function: functools.partial[Any]) -> Halves:
    """The halves of the function of a partial, with its arguments: what the text of the partials means at their place."""
    inner = function.func
    first, second = halves_of(name, replace(edit, wrapped=None), inner)
    named = inspect.signature(getattr(inner, "python_function", inner)).parameters
    given = {**dict(zip(named, function.args, strict=False)), **function.keywords}
    bound = edit.wrapped.bound if edit.wrapped is not None else ()
    again = {parameter: given[parameter] for parameter in bound}
    return Halves(
        functools.partial(first, *function.args, **function.keywords),
        functools.partial(second, **again) if again else second,
    )


def _methods(name: str, edit: SplitFunction, function: MethodType) -> Halves:
    """The halves of a method, as methods of the same object."""
    plain, closure = _plain_and_closure(name, function.__func__)
    halves = (
        compiled(plain, edit.first, edit.first_name, closure),
        compiled(plain, edit.second, edit.second_name, closure),
    )
    return Halves(*(MethodType(half, function.__self__) for half in halves))


def _lambdas(
    name: str, edit: SplitFunction, wrapped: WrappedHalves, plain: FunctionType, closure: dict[str, Any]
) -> Halves:
    """The lambdas around the halves of the function that a lambda calls."""
    values = {**plain.__globals__, **closure}
    owner, _, called = wrapped.called.rpartition(".")
    inner = getattr(values.get(owner), called, None) if owner else values.get(called)
    first, second = halves_of(name, replace(edit, wrapped=None), inner)
    own = {edit.first_name: first, edit.second_name: second}
    names = {**closure, owner: Extended(values[owner], own)} if owner else {**closure, **own}
    return Halves(
        compiled(plain, wrapped.first, "", names),
        compiled(plain, wrapped.second, "", names) if wrapped.second else second,
    )


def plain_function(function: Any) -> FunctionType | None:  # noqa: ANN401
    """Return the Python function of a function that the script passed; None if it has none."""
    function = getattr(function, "python_function", function)  # a tf.function
    return function if isinstance(function, FunctionType) else None


def closure_of(function: FunctionType) -> dict[str, Any] | None:
    """Return the variables of enclosing functions that a function uses; None if one has no value yet."""
    try:
        return {
            variable: cell.cell_contents
            for variable, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True)
        }
    except ValueError:
        return None


class Extended:
    """An object of the script with further methods."""

    def __init__(self, base: Any, methods: Mapping[str, Any]) -> None:  # noqa: ANN401
        self._base, self._methods = base, methods

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        return self._methods[name] if name in self._methods else getattr(self._base, name)


def compiled(
    function: FunctionType, text: str, name: str, closure: dict[str, Any], more: Mapping[str, Any] | None = None
) -> Callable[..., Any]:
    """Return the function that a text defines at the place where `function` is defined.

    Args:
        function: The function.
        text: A definition in whole lines, or a lambda expression.
        name: Name of the defined function; empty for a lambda.
        closure: The variables of enclosing functions, see `closure_of`.
        more: Further names that the text uses.
    """
    indent = text[: len(text) - len(text.lstrip(" \t"))]
    if name and not indent:
        made, source = name, text
    else:
        made = _MAKER
        body = f"{text}{indent}return {name}\n" if name else f"    return ({text})\n"
        source = f"def {made}({', '.join(closure)}):\n{body}"
    file = f"<half of {function.__code__.co_filename} {hash(source):x}>"
    # AutoGraph reads the source of a function through `linecache`; entries without a time stamp are kept.
    linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
    namespace: dict[str, Any] = {}
    flags = function.__code__.co_flags & _FUTURE
    names = {**function.__globals__, **more} if more else function.__globals__
    exec(compile(source, file, "exec", flags, dont_inherit=True), names, namespace)
    half: Callable[..., Any] = namespace[name] if made == name else namespace[made](**closure)
    return half


def check_halves(
    name: str, edit: SplitFunction, logged: LoggedCall, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> None:
    """Compare the graph of both halves in one function with that of the script's function.

    Args:
        name: Name of the call for error messages.
        edit: The texts.
        logged: The recorded call of `map` or `flat_map`.
        args: Positional arguments of the replayed call.
        kwargs: Keyword arguments of the replayed call.

    Raises:
        CannotSplit: The graphs differ, or tf.data cannot pass on a value between the halves as it is.
    """
    problems: list[str] = []
    joined = with_function(
        name, logged.original, args, kwargs, lambda function: _joined(name, edit, function, problems)
    )
    try:
        dataset = logged.original(*joined[0], **joined[1])
    except Exception as error:
        last = next((line.strip() for line in reversed(str(error).splitlines()) if line.strip()), type(error).__name__)
        raise CannotSplit(name, problems[0] if problems else f"its halves fail: {last[:200].rstrip('.')}") from error
    if problems:
        raise CannotSplit(name, problems[0])
    recorded = traced_identity(logged.dataset)
    if traced_identity(dataset) == recorded:
        return
    again = logged.original(*args, **kwargs)
    if traced_identity(again) != recorded:
        raise CannotSplit(name, "each time that its function is traced, it has another graph")
    raise CannotSplit(name, "its halves have another graph than its function")


def check_first(name: str, dataset: Any) -> None:  # noqa: ANN401
    """Raise CannotSplit unless the function of the first half is known to compute the same every time.

    Args:
        name: Name of the call for the error message.
        dataset: The result of the `map` with the first half.
    """
    facts = function_facts(dataset, None, None)
    if facts is None or facts.random_ops or facts.python_ops:
        raise CannotSplit(name, "the first half of its function draws random numbers or runs Python code")
    for op in facts.stateful_ops or ():
        reason = op_effects.reason_against(op)
        if reason is not None or op_effects.is_dataset_op(op):
            raise CannotSplit(name, f"the first half of its function {reason or f'creates a dataset ({op})'}")


def _joined(name: str, edit: SplitFunction, function: Any, problems: list[str]) -> Callable[..., Any]:  # noqa: ANN401
    """Return a function that calls both halves. AutoGraph converts it and them."""
    import tensorflow as tf

    first, second = (getattr(half, "python_function", half) for half in halves_of(name, edit, function))

    def passed_on(values: Any) -> tuple[Any, ...]:  # noqa: ANN401
        results = (values,) if len(edit.names) == 1 else tuple(values)
        for value_name, value in zip(edit.names, results, strict=True):
            problem = _problem_of(value, tf, is_top=len(edit.names) == 1)
            if problem:
                problems.append(f"`{value_name}`, which its first half passes on, {problem}")
        return tuple(tf.nest.map_structure(lambda part: part, value) for value in results)

    as_it_is = tf.autograph.experimental.do_not_convert(passed_on)

    def both(*elements: Any) -> Any:  # noqa: ANN401
        return second(*as_it_is(first(*elements)))

    return tf.function(both) if hasattr(function, "python_function") else both


def _problem_of(value: Any, tensorflow: Any, is_top: bool) -> str:  # noqa: ANN401
    """Why tf.data would pass on another value than this one; empty if it passes on the same."""
    if isinstance(value, dict):
        return next((text for part in value.values() if (text := _problem_of(part, tensorflow, is_top=False))), "")
    if isinstance(value, tuple):
        if is_top:
            return "is a tuple, whose parts would be passed as separate arguments"
        return next((text for part in value if (text := _problem_of(part, tensorflow, is_top=False))), "")
    if tensorflow.is_tensor(value) and isinstance(
        value, tensorflow.Tensor | tensorflow.RaggedTensor | tensorflow.SparseTensor
    ):
        return "is a resource" if value.dtype in (tensorflow.resource, tensorflow.variant) else ""
    return f"is a Python {type(value).__name__}, which tf.data would turn into a tensor or refuse"


_MAKER = "advisor_half"
_FUTURE = functools.reduce(
    operator.or_, (getattr(__future__, feature).compiler_flag for feature in __future__.all_feature_names)
)
"""Flags of a code object that its `from __future__ import` has set."""
