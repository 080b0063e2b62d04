"""Finds the ops of Keras layers that look at the rank of their input, so that the graph of one element does not show a batch.

In: the graph that TensorFlow traced of the function of a transformation.  Out: `LayerOps`: the ops of layers that take a batch as
they take one element, and those of layers that do not. `TextVectorization` splits a text into a tensor, and texts into a ragged
one, which it pads to the same length; `StringLookup` gives a scalar a dimension and removes it again, or counts it as a batch.
"""

from __future__ import annotations

import functools
import inspect
import sys
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from types import CodeType
from typing import Any

from advisor.capture.instrument.function_lines import frame_of_call, values_named
from advisor.model.calls import Site

_KERAS = "keras/src/"
_LAYERS = f"{_KERAS}layers/preprocessing/"
"""Where Keras 3 has its layers, which TensorFlow has installed since 2.16."""
_COUNTING = frozenset({f"{_LAYERS}category_encoding.py", f"{_KERAS}utils/numerical_utils.py"})
"""Files whose functions take a scalar as a batch of one: one-hot and multi-hot results have another rank for it."""

_TYPICAL = frozenset({"LookupTableFindV2", "OneHot", "Bincount", "DenseBincount", "RaggedBincount", "SparseBincount"})
"""Op types of which each of these layers makes one."""


@dataclass(frozen=True, slots=True)
class LayerOps:
    """Names of ops that layers make."""

    alike: frozenset[str] = frozenset()
    """They treat a batch like each of its elements, whatever their types."""
    unlike: frozenset[str] = frozenset()
    """They do not, whatever their types."""
    classes: tuple[str, ...] = ()
    """The classes of the layers of `alike`."""


def ops_of_layers(graph: Any, function: object, site: Site | None) -> LayerOps:  # noqa: ANN401
    """Return the ops of layers of which it is known what they do with a batch.

    Args:
        graph: The traced `FuncGraph`.
        function: The callable that the user passed to the transformation.
        site: Where the callable is defined; None if it is not the user's code, as a layer that is passed itself.
    """
    operations = list(graph.get_operations())
    # Stacks are long, and nearly all functions have none of these ops.
    if _module("text_vectorization") not in sys.modules or _TYPICAL.isdisjoint(op.type for op in operations):
        return LayerOps()
    made: dict[str, list[Any]] = {}
    unlike = set[str]()
    for op in operations:
        files = [_file_of(frame.filename) for frame in getattr(op, "traceback", ())]
        outermost = next((file for file in files if file in _ALIKE), None)
        if outermost is not None:
            made.setdefault(outermost, []).append(op)
        if not _COUNTING.isdisjoint(files):
            unlike.add(op.name)
    captured = {internal.op.name for _, internal in getattr(graph, "captures", ())}
    alike, classes = set[str](), list[str]()
    for file, ops in made.items():
        kinds = _suitable_layers(_ALIKE[file], function)
        if kinds and _are_called_plainly(_ALIKE[file], function, site, ops, captured):
            alike |= {op.name for op in ops}
            classes += kinds
    return LayerOps(frozenset(alike), frozenset(unlike - alike), tuple(dict.fromkeys(classes)))


def _pads_to_one_length(layer: Any) -> bool:  # noqa: ANN401
    """Whether each text becomes as many numbers."""
    is_plain = layer._split in ("whitespace", "character") and not callable(layer._standardize)
    return is_plain and layer._output_mode == "int" and layer._output_sequence_length is not None and not layer._ragged


def _makes_a_number_of_each(layer: Any) -> bool:  # noqa: ANN401
    return layer.output_mode == "int" and not layer.sparse


@dataclass(frozen=True, slots=True)
class _Kind:
    """Classes of layers that take batches with certain settings."""

    classes: Mapping[str, str]
    """Name of a class -> its module."""
    is_suitable: Callable[[Any], bool]
    """Whether a layer has these settings; the attributes are private, and without one of them nothing is known."""
    ranks: tuple[int, ...]
    """Ranks of an element with which it was tried."""


_LOOKUPS = {"StringLookup": "string_lookup", "IntegerLookup": "integer_lookup"}
_ALIKE: Mapping[str, _Kind] = {
    f"{_LAYERS}text_vectorization.py": _Kind({"TextVectorization": "text_vectorization"}, _pads_to_one_length, (0,)),
    f"{_LAYERS}index_lookup.py": _Kind(_LOOKUPS, _makes_a_number_of_each, (0, 1)),
}
"""The file with the method that makes the ops -> the classes that have it."""


def _module(name: str) -> str:
    return f"{_LAYERS.replace('/', '.')}{name}"


@functools.lru_cache(maxsize=1024)
def _file_of(filename: str) -> str:
    """A file from `keras/src/` on; empty if it is not Keras'."""
    _, keras, rest = filename.replace("\\", "/").rpartition(_KERAS)
    return f"{keras}{rest}" if keras else ""


def _suitable_layers(kind: _Kind, function: object) -> list[str]:
    """The classes of the layers that a function names, or is; none if one of them has other settings."""
    known = {name: getattr(sys.modules.get(_module(module)), name, None) for name, module in kind.classes.items()}
    classes = tuple(cls for cls in known.values() if isinstance(cls, type))
    layers = (
        [function] if isinstance(function, classes) else [one for one in _named(function) if isinstance(one, classes)]
    )
    try:
        if not all(type(layer) in classes and kind.is_suitable(layer) for layer in layers):
            return []
    except AttributeError:
        return []
    return [type(layer).__name__ for layer in layers]


def _are_called_plainly(
    kind: _Kind, function: object, site: Site | None, ops: Iterable[Any], captured: Collection[str]
) -> bool:
    """Whether the function itself calls the layers that make these ops, with elements of a known rank."""
    ops = list(ops)
    names = {op.name for op in ops}.union(captured)
    code = getattr(function, "__code__", None)
    is_layer = type(function).__name__ in kind.classes
    for op in ops:
        if any(tensor.shape.rank not in kind.ranks for tensor in op.inputs if tensor.op.name not in names):
            return False
        if not is_layer and not _is_called_by(op, code, site):
            return False  # by another function, whose layer is unknown
    return True


def _named(function: object) -> Iterable[object]:
    function = inspect.unwrap(function) if callable(function) else function
    return values_named(getattr(function, "python_function", function))


def _is_called_by(op: Any, code: CodeType | None, site: Site | None) -> bool:  # noqa: ANN401
    """Whether the function itself calls the layer."""
    frame = None if code is None or site is None else frame_of_call(op, code.co_name, site)
    return frame is not None and _KERAS in frame.filename.replace("\\", "/")
