"""Finds dataset objects in the arguments of calls and marks them with the id of their call.

In: any object.  Out: whether it is or contains a dataset.
"""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from advisor.capture.instrument.dataset_ids import ID_ATTRIBUTE, is_dataset

_MANY = 1000
"""Maximum number of items of a list that are examined. A longer list contains data and not datasets."""


def has_dataset(value: Any, depth: int) -> bool:  # noqa: ANN401
    """Return whether a value is a dataset or a list, tuple or dictionary that contains one, up to `depth` levels deep.

    Args:
        value: Anything that a script may pass to a call or capture in a function.
        depth: Levels of containers that are opened; 0: only the value itself counts.
    """
    if is_dataset(value):
        return True
    if not depth:
        return False
    if isinstance(value, (list, tuple)):
        return any(has_dataset(item, depth - 1) for item in value[:_MANY])
    return isinstance(value, dict) and any(has_dataset(item, depth - 1) for item in value.values())


def upstream_of(dataset: Any, stops: Container[int] = ()) -> list[Any]:  # noqa: ANN401
    """Return a dataset object and all upstream of it, each once.

    Args:
        dataset: The dataset.
        stops: Values of `id` of datasets that are left out, with what is upstream of them alone.
    """
    known: dict[int, Any] = {}
    pending = [dataset]
    while pending:
        node = pending.pop()
        if id(node) not in known and id(node) not in stops:
            known[id(node)] = node
            pending += node._inputs()
    return list(known.values())


def mark(dataset: Any, call_id: str) -> None:  # noqa: ANN401
    """Set the id of the call (or link) that made a dataset.

    Args:
        dataset: The dataset object; it is changed.
        call_id: An id of the recording, or of a link that an edit adds (`inserted_id`).
    """
    object.__setattr__(dataset, ID_ATTRIBUTE, call_id)


def become(dataset: Any, other: Any) -> None:  # noqa: ANN401
    """Turn a dataset under construction into a copy of another one.

    Args:
        dataset: The object whose constructor is running; it is changed.
        other: The finished dataset that it takes class and state from.
    """
    object.__setattr__(dataset, "__class__", type(other))
    dataset.__dict__.clear()
    dataset.__dict__.update(other.__dict__)
