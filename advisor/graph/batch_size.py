"""How many rows an element at the root of a pipeline has: the batch size, where it is known."""

from __future__ import annotations

from advisor.model.pipeline import Pipeline

_BATCHING = ("batch", "padded_batch", "ragged_batch")
_KEEPING = (
    "map",
    "prefetch",
    "repeat",
    "take",
    "skip",
    "shuffle",
    "cache",
    "with_options",
    "apply",
    "shard",
    "snapshot",
    "filter",
)
"""Methods after which an element is still one batch."""


def rows_per_element(main: Pipeline) -> int | None:
    """Return the size of the batches that the consumer gets; None if they are no batches, or their size is unknown."""
    for call in (call for it in main.iterators for call in reversed(it.calls)):  # the consumer's end first
        size = call.arguments.get("batch_size")
        if call.method in _BATCHING and isinstance(size, int):
            return size
        if call.method not in _KEEPING:
            break
    return None
