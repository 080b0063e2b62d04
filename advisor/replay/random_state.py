"""The random state of the process, and of the generator objects that functions use: noted, and put back.

In: nothing, and the functions of a pipeline.  Out: after the block Python's, NumPy's and TensorFlow's generators stand where they
stood before.
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
"""How far functions are followed through the functions that they use; `from_generator` puts four of its own around the user's."""
Restore = Callable[[], None]


@contextlib.contextmanager
def random_state_kept(functions: Iterable[object] = ()) -> Iterator[None]:
    """The block may draw random numbers without a trace.

    Put back are the global generators of Python, NumPy and TensorFlow, and the generator objects that `functions` reach through
    closures, globals, `functools.partial` and bound methods.
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
    """The global seed, and the generator that hands out seeds of ops (private attributes of TensorFlow's context)."""
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
    """`tf.random.get_global_generator()`, if the program has asked for it already."""
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
    """Objects of `random.Random`, `numpy.random.Generator` and `numpy.random.RandomState`, each once."""
    kinds: tuple[type, ...] = (random.Random,)
    numpy_random = sys.modules.get("numpy.random")
    if numpy_random is not None:
        kinds += (numpy_random.Generator, numpy_random.RandomState)
    found: dict[int, Any] = {}
    seen: set[int] = set()

    def visit(value: object, depth: int) -> None:
        if isinstance(value, kinds):
            if not isinstance(value, random.SystemRandom):
                found[id(value)] = value
            return
        if depth and id(value) not in seen:
            seen.add(id(value))
            for other in _reached_from(value):
                visit(other, depth - 1)

    for function in functions:
        visit(function, _DEPTH)
    return list(found.values())


def _reached_from(value: object) -> Iterator[object]:
    """What a function uses; the attributes of the object that a method is bound to."""
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
