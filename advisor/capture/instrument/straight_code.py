"""Whether a function does the same without AutoGraph, because it contains nothing that AutoGraph converts.

In: the Python function of a transformation.  Out: yes or no, from its compiled code. It is not called.

AutoGraph converts branches, loops, `and`, `or`, `not`, assertions, assignments to items, builtin functions (`len`, `print`), and
the user's functions that are called. Code without them calls TensorFlow's functions one after the other, with AutoGraph or
without it.
"""

from __future__ import annotations

import builtins
import dis
from types import CodeType, FunctionType, ModuleType

_LIBRARIES = ("tensorflow", "keras", "tf_keras", "numpy", "math")
"""Packages whose functions AutoGraph calls as they are."""
_NAMES = frozenset({"LOAD_GLOBAL", "LOAD_DEREF"})
"""Operations of Python that read a variable from outside of the function."""
_PLAIN = frozenset({
    "RESUME", "NOP", "CACHE", "EXTENDED_ARG", "COPY_FREE_VARS", "PUSH_NULL", "PRECALL", "KW_NAMES", "LOAD_CONST",
    "LOAD_SMALL_INT", "LOAD_ATTR", "LOAD_METHOD", "CALL", "CALL_KW", "COMPARE_OP", "IS_OP", "UNARY_NEGATIVE", "UNARY_POSITIVE",
    "UNARY_INVERT", "UNPACK_SEQUENCE", "UNPACK_EX", "LIST_EXTEND", "LIST_APPEND", "DICT_UPDATE", "FORMAT_VALUE",
    "FORMAT_SIMPLE", "CONVERT_VALUE", "POP_TOP", "SWAP", "COPY", "RETURN_VALUE", "RETURN_CONST",
})  # fmt: skip
"""Operations of Python 3.11 to 3.14 that compute, call a function, or read and set variables of the function. AutoGraph converts
none of them. Any other operation counts as one that it does: jumps, `not`, `in`, assignments to items, inner functions."""
_PLAIN_PREFIXES = ("LOAD_FAST", "STORE_FAST", "BINARY_", "BUILD_")


def is_straight_code(function: object) -> bool:
    """Return whether AutoGraph would leave a function as it is.

    Args:
        function: What a script passes to a transformation. Anything but a plain Python function, such as a method, gives False.
    """
    if not isinstance(function, FunctionType) or hasattr(function, "__wrapped__"):
        return False
    code = function.__code__
    if getattr(code, "co_exceptiontable", b""):  # a `with`, or a `try`
        return False
    return all(_is_plain(instruction, function, code) for instruction in dis.get_instructions(code))


def _is_plain(instruction: dis.Instruction, function: FunctionType, code: CodeType) -> bool:
    if instruction.opname not in _NAMES:
        return instruction.opname in _PLAIN or instruction.opname.startswith(_PLAIN_PREFIXES)
    name = str(instruction.argval)
    if name in code.co_cellvars:
        return False
    if name in code.co_freevars:
        cell = (function.__closure__ or ())[code.co_freevars.index(name)]
        try:
            return _is_known(cell.cell_contents)
        except ValueError:  # it has no value yet
            return False
    if name not in function.__globals__:
        return hasattr(builtins, name) and not callable(getattr(builtins, name))
    return _is_known(function.__globals__[name])


def _is_known(value: object) -> bool:
    """Whether a value from outside is a module of a library, or nothing that could be called."""
    if isinstance(value, ModuleType):
        return value.__name__.partition(".")[0] in _LIBRARIES or _is_lazy(value)
    if callable(value):
        return False
    module = type(value).__module__.partition(".")[0]
    return module in ("builtins", *_LIBRARIES)


def _is_lazy(value: ModuleType) -> bool:
    """Whether a module is one of TensorFlow's that are loaded when they are used, which have names of their own."""
    return type(value).__module__.partition(".")[0] in _LIBRARIES


__all__ = ["is_straight_code"]
