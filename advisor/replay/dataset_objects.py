"""Dataset objects as they are met among the arguments of calls.

In: any object.  Out: whether it is a dataset, or holds one.
"""

from __future__ import annotations

from typing import Any

from advisor.capture.instrument.recorder import ID_ATTRIBUTE

_MANY = 1000
"""A longer list is looked through so far: it holds data, not datasets."""


def is_dataset(value: Any) -> bool:  # noqa: ANN401
    """Whether it is a `tf.data.Dataset` of whatever class."""
    return hasattr(value, "element_spec") and hasattr(value, "_variant_tensor")


def has_dataset(value: Any, depth: int) -> bool:  # noqa: ANN401
    """Whether it is one, or a list, tuple or dictionary with one inside, so many levels deep."""
    if is_dataset(value):
        return True
    if not depth:
        return False
    if isinstance(value, (list, tuple)):
        return any(has_dataset(item, depth - 1) for item in value[:_MANY])
    return isinstance(value, dict) and any(has_dataset(item, depth - 1) for item in value.values())


def mark(dataset: Any, call_id: str) -> None:  # noqa: ANN401
    """Note on a dataset which call (or link) made it."""
    object.__setattr__(dataset, ID_ATTRIBUTE, call_id)


def become(dataset: Any, other: Any) -> None:  # noqa: ANN401
    """Make a dataset under construction the same as another."""
    object.__setattr__(dataset, "__class__", type(other))
    dataset.__dict__.clear()
    dataset.__dict__.update(other.__dict__)
