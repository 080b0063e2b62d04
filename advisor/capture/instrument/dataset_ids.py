"""Which recorded call made a dataset: its id is an attribute of the dataset object.

In: dataset objects.  Out: the id of the call that made them, or of the nearest recorded call upstream.
"""

from __future__ import annotations

from typing import Any

ID_PREFIX = "tfadv_"
ID_ATTRIBUTE = "_tfadv_call_id"
"""Attribute of a dataset object that holds the id of the call that made it."""


def is_dataset(value: object) -> bool:
    """Whether a value is a `tf.data.Dataset` of any class, determined without importing TensorFlow."""
    return hasattr(value, "element_spec") and hasattr(value, "_variant_tensor")


def call_id_of(dataset: Any) -> str | None:  # noqa: ANN401
    """Return the id of the call that made `dataset`, or of the nearest recorded call upstream; None if there is none."""
    return origin(dataset)[0]


def origin(dataset: Any) -> tuple[str | None, list[str]]:  # noqa: ANN401
    """Return (id of the nearest recorded call, classes of the datasets downstream of it that no recorded call made)."""
    unrecorded: list[str] = []
    while dataset is not None and len(unrecorded) < 100:
        call_id = getattr(dataset, ID_ATTRIBUTE, None)
        if isinstance(call_id, str):
            return call_id, unrecorded
        unrecorded.append(type(dataset).__name__)
        try:
            inputs = dataset._inputs()
        except Exception:
            inputs = ()
        dataset = inputs[0] if inputs else getattr(dataset, "_dataset", None)
    return None, unrecorded


def origins(bound: dict[str, Any]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return (ids of the calls that made the datasets in the arguments, classes of datasets that no recorded call made)."""
    call_ids: list[str] = []
    unrecorded: dict[str, None] = {}
    seen: list[Any] = []

    def visit(value: object, depth: int) -> None:
        if isinstance(value, type):
            return  # `interleave(tf.data.TFRecordDataset)`: a function, although it has these attributes
        if is_dataset(value):
            if not any(value is other for other in seen):
                seen.append(value)
                call_id, classes = origin(value)
                unrecorded.update(dict.fromkeys(classes))
                call_ids.extend([] if call_id is None else [call_id])
        elif depth and isinstance(value, (list, tuple)):
            for item in value[:1000]:
                visit(item, depth - 1)
        elif depth and isinstance(value, dict):
            for item in value.values():
                visit(item, depth - 1)

    for value in bound.values():
        visit(value, 3)
    return tuple(call_ids), tuple(unrecorded)
