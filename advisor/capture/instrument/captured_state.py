"""Finds the variables, tables, datasets and Python objects outside a traced function that the function reads.

In: the graph that TensorFlow traced of a function, and the function.  Out: `Captured`: each captured resource with the object
that owns it and its name in the script.

A captured resource is only a handle: a lookup is the same op for a static and for a mutable table, for example. Therefore the
Python object that owns the handle determines the kind of the resource. If it cannot be found, the kind is unknown.
"""

from __future__ import annotations

import gc
import inspect
import types
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from advisor.model import state

_STATIC_OPS = frozenset({"HashTable", "HashTableV2", "AnonymousHashTable"})
_STATIC_TABLES = frozenset({"StaticHashTable", "StaticHashTableV1", "HashTable"})
_MUTABLE_TABLES = frozenset({"MutableHashTable", "DenseHashTable"})
_OP_TYPES = {
    state.STATIC_TABLE: "HashTableV2",
    state.MUTABLE_TABLE: "MutableHashTableV2",
    state.VARIABLE: "VarHandleOp",
    state.QUEUE: "QueueV2",
    state.ITERATOR: "IteratorV2",
    state.SUMMARY_WRITER: "SummaryWriter",
    state.DATASET: "dataset",
}
_MAX_CONSTANT_BYTES = 4096
"""Size of the largest constant that may be a file name, in bytes."""
_MAX_NAMES = 500
"""Maximum number of objects of a function that are examined."""


@dataclass(frozen=True, slots=True)
class Captured:
    """A resource or dataset that a function captures."""

    kind: str
    name: str
    owner: Any
    """The Python object that owns the handle; None: not found."""

    @property
    def op_type(self) -> str:
        """Type of the op that makes such a resource; `resource` if the kind is unknown."""
        return _OP_TYPES.get(self.kind, "resource")


def captured_by(graph: Any, function: object) -> list[Captured]:  # noqa: ANN401
    """Return the resources and datasets that a function captures, in order.

    Args:
        graph: The `FuncGraph` traced from the function.
        function: The Python function.
    """
    handles = [
        _outermost(outside) for outside, _ in graph.captures if outside.dtype.name in ("resource", "variant")
    ]  # other captured tensors are constants
    captured = [_identified(handle, function) for handle in handles]
    if getattr(graph, "deferred_external_captures", None):
        captured.append(Captured(state.UNKNOWN, "a value that is captured when the function is called", None))
    return captured


def uses_enclosing(graph: Any) -> bool:  # noqa: ANN401
    """Return whether a function reads tensors of the function that encloses it: they exist in that function's graph alone.

    Args:
        graph: The `FuncGraph` traced from the inner function.
    """
    has_deferred = bool(getattr(graph, "deferred_external_captures", None))
    return has_deferred or any(not hasattr(_outermost(outside), "numpy") for outside, _ in graph.captures)


def named_objects(function: object) -> Iterator[tuple[str, Any]]:
    """Yield (name in the function's code, object) for the objects that the function can reach.

    These are its closure, globals, defaults and `self`, the attributes of `self`, and the same for functions among them.
    """
    seen: set[int] = set()
    pending: list[object] = [function]
    count = 0
    while pending:
        current = pending.pop(0)
        if id(current) in seen or len(seen) > 50:
            continue
        seen.add(id(current))
        for name, value in _references(current):
            count += 1
            if count > _MAX_NAMES:
                return
            yield name, value
            if _is_plain_function(value):
                pending.append(value)


def constant_texts(graph: Any) -> list[str]:  # noqa: ANN401
    """Return the string constants of a graph and its nested functions, which include the names of files that it reads."""
    from tensorflow.python.framework import tensor_util

    definition = graph.as_graph_def()
    texts: dict[str, None] = {}
    for nodes in (definition.node, *(body.node_def for body in definition.library.function)):
        for node in nodes:
            proto = node.attr["value"].tensor if node.op == "Const" else None
            if proto is None or proto.dtype != 7 or not 0 < proto.ByteSize() <= _MAX_CONSTANT_BYTES:  # 7: DT_STRING
                continue
            for text in tensor_util.MakeNdarray(proto).reshape(-1):
                texts[text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)] = None
    return list(texts)


def _outermost(tensor: Any) -> Any:  # noqa: ANN401
    """Return the tensor outside all enclosing `tf.function`s that a placeholder stands for."""
    for _ in range(10):
        graph = None if hasattr(tensor, "numpy") else getattr(tensor, "graph", None)
        outer = next((o for o, inner in getattr(graph, "captures", ()) if inner is tensor), None)
        if outer is None:
            return tensor
        tensor = outer
    return tensor


def _identified(handle: Any, function: object) -> Captured:  # noqa: ANN401
    kind, owner = _owner_of(handle)
    if owner is None and not hasattr(
        handle, "numpy"
    ):  # TensorFlow 1 graphs: the kind follows from the op that makes the handle
        op_type = getattr(getattr(handle, "op", None), "type", "")
        if op_type in _STATIC_OPS:
            kind = state.STATIC_TABLE
        elif op_type == "VarHandleOp":
            kind = state.VARIABLE
    return Captured(kind, _name_of(owner, kind, function) if owner is not None else "", owner)


def _owner_of(handle: Any) -> tuple[str, Any]:  # noqa: ANN401
    """Return (kind, object) of the object that owns the handle, found among the handle's referrers."""
    for referrer in gc.get_referrers(handle):
        if isinstance(referrer, dict):
            owners = [owner for owner in gc.get_referrers(referrer) if getattr(owner, "__dict__", None) is referrer]
        else:
            owners = [referrer]
        for owner in owners:
            kind = _kind_of(owner, handle)
            if kind is not None:
                return kind, owner
    return state.UNKNOWN, None


def _kind_of(owner: Any, handle: Any) -> str | None:  # noqa: ANN401
    """Return the kind of the owner; None if it does not own the handle."""
    cls = type(owner)
    try:
        names = {base.__name__ for base in cls.__mro__ if base.__module__.startswith("tensorflow.")}
    except AttributeError:
        return None
    if cls.__name__ == "_UnreadVariable":
        return None  # temporary result of an assignment, which shares the handle of the variable
    if "BaseResourceVariable" in names:
        return state.VARIABLE if owner.handle is handle else None
    if "LookupInterface" in names or "InitializableLookupTableBase" in names:
        if getattr(owner, "resource_handle", None) is not handle:
            return None
        is_tensorflow = cls.__module__.startswith(
            "tensorflow."
        )  # the behaviour of the script's own subclasses is unknown
        if is_tensorflow and cls.__name__ in _STATIC_TABLES:
            return state.STATIC_TABLE
        return state.MUTABLE_TABLE if is_tensorflow and cls.__name__ in _MUTABLE_TABLES else state.UNKNOWN
    if "QueueBase" in names:
        return state.QUEUE
    if "OwnedIterator" in names:
        return state.ITERATOR
    if "SummaryWriter" in names or cls.__name__.endswith("SummaryWriter"):
        return state.SUMMARY_WRITER
    if "DatasetV2" in names and getattr(owner, "_variant_tensor_attr", None) is handle:
        return state.DATASET
    return None


def _name_of(owner: Any, kind: str, function: object) -> str:  # noqa: ANN401
    for name, value in named_objects(function):
        if value is owner:
            return name
        if kind in (state.STATIC_TABLE, state.MUTABLE_TABLE, state.VARIABLE):
            for key, inner in _attributes(value):
                if inner is owner:
                    return f"{name}.{key}"
    own = getattr(owner, "name", "") if kind != state.DATASET else ""
    return str(own).removesuffix(":0") if isinstance(own, str) else ""


def _references(current: object) -> Iterator[tuple[str, Any]]:
    """Yield (name, value) of the objects that a callable refers to."""
    while hasattr(current, "func"):  # functools.partial
        yield from (("an argument", value) for value in getattr(current, "args", ()))
        yield from dict(getattr(current, "keywords", {})).items()
        current = current.func
    current = getattr(current, "python_function", current)
    instance = getattr(current, "__self__", None)
    if not inspect.isfunction(current) and not inspect.ismethod(current) and callable(current):
        instance, current = current, getattr(type(current), "__call__", current)  # noqa: B004
    if instance is not None and not inspect.ismodule(instance):
        yield "self", instance
        yield from ((f"self.{key}", value) for key, value in _attributes(instance))
    plain = inspect.unwrap(getattr(current, "__func__", current))  # type: ignore[arg-type]
    code = getattr(plain, "__code__", None)
    if code is None:
        return
    for name, cell in zip(code.co_freevars, plain.__closure__ or (), strict=False):
        try:
            value = cell.cell_contents
        except ValueError:  # not assigned yet
            continue
        yield name, value
        if name == "self":
            yield from ((f"self.{key}", inner) for key, inner in _attributes(value))
    namespace = getattr(plain, "__globals__", {})
    for name in _global_names(code):
        if name in namespace:
            yield name, namespace[name]
    yield from zip(code.co_varnames, plain.__defaults__ or (), strict=False)


def _global_names(code: types.CodeType) -> list[str]:
    """Return the names that the code and the functions defined in it look up."""
    names = dict.fromkeys(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            names |= dict.fromkeys(_global_names(constant))
    return list(names)


def _attributes(value: object) -> list[tuple[str, Any]]:
    if inspect.ismodule(value) or inspect.isclass(value) or inspect.isroutine(value):
        return []
    return list(getattr(value, "__dict__", {}).items())[:100]


def _is_plain_function(value: object) -> bool:
    value = getattr(value, "python_function", value)
    module = getattr(value, "__module__", "") or ""
    return (inspect.isfunction(value) or inspect.ismethod(value)) and not module.startswith(("tensorflow", "keras"))
