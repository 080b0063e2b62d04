"""The caches in memory of a rebuilt pipeline: which ones training fills, and whether they fit.

In: a `Replay`, or the edits and calls that make it.  Out: the caches, their size in bytes, and why that is too much.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from advisor.host.calibration.prediction import MEMORY_SHARE
from advisor.host.calibration.proof import CACHE_RESERVE, SAMPLED_ELEMENTS
from advisor.host.machine import memory_bytes
from advisor.model.calls import INFINITE_CARDINALITY
from advisor.model.units import format_bytes, format_share
from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.replay.dataset_objects import upstream_of
from advisor.replay.replay import Built, Replay


def caches_filled(work: Replay) -> list[Any]:
    """Return the pipeline's caches that also become full in training, inputs first.

    Caches inside functions cannot be filled in advance. A cache that is never read to its end because a `take` follows it is
    discarded at the end of every epoch, so it must not be filled either. A `repeat` reads its input to the end even if its own
    output is cut.
    """
    repeats = {id(built.dataset) for built in work.built if built.method == "repeat"}
    cut = {id(dataset) for built in work.built if _is_cutting(built) for dataset in upstream_of(built.dataset, repeats)}
    return [
        built.dataset
        for built in work.built
        if built.method == "cache" and not built.is_inside and id(built.dataset) not in cut
    ]


def bytes_held(caches: Sequence[Any]) -> int:
    """Return the bytes that these caches take once full, estimated from a sample; caches of unknown length are not counted."""
    held = 0
    for cache in caches:
        count, inputs = int(cache.cardinality()), cache._inputs()
        if count < 0 or not inputs or _is_on_disk(cache):
            continue
        sample = collect(inputs[0], Bounds(SAMPLED_ELEMENTS.value, 5.0))
        held += int(sample.size_bytes / max(1, len(sample.rows)) * count * CACHE_RESERVE.value)
    return held


def _is_on_disk(cache: Any) -> bool:  # noqa: ANN401
    """Whether a cache is on disk. TensorFlow stores the file name in a private field; without it, memory is assumed."""
    name = getattr(cache, "_filename", None)
    return name is not None and bool(name.numpy())


def _is_cutting(built: Built) -> bool:
    """Whether the call takes fewer elements than its input has."""
    if built.method not in ("take", "take_while") or built.is_inside or built.input is None:
        return False
    taken, whole = int(built.dataset.cardinality()), int(built.input.cardinality())
    return built.method == "take_while" or whole == INFINITE_CARDINALITY or 0 <= taken < whole


def too_big(needed: int | None) -> str:
    """Return why so many additional bytes are too many, as a sentence; empty if they are not, or if that is unknown.

    Args:
        needed: The bytes; None if unknown.
    """
    free = memory_bytes()[1]
    if needed is None or not free or needed <= MEMORY_SHARE.value * free:
        return ""
    return (
        f"Not tried: it would take {format_bytes(needed)}, and only {format_share(MEMORY_SHARE.value)} of the "
        f"{format_bytes(free)} of free memory may be used."
    )
