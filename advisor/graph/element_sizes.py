"""Infers the size of elements that tf.data's models do not tell, from the size of what is made of them.

In: the iterators of a pipeline.  Out: the same, with more `element_bytes`.

At the end of an epoch tf.data removes finished iterators from its model, the deepest first. A model that is read then knows the
batches, but not the records in them; in short epochs this is common.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

from advisor.model import catalog
from advisor.model.pipeline import Iterator

_UNCHANGED = catalog.BOOKKEEPING | catalog.SHUFFLES | {"Prefetch", "Repeat", "Take", "Skip"}
"""Types that emit elements of their input. A cache is not among them: while it is read, it has no input."""
_GROUPS = frozenset({"Batch", "ParallelBatch"})


def with_inferred_sizes(iterators: Iterable[Iterator]) -> list[Iterator]:
    """Return the iterators in the same order, each behind its consumer.

    An element in a batch has the size of the batch over the batch size, which is a little too small if the last batch of an
    epoch is not full.
    """
    known: dict[str, Iterator] = {}
    for iterator in iterators:
        consumer = known.get(iterator.parent_id) if iterator.parent_id is not None else None
        size = iterator.element_bytes
        known[iterator.id] = iterator if size else replace(iterator, element_bytes=_input_bytes(consumer) or size)
    return list(known.values())


def _input_bytes(consumer: Iterator | None) -> int | None:
    """Size of an element that the consumer takes, in bytes; None if it is unknown."""
    if consumer is None or not consumer.element_bytes:
        return None
    kind = catalog.base_type(consumer.name)
    if kind in _UNCHANGED:
        return consumer.element_bytes
    rows = consumer.parameters.get("batch_size")
    if kind in _GROUPS and isinstance(rows, int) and rows > 0:
        return consumer.element_bytes // rows
    return None
