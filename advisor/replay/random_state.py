"""Saves and restores the random state of the process and of the generator objects that functions use.

In: the functions of a pipeline.  Out: a context manager that restores the state of Python's, NumPy's and TensorFlow's generators.
"""

from __future__ import annotations

import contextlib
import functools
import inspect
import random
import sys
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any

_DEPTH = 8
"""Maximum depth at which functions used by other functions are examined; `from_generator` adds four levels to the user's."""
Restore = Callable[[], None]


@contextlib.contextmanager
def random_state_kept(functions: Iterable[object] = ()) -> Iterator[None]:
    """Restore the random state at the end of the block.

    Args:
        functions: Functions used in the block. Generator objects that they reach through closures, globals,
            `functools.partial` and bound methods are restored, as well as the global generators of Python, NumPy and TensorFlow.
    """
    restores = [*_global_states(), *(_generator_state(generator) for generator in _generators_of(functions))]
    try:
        yield
    finally:
        for restore in restores:
            restore()


def _global_states() -> Iterator[Restore]:
    yield functools.partial(random.setstate, random.getstate())
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        yield functools.partial(numpy_random.set_state, numpy_random.get_state())
    eager = sys.modules.get("tensorflow.python.eager.context")
    if eager is not None:
        yield _eager_state(eager.context())
    generators = sys.modules.get("tensorflow.python.ops.stateful_random_ops")
    if generators is not None:
        yield _global_generator(generators)


def _eager_state(context: Any) -> Restore:  # noqa: ANN401
    """Return a function that restores the global seed and the generator of op seeds (private attributes of TensorFlow)."""
    seed, generator = getattr(context, "_seed", None), getattr(context, "_rng", None)
    state = generator.getstate() if generator is not None else None
    had_generator = hasattr(context, "_rng")

    def restore() -> None:
        context._seed = seed
        if had_generator:
            context._rng = generator
        elif hasattr(context, "_rng"):
            del context._rng
        if generator is not None:
            generator.setstate(state)

    return restore


def _global_generator(module: Any) -> Restore:  # noqa: ANN401
    """Return a function that restores `tf.random.get_global_generator()`, if it has been created."""
    generator = getattr(module, "global_generator", None)
    state = None if generator is None else generator.state.numpy()

    def restore() -> None:
        if generator is not None:
            generator.state.assign(state)
        if hasattr(module, "global_generator"):
            module.global_generator = generator

    return restore


def _generator_state(generator: Any) -> Restore:  # noqa: ANN401
    if isinstance(generator, random.Random):
        return functools.partial(generator.setstate, generator.getstate())
    if hasattr(generator, "bit_generator"):
        return functools.partial(setattr, generator.bit_generator, "state", generator.bit_generator.state)
    return functools.partial(generator.set_state, generator.get_state())


def _generators_of(functions: Iterable[object]) -> list[Any]:
    """Return the `random.Random`, `numpy.random.Generator` and `numpy.random.RandomState` objects that functions reach."""
    kinds: tuple[type, ...] = (random.Random,)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        kinds += (numpy_random.Generator, numpy_random.RandomState)
    generators: dict[int, Any] = {}
    seen: set[int] = set()

    def visit(value: object, depth: int) -> None:
        if isinstance(value, kinds):
            if not isinstance(value, random.SystemRandom):
                generators[id(value)] = value
            return
        if depth and id(value) not in seen:
            seen.add(id(value))
            for other in _reached_from(value):
                visit(other, depth - 1)

    for function in functions:
        visit(function, _DEPTH)
    return list(generators.values())


def _reached_from(value: object) -> Iterator[object]:
    """Yield the objects that a function uses, and the attributes of the object to which a method is bound."""
    if isinstance(value, functools.partial):
        yield from (value.func, *value.args, *value.keywords.values())
    elif isinstance(value, types.MethodType):
        yield value.__func__
        yield from getattr(value.__self__, "__dict__", {}).values()
    elif isinstance(value, types.FunctionType):
        yield getattr(value, "__wrapped__", None)
        with contextlib.suppress(TypeError, ValueError):
            names = inspect.getclosurevars(value)
            yield from (*names.nonlocals.values(), *names.globals.values())
    elif type(value).__name__ == "_GeneratorState":  # of `from_generator`; the attribute is TensorFlow's own
        yield getattr(value, "_generator", None)
    elif callable(getattr(value, "python_function", None)):  # a tf.function
        yield value.python_function  # type: ignore[attr-defined]
    elif callable(value) and not isinstance(value, type):
        yield from getattr(value, "__dict__", {}).values()
