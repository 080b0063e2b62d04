"""Describes the arguments of a call so that two runs of the same script give the same description.

In: the arguments of a recorded call, and the dataset that it made.  Out: strings, which do not depend on line numbers, file
names, memory addresses and TensorFlow's counters.
"""

from __future__ import annotations

import dis
import enum
import functools
import hashlib
import inspect
import itertools
import os
from collections.abc import Callable, Mapping
from types import CodeType, FunctionType, MethodType, ModuleType
from typing import Any

from advisor.capture.instrument.dataset_ids import is_dataset

_DIGEST_BYTES = 8
_DEPTH = 4
"""Maximum depth of nested values."""
_ITEMS = {4: 1000, 3: 50, 2: 10, 1: 5, 0: 5}
"""Remaining depth -> maximum number of items of a list that are described individually. The length is always included."""
_LARGEST_BYTES = 1 << 20
"""Only about this many leading bytes of an array are included in the digest."""
_FLAGS = 0xFFFF
"""Mask for the flags of a code object that describe the kind of function; higher bits are those of `from __future__ import`."""


def argument_identities(
    function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]
) -> tuple[dict[str, str], tuple[str, ...]]:
    """Describe the arguments of a call, except its input dataset and its name.

    Args:
        function: The function or method of tf.data as it is called, with the signature that binds the arguments.
        args: Positional arguments, with the dataset first if the function is a method.
        kwargs: Keyword arguments.

    Returns:
        (parameter -> description of its value, names of the parameters whose value is not the default). Datasets are
        described as `<dataset>`; `CallIdentity.inputs` identifies them.
    """
    signature = inspect.signature(function)
    binding = signature.bind(*args, **kwargs)
    binding.apply_defaults()
    identities: dict[str, str] = {}
    non_default = []
    for name, value in binding.arguments.items():
        if name in ("self", "name", "input_dataset"):
            continue
        kind = signature.parameters[name].kind
        if kind is inspect.Parameter.VAR_KEYWORD:
            others = {key: identity_of(item) for key, item in value.items() if key != "name"}
            identities |= others
            non_default += list(others)
            continue
        identities[name] = identity_of(value)
        default = signature.parameters[name].default
        if identities[name] != identity_of(None if default is inspect.Parameter.empty else default):
            non_default.append(name)
    return identities, tuple(non_default)


def bound_identity(bound: Mapping[str, Any]) -> str:
    """Return a digest of the bound arguments of a call, except its input dataset and its name.

    Args:
        bound: Parameter -> value, as in `inspect.BoundArguments.arguments` after `apply_defaults`.
    """
    own = ("self", "name", "input_dataset")
    return digest(*(f"{name}={identity_of(value)}" for name, value in sorted(bound.items()) if name not in own))


def identity_of(value: Any, depth: int = _DEPTH) -> str:  # noqa: ANN401
    """Return the description of any value.

    Args:
        value: The value.
        depth: Number of levels of containers that are described, 0 to 4; deeper values are described by their type.
    """
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if value is None or isinstance(value, (bool, int, float, str, bytes)):
        return _short(repr(value))
    if isinstance(value, os.PathLike):
        return _short(repr(os.fspath(value)))
    if hasattr(value, "as_numpy_dtype") and hasattr(value, "name"):
        return f"tf.{value.name}"
    if is_dataset(value):
        return "<dataset>"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _array_identity(value)
    if isinstance(value, dict):
        items = [
            f"{identity_of(key)}: {_item(item, depth)}" for key, item in itertools.islice(value.items(), _ITEMS[depth])
        ]
        return _short(f"{len(value)}{{{', '.join(items)}}}")
    if isinstance(value, (list, tuple)):
        return _short(f"{len(value)}[{', '.join(_item(item, depth) for item in value[: _ITEMS[depth]])}]")
    if isinstance(value, (set, frozenset)):
        return _short(f"{len(value)}{{{', '.join(sorted(_item(item, depth) for item in value))}}}")
    if isinstance(value, type):
        return f"<class {value.__qualname__}>"
    if callable(value):
        return function_identity(value, depth)
    return f"<{type(value).__name__}>"


def _item(value: Any, depth: int) -> str:  # noqa: ANN401
    return identity_of(value, depth - 1) if depth else f"<{type(value).__name__}>"


def _array_identity(value: Any) -> str:  # noqa: ANN401
    """Describe scalars by their Python `repr`, so that `8` and `tf.constant(8)` are equal, and arrays by a digest."""
    import numpy as np

    dtype = getattr(value.dtype, "name", str(value.dtype))
    if getattr(value, "is_symbolic", False) or (
        not hasattr(value, "numpy") and not isinstance(value, np.ndarray | np.generic)
    ):
        return f"<{dtype} {value.shape}>"
    try:
        array = _array_of(value)
    except Exception:  # resources and symbolic tensors have no value
        return f"<{dtype} {value.shape}>"
    if array.shape == () and array.dtype != object:
        return _short(repr(array.item()))
    if array.dtype == object:
        return f"<{dtype} {array.shape} {digest(repr(array.tolist()))}>"
    return f"<{dtype} {array.shape} {digest(np.asarray(array.flat[: _LARGEST_BYTES // max(1, array.itemsize)]).tobytes())}>"


def _array_of(value: Any) -> Any:  # noqa: ANN401
    """Return a tensor as an array, without a copy if it lies in the memory of the host."""
    import numpy as np

    if not hasattr(value, "numpy"):
        return np.asarray(value)
    try:
        return np.asarray(memoryview(value))
    except (TypeError, ValueError, BufferError):  # strings, bfloat16, other devices
        return np.asarray(value.numpy())


# -- functions


def function_identity(function: Any, depth: int = _DEPTH) -> str:  # noqa: ANN401
    """Describe a function by its code and the outside values it reads, e.g. `<function augment 1a2b...>`.

    Args:
        function: A function, method, partial or callable object.
        depth: As in `identity_of`.
    """
    if isinstance(function, functools.partial):
        given = [identity_of(item, depth - 1) for item in (*function.args, *function.keywords.items())] if depth else []
        return f"<partial {function_identity(function.func, depth)} {', '.join(given)}>"
    if isinstance(function, MethodType):
        owner, code = function.__self__, getattr(function.__func__, "__code__", None)
        described = f"<{type(owner).__name__}>" if code is None or depth < 1 else _outside_value(owner, code, depth - 1)
        return f"<method of {described} {function_identity(function.__func__, depth)}>"
    function = getattr(function, "python_function", function)  # a tf.function
    function = inspect.unwrap(function)
    if isinstance(function, FunctionType):
        values = _outside_values(function, depth - 1) if depth > 0 else ""
        return f"<function {function.__name__} {code_identity(function.__code__)}{values}>"
    call = type(function).__dict__.get("__call__")
    if isinstance(call, FunctionType):
        return f"<{type(function).__name__} {code_identity(call.__code__)}>"
    return f"<{getattr(function, '__qualname__', type(function).__name__)}>"


@functools.lru_cache(maxsize=4096)
def code_identity(code: CodeType) -> str:
    """Return a digest of a code object and its nested code, without file names and line numbers."""
    is_class = "__firstlineno__" in code.co_names  # Python 3.13 stores the line number of a class in its body
    constants = [
        code_identity(value) if isinstance(value, CodeType) else _constant(value)
        for value in code.co_consts
        if not (is_class and value == code.co_firstlineno)
    ]
    return digest(
        code.co_qualname, code.co_code, repr(constants), repr(code.co_names), repr(code.co_varnames), repr(code.co_freevars),
        repr((code.co_argcount, code.co_posonlyargcount, code.co_kwonlyargcount, code.co_flags & _FLAGS)),
    )  # fmt: skip


def _constant(value: Any) -> str:  # noqa: ANN401
    """Describe a constant of a code object. Items of sets are sorted, because their order differs between processes."""
    if isinstance(value, frozenset):
        return f"{{{', '.join(sorted(map(repr, value)))}}}"
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant, value))})"
    return f"{type(value).__name__} {value!r}"


def _outside_values(function: FunctionType, depth: int) -> str:
    """Describe the current values of the function's defaults, closure and globals, which tracing reads too."""
    values = [
        identity_of(value, depth) for value in (function.__defaults__, function.__kwdefaults__) if value is not None
    ]
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=False):
        try:
            values.append(f"{name}={_outside_value(cell.cell_contents, function.__code__, depth)}")
        except ValueError:  # not bound yet
            values.append(f"{name}=?")
    for name in sorted(_names_of(function.__code__, ("LOAD_GLOBAL", "LOAD_NAME"))):
        if name in function.__globals__:
            values.append(f"{name}={_outside_value(function.__globals__[name], function.__code__, depth)}")
    return f" [{'; '.join(values)}]" if values else ""


def _outside_value(value: Any, code: CodeType, depth: int) -> str:  # noqa: ANN401
    """Describe a value from outside the function; an object by those simple attributes that the code uses (`config.scale`)."""
    if isinstance(value, ModuleType):
        return "<module>"
    if value is None or isinstance(value, (bool, int, float, str, bytes, tuple, list, dict, FunctionType)):
        return identity_of(value, depth)
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return identity_of(value, depth)
    attributes = getattr(value, "__dict__", None)
    names = (
        sorted(_names_of(code, ("LOAD_ATTR", "LOAD_METHOD")) & attributes.keys())
        if isinstance(attributes, dict)
        else []
    )
    plain = (bool, int, float, str, bytes, FunctionType)
    seen = [f"{name}={identity_of(attributes[name], 1)}" for name in names if isinstance(attributes[name], plain)]  # type: ignore[index]
    return f"<{type(value).__name__} {', '.join(seen)}>"


@functools.lru_cache(maxsize=4096)
def _names_of(code: CodeType, operations: tuple[str, ...]) -> frozenset[str]:
    """Return the names that instructions with these opnames read in a code object and its nested code."""
    names = {instruction.argval for instruction in dis.get_instructions(code) if instruction.opname in operations}
    for value in code.co_consts:
        if isinstance(value, CodeType):
            names |= _names_of(value, operations)
    return frozenset(names)


def changed_code(before: bytes, after: bytes) -> dict[str, str]:
    """Return the identities of the code that differs between two versions of a file. Nothing is executed.

    Args:
        before: Content of the file before the change.
        after: Content of the file after the change.

    Returns:
        Identity before the change -> identity after it, for each code object that is in both versions.

    Raises:
        SyntaxError: One of the versions cannot be compiled.
        ValueError: One of the versions contains null bytes.
    """
    old, new = _code_by_place(before), _code_by_place(after)
    return {
        code_identity(old[place]): code_identity(code)
        for place, code in new.items()
        if place in old and code_identity(old[place]) != code_identity(code)
    }


def _code_by_place(text: bytes) -> dict[tuple[str, int], CodeType]:
    """Return the code objects by (qualified name, number of earlier code objects with this name)."""
    code_by_place: dict[tuple[str, int], CodeType] = {}
    pending = [compile(text, "<text>", "exec", dont_inherit=True)]
    while pending:
        code = pending.pop(0)
        place = next(p for n in itertools.count() if (p := (code.co_qualname, n)) not in code_by_place)
        code_by_place[place] = code
        pending += [value for value in code.co_consts if isinstance(value, CodeType)]
    return code_by_place


def _short(text: str) -> str:
    """Replace the end of a long text by a digest, unless it contains functions: callers replace the digests of their code."""
    return text if len(text) <= 200 or "<function" in text else f"{text[:60]}... {digest(text)}"


def digest(*parts: bytes | str) -> str:
    """Return a short digest of the parts, in hexadecimal."""
    hashed = hashlib.blake2b(digest_size=_DIGEST_BYTES)
    for part in parts:
        data = part.encode("utf-8", "surrogatepass") if isinstance(part, str) else part
        hashed.update(len(data).to_bytes(8, "big"))
        hashed.update(data)
    return hashed.hexdigest()
