"""Finds calls of `tf.numpy_function` whose Python function computes for a batch what it computes for each of its rows.

In: the graph that TensorFlow traced of the function of a transformation.  Out: the names of these ops.

Such a function is straight code that calls nothing but NumPy, from the allow-lists below: element-wise functions, and functions
along an axis that is counted from the end. It is executed once with placeholders instead of arrays, and with substitutes for what
it reads from outside, so that nothing of the user's can run or change: anything that is not on the lists raises an exception.
"""

from __future__ import annotations

import inspect
import math
import sys
from collections.abc import Callable
from types import CellType, FunctionType, ModuleType
from typing import Any

from advisor.capture.instrument.straight_code import is_straight_code

_OPS = frozenset({"PyFunc", "PyFuncStateless"})
"""The ops of `tf.numpy_function`."""
_LARGEST_BYTES = 1 << 20
"""Larger arrays from outside of the function are not copied, and the function is left alone."""
_KEEPING = frozenset({
    "clip", "where", "nan_to_num", "round", "around", "real", "imag", "angle", "asarray", "array", "ascontiguousarray",
    "zeros_like", "ones_like", "copy",
})  # fmt: skip
"""Functions of NumPy that compute each value from those at the same place."""
_ALONG_LAST = frozenset({"sort", "argsort", "diff", "rfft", "irfft", "fft", "ifft", "hfft", "ihfft"})
"""Functions along one axis, by default the last one."""
_ALONG_ANY = frozenset({"cumsum", "cumprod", "flip", "roll"})
"""Functions along one axis, by default along all."""
_REDUCING = frozenset({
    "mean", "sum", "max", "min", "amax", "amin", "std", "var", "prod", "median", "argmax", "argmin", "any", "all", "ptp",
    "norm", "nanmean", "nansum", "nanmax", "nanmin", "nanstd", "percentile", "quantile",
})  # fmt: skip
"""Functions that remove an axis, by default all of them."""
_METHODS = frozenset({
    "astype", "copy", "clip", "round", *_ALONG_ANY, *(_REDUCING - {"median", "norm", "percentile", "quantile"}),
})  # fmt: skip
"""Methods of arrays that do what the function of that name does."""
_KEEPING_OPTIONS = frozenset(
    {"dtype", "copy", "decimals", "a_min", "a_max", "min", "max", "nan", "posinf", "neginf", "deg"}
)
"""Keyword arguments of functions in `_KEEPING` that leave the shape of the result as it is."""
_AXIS_OPTIONS = frozenset({"axis", "keepdims", "dtype", "n", "kind", "norm", "ddof", "shift", "q", "ord"})
"""Keyword arguments of functions along an axis."""
_AXIS_POSITIONS = {
    "diff": 1, "rfft": 1, "irfft": 1, "fft": 1, "ifft": 1, "hfft": 1, "ihfft": 1, "roll": 1, "percentile": 1, "quantile": 1,
    "norm": 1,
}  # fmt: skip
"""Where the axis comes among the arguments behind the array, if it is not the first of them."""
_PLAIN = (bool, int, float, complex, str, bytes, type(None))


class _NotRowWiseError(AttributeError):
    """The function does something that is not on the lists."""


def row_wise_ops(graph: Any) -> frozenset[str]:  # noqa: ANN401
    """Return the names of the ops of a graph that call a row-wise NumPy function.

    Args:
        graph: The traced `FuncGraph` of a function of one element.
    """
    operations = list(graph.get_operations())
    if _OPS.isdisjoint(op.type for op in operations):
        return frozenset()
    varying = {tensor.op.name for tensor in graph.inputs[: len(graph.inputs) - len(getattr(graph, "captures", ()))]}
    for op in operations:  # in topological order; what an op draws at random belongs to its element
        if op.op_def.is_stateful or any(tensor.op.name in varying for tensor in op.inputs):
            varying.add(op.name)
    return frozenset(op.name for op in operations if op.type in _OPS and _is_row_wise_op(op, varying))


def _is_row_wise_op(op: Any, varying: set[str]) -> bool:  # noqa: ANN401
    import tensorflow as tf

    # A private registry; without it, nothing is row-wise.
    registry = getattr(getattr(sys.modules.get("tensorflow.python.ops.script_ops"), "_py_funcs", None), "_funcs", {})
    arguments: list[Any] = []
    for tensor in op.inputs:
        value = None if tensor.op.name in varying else tf.get_static_value(tensor)
        if value is None and (tensor.op.name not in varying or tensor.shape.rank is None):
            return False  # a captured value would be the same for all rows, and have no row for each
        arguments.append(_Rows(tensor.shape.rank) if value is None else value)
    function = registry.get(op.get_attr("token").decode())
    return function is not None and is_row_wise(inspect.unwrap(function), arguments)


def is_row_wise(function: object, arguments: list[Any]) -> bool:
    """Return whether a function of arrays computes for a batch what it computes for each row.

    Args:
        function: What `tf.numpy_function` gets.
        arguments: Its arguments for one row: `rows(rank)` for an array of the element, constants as they are.
    """
    if not isinstance(function, FunctionType) or not is_straight_code(function):
        return False
    try:
        result = _apart(function)(*arguments)
    except Exception:
        return False
    results = result if isinstance(result, tuple | list) else (result,)
    return bool(results) and all(isinstance(each, _Rows) for each in results)


def rows(rank: int) -> object:
    """Return a placeholder for an array of the element with this number of dimensions."""
    return _Rows(rank)


def _apart(function: FunctionType) -> Callable[..., Any]:
    """Return a function with the same code that reads substitutes for what it reads from outside."""
    import numpy as np

    outside = function.__globals__
    names = {name: _substitute(outside[name], np) for name in function.__code__.co_names if name in outside}
    cells = tuple(CellType(_substitute(cell.cell_contents, np)) for cell in function.__closure__ or ())
    defaults = tuple(_substitute(value, np) for value in function.__defaults__ or ()) or None
    if function.__kwdefaults__:
        raise _NotRowWiseError
    return FunctionType(function.__code__, {**names, "__builtins__": {}}, function.__name__, defaults, cells)


def _substitute(value: Any, np: ModuleType) -> Any:  # noqa: ANN401
    if isinstance(value, ModuleType):
        if value is np or value is np.fft or value is np.linalg:
            return _Module(value, np)
        if value is math:
            return value  # its functions have no side effects, and take no arrays
        raise _NotRowWiseError
    if isinstance(value, np.ndarray) and value.nbytes <= _LARGEST_BYTES and value.dtype != object:
        copied = value.copy()
        copied.flags.writeable = False  # a function that writes into it fails: it may count its calls
        return copied
    if isinstance(value, (*_PLAIN, np.generic, np.dtype)):
        return value
    raise _NotRowWiseError


class _Module:
    """Stands for `numpy`, `numpy.fft` or `numpy.linalg`: only what is on the lists."""

    def __init__(self, module: ModuleType, np: ModuleType) -> None:
        self._module, self._np = module, np

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        value, np = getattr(self._module, name), self._np
        if value is np.fft or value is np.linalg:
            return _Module(value, np)
        is_type = isinstance(value, type) and issubclass(value, np.generic)
        if isinstance(value, np.ufunc | float) or value is None or is_type:
            return value
        if name in _KEEPING | _ALONG_LAST | _ALONG_ANY | _REDUCING and callable(value):
            return lambda *args, **kwargs: _applied(name, args, kwargs)
        raise _NotRowWiseError


def _applied(name: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> _Rows:
    """Return what a function of NumPy returns for placeholders."""
    if name in _KEEPING:
        if kwargs.keys() - _KEEPING_OPTIONS or (name == "where" and len(args) != 3):
            raise _NotRowWiseError
        return _joined((*args, *kwargs.values()))
    array, *others = args
    values, position = (*others, *kwargs.values()), _AXIS_POSITIONS.get(name, 0)
    if not isinstance(array, _Rows) or not all(isinstance(value, (*_PLAIN, type)) for value in values):
        raise _NotRowWiseError
    if kwargs.keys() - _AXIS_OPTIONS or len(others) > position + 1:
        raise _NotRowWiseError
    axis = kwargs.get("axis", others[position] if len(others) > position else (-1 if name in _ALONG_LAST else None))
    if not isinstance(axis, int) or not -array.rank <= axis < 0:
        raise _NotRowWiseError
    if name in _REDUCING and not kwargs.get("keepdims", False):
        return _Rows(array.rank - 1)
    return _Rows(array.rank)


def _joined(values: tuple[Any, ...]) -> _Rows:
    """Return the result of an element-wise function: its arrays have one rank, and its constants no higher one."""
    import numpy as np

    ranks = {value.rank for value in values if isinstance(value, _Rows)}
    if len(ranks) != 1:
        raise _NotRowWiseError
    (rank,) = ranks
    for value in values:
        is_array = isinstance(value, np.ndarray | np.generic) and value.ndim <= rank
        if not is_array and not isinstance(value, (_Rows, *_PLAIN, np.dtype, type)):
            raise _NotRowWiseError
    return _Rows(rank)


def _operator(name: str) -> Callable[..., _Rows]:
    return lambda *values: _joined(values)


class _Rows:
    """Stands for an array of one element; in a batch, it has one more dimension in front."""

    def __init__(self, rank: int) -> None:
        self.rank = rank

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:  # noqa: ANN401
        if method != "__call__" or ufunc.signature is not None or kwargs.keys() - {"dtype"}:
            raise _NotRowWiseError
        result = _joined(inputs)
        return result if ufunc.nout == 1 else (result,) * ufunc.nout

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401
        if name in ("real", "imag"):
            return _Rows(self.rank)
        if name not in _METHODS:
            raise _NotRowWiseError
        if name == "astype":
            return lambda dtype, copy=True: _joined((self, dtype))
        return lambda *args, **kwargs: _applied(name, (self, *args), kwargs)

    def __getitem__(self, index: Any) -> _Rows:  # noqa: ANN401
        parts = index if isinstance(index, tuple) else (index,)
        if not parts or parts[0] is not Ellipsis or not all(isinstance(part, int | slice | None) for part in parts[1:]):
            raise _NotRowWiseError
        removed = sum(isinstance(part, int) for part in parts[1:])
        added = sum(part is None for part in parts[1:])
        if len(parts) - 1 - added > self.rank:
            raise _NotRowWiseError
        return _Rows(self.rank - removed + added)

    def __bool__(self) -> bool:
        raise _NotRowWiseError

    def __iter__(self) -> Any:  # noqa: ANN401
        raise _NotRowWiseError


for _name in ("add", "sub", "mul", "truediv", "floordiv", "mod", "pow", "and", "or", "xor", "lshift", "rshift"):
    setattr(_Rows, f"__{_name}__", _operator(_name))
    setattr(_Rows, f"__r{_name}__", _operator(_name))
for _name in ("lt", "le", "gt", "ge", "eq", "ne", "neg", "pos", "invert", "abs"):
    setattr(_Rows, f"__{_name}__", _operator(_name))


__all__ = ["is_row_wise", "row_wise_ops", "rows"]
