"""Finds the ops of Keras layers that look at the rank of their input, so that they take a batch as they take one element.

In: the graph that TensorFlow traced of the function of a transformation.  Out: names of the ops that such layers make. The graph
of one text does not show what `TextVectorization` does with a batch of texts: it splits a text into a tensor, and texts into a
ragged one, which it pads to the same length.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterable
from types import CodeType
from typing import Any

from advisor.capture.instrument.function_lines import frame_of_call, values_named
from advisor.model.calls import Site

_LAYER = "keras/src/layers/preprocessing/text_vectorization.py"
"""Its file in Keras 3, which TensorFlow has installed since 2.16."""
_KERAS = "keras/src/"
TEXT_VECTORIZATION = "TextVectorization"


def ops_of_batch_layers(graph: Any, function: object, site: Site | None) -> frozenset[str]:  # noqa: ANN401
    """Return the names of the ops that layers make which take a batch as they take one element; none if one may not.

    Args:
        graph: The traced `FuncGraph`.
        function: The callable that the user passed to the transformation.
        site: Where the callable is defined; None if it is not the user's code, as a layer that is passed itself.
    """
    module = next((module for name, module in sys.modules.items() if name.endswith(".text_vectorization")), None)
    kind = getattr(module, TEXT_VECTORIZATION, None)
    if not isinstance(kind, type):
        return frozenset()
    operations = list(graph.get_operations())
    made = {op.name for op in operations if _is_made_in(op, _LAYER)}
    code = getattr(function, "__code__", None)
    layers = [function] if isinstance(function, kind) else [one for one in _named(function) if isinstance(one, kind)]
    if not made or not layers or not all(map(_pads_to_one_length, layers)):
        return frozenset()
    captured = {internal.op.name for _, internal in getattr(graph, "captures", ())}
    for op in (op for op in operations if op.name in made):
        if not isinstance(function, kind) and not _is_called_by(op, code, site):
            return frozenset()  # it is called by another function, whose layer is unknown
        outside = [tensor for tensor in op.inputs if tensor.op.name not in made | captured]
        if any(tensor.shape.rank != 0 for tensor in outside):
            return frozenset()
    return frozenset(made)


def _named(function: object) -> Iterable[object]:
    function = inspect.unwrap(function) if callable(function) else function
    return values_named(getattr(function, "python_function", function))


def _pads_to_one_length(layer: Any) -> bool:  # noqa: ANN401
    """Whether each text becomes as many numbers; the attributes are private, and without one of them nothing is known."""
    try:
        is_plain = layer._split in ("whitespace", "character") and not callable(layer._standardize)
        is_padded = layer._output_mode == "int" and layer._output_sequence_length is not None and not layer._ragged
    except AttributeError:
        return False
    return is_plain and is_padded


def _is_made_in(op: Any, file: str) -> bool:  # noqa: ANN401
    return any(frame.filename.replace("\\", "/").endswith(file) for frame in getattr(op, "traceback", ()))


def _is_called_by(op: Any, code: CodeType | None, site: Site | None) -> bool:  # noqa: ANN401
    """Whether the function itself calls the layer."""
    frame = None if code is None or site is None else frame_of_call(op, code.co_name, site)
    return frame is not None and _KERAS in frame.filename.replace("\\", "/")
