"""When a cache pays: what its first epoch costs, and from which epoch on the script has gained.

In: an `Analysis`, a pipeline and a `CachePlace`.  Out: `Payoff`, or None where nobody knows how long an epoch is.

A cache makes no first epoch faster: every element is still made, and kept beside. Kept in memory they are kept as they are
(tf.data copies nothing), so that the first epoch takes as long as it does now; into a file they have to be written.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.cache_size import elements_per_epoch, steps_per_epoch
from advisor.predict.caching import CachePlace
from advisor.predict.structure import consumed_call


@dataclass(frozen=True, slots=True)
class Payoff:
    """Times in nanoseconds."""

    epoch_ns: float
    """An epoch as it is."""
    first_epoch_ns: float
    """The one that fills the cache."""
    later_epoch_ns: float
    """Every other, as predicted."""
    break_even_epoch: int
    """After so many epochs the script has taken less time than without the cache, as predicted."""


def payoff(
    analysis: Analysis, pipeline: Pipeline, place: CachePlace, write_bytes_per_s: float | None = None
) -> Payoff | None:
    """The payoff of a cache in memory; with `write_bytes_per_s` of one in a file on a disk that takes so much.

    None: the length of an epoch or the size of the cache is not known, or the cache gives nothing.
    """
    steps, step = _steps(analysis, pipeline), pipeline.steps
    if steps is None or step is None or place.prediction.value <= 1:
        return None
    fill_ns = 0.0
    if write_bytes_per_s is not None:
        if place.bytes is None or write_bytes_per_s <= 0:
            return None
        fill_ns = place.bytes / write_bytes_per_s * 1e9
    epoch_ns = steps * step.mean_ns
    later_ns = epoch_ns / place.prediction.value
    saved_ns = epoch_ns - later_ns
    # n epochs with it take fill + epoch + (n - 1) later, without it n epoch: less from the first n above 1 + fill / saved on
    break_even = math.floor(1 + fill_ns / saved_ns) + 1
    return Payoff(epoch_ns, epoch_ns + fill_ns, later_ns, break_even)


def _steps(analysis: Analysis, pipeline: Pipeline) -> float | None:
    """Steps of an epoch: as they were seen, else as the consumed dataset says."""
    seen = steps_per_epoch(analysis, pipeline)
    if seen is not None:
        return seen
    consumed = consumed_call(analysis, pipeline)
    count = elements_per_epoch(analysis, pipeline, consumed) if consumed is not None else None
    return float(count) if count else None
