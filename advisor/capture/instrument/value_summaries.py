"""Serialises values of the script as scalars and short descriptions for the recording.

In: bound arguments, options and datasets.  Out: strings, numbers and booleans.
"""

from __future__ import annotations

import enum
from typing import Any

from advisor.capture.instrument.traced_functions import function_name
from advisor.model.calls import Scalar

_STRING_LIMIT = 200
_SPEC_LIMIT = 500


def describe_arguments(bound: dict[str, Any]) -> dict[str, Scalar]:
    """Return the descriptions of bound arguments by parameter name.

    Items of `*args` are named `arg0`, `arg1`..., items of `**kwargs` have their own names.
    """
    descriptions: dict[str, Scalar] = {}
    for name, value in bound.items():
        if name == "self":
            continue
        if name == "args" and isinstance(value, tuple):
            descriptions |= {f"arg{i}": describe(item) for i, item in enumerate(value[:8])}
        elif name == "kwargs" and isinstance(value, dict):
            descriptions |= {str(key): describe(item) for key, item in value.items()}
        else:
            descriptions[name] = describe(value)
    if isinstance(descriptions.get("name"), str) and str(descriptions["name"]).startswith("tfadv_"):
        descriptions["name"] = None
    return descriptions


def describe(value: Any) -> Scalar:  # noqa: ANN401
    """Return scalars unchanged, other values as text, e.g. `<function augment>` or `<tensor float32 (600, 28, 28)>`."""
    if isinstance(value, enum.Enum):
        return value.name
    if value is None or isinstance(value, (bool, int, float)):
        return value
    if isinstance(value, str):
        return value if len(value) <= _STRING_LIMIT else value[: _STRING_LIMIT - 1] + "…"
    if isinstance(value, bytes):
        return describe(value.decode("utf-8", "replace"))
    if hasattr(value, "as_numpy_dtype") and hasattr(value, "name"):  # tf.DType
        return str(value.name)
    if hasattr(value, "element_spec"):
        return "<iterator>" if hasattr(value, "get_next") else "<dataset>"
    if hasattr(value, "dtype") and hasattr(value, "shape"):
        return _describe_array(value)
    if isinstance(value, (list, tuple, dict, set)):
        return f"<{type(value).__name__} of {len(value)}>"
    if callable(value):
        return f"<function {function_name(value)}>"
    return f"<{type(value).__name__}>"


def _describe_array(value: Any) -> Scalar:  # noqa: ANN401
    shape = tuple(value.shape)
    if shape == ():
        try:
            item = value.numpy() if hasattr(value, "numpy") else value
            scalar = item.item() if hasattr(item, "item") else item
            if isinstance(scalar, (bool, int, float, str, bytes)):
                return describe(scalar)
        except Exception:  # symbolic tensors have no value
            return f"<tensor {value.dtype}>"
    return f"<{'tensor' if hasattr(value, 'numpy') else 'array'} {getattr(value.dtype, 'name', value.dtype)} {shape}>"


def describe_options(options: Any) -> dict[str, Scalar]:  # noqa: ANN401
    """Return the fields of a `tf.data.Options` that differ from their defaults: dotted name -> value."""
    descriptions: dict[str, Scalar] = {}

    def visit(group: Any, prefix: str) -> None:  # noqa: ANN401
        defaults = type(group)()  # compared with it, because reading a field stores its default in `_options`
        for name, value in sorted(getattr(group, "_options", {}).items()):
            if hasattr(value, "_options"):
                visit(value, f"{prefix}{name}.")
            elif value is not None and value != getattr(defaults, name, None):
                descriptions[prefix + name] = describe(value)

    if options is not None:
        visit(options, "")
    return descriptions


def element_facts(dataset: Any) -> tuple[str, int | None, int | None]:  # noqa: ANN401
    """Return facts about the elements of a dataset.

    Returns:
        (element spec as text, size of an element in bytes or None if the spec does not determine it, cardinality or None if it
        is not available in eager mode).
    """
    import tensorflow as tf

    spec = dataset.element_spec
    text = str(spec)
    cardinality = None
    if tf.executing_eagerly():
        try:
            cardinality = int(dataset.cardinality())
        except Exception:  # the cardinality is optional
            cardinality = None
    return text if len(text) <= _SPEC_LIMIT else text[: _SPEC_LIMIT - 1] + "…", _element_bytes(spec), cardinality


def _element_bytes(spec: Any) -> int | None:  # noqa: ANN401
    import tensorflow as tf

    total = 0
    for leaf in tf.nest.flatten(spec):
        if (
            not isinstance(leaf, tf.TensorSpec)
            or not leaf.shape.is_fully_defined()
            or not leaf.dtype.size
            or (leaf.dtype in (tf.string, tf.variant, tf.resource))
        ):
            return None
        total += int(leaf.shape.num_elements()) * int(leaf.dtype.size)
    return total
