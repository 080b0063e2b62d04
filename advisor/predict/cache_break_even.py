"""Computes when a cache pays off: the cost of its first epoch and the epoch from which the script has saved time.

In: an `Analysis`, a pipeline and a `CachePlace`.  Out: `BreakEven`, or None if the length of an epoch is unknown.

A cache does not accelerate the first epoch: every element is still produced, and stored in addition. In memory, storing costs
nothing (tf.data does not copy), so the first epoch takes as long as now; a cache file has to be written.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.finding import Evidence
from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.caching import CachePlace
from advisor.predict.passes_over_data import root_steps_per_epoch
from advisor.predict.run_gain import break_even_pass


@dataclass(frozen=True, slots=True)
class BreakEven:
    """The predicted epoch times with a cache, in nanoseconds."""

    epoch_ns: float
    """A present epoch."""
    first_epoch_ns: float
    """The epoch that fills the cache."""
    later_epoch_ns: float
    """Every later epoch, as predicted."""
    break_even_epoch: int
    """Number of epochs after which the script has taken less time than without the cache, as predicted."""

    @property
    def evidence(self) -> tuple[Evidence, ...]:
        """The epoch times with the cache, and the epoch from which it pays off."""
        return (
            Evidence("first_epoch", self.first_epoch_ns, "ns"),
            Evidence("later_epochs", self.later_epoch_ns, "ns"),
            Evidence("break_even_epoch", self.break_even_epoch),
        )


def find_break_even(
    analysis: Analysis, pipeline: Pipeline, place: CachePlace, write_bytes_per_s: float | None = None
) -> BreakEven | None:
    """Predict when a cache pays off.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        place: The place of the cache.
        write_bytes_per_s: Write rate of the disk for a cache file; None for a cache in memory.

    Returns:
        The epoch times, or None if the length of an epoch or the size of the cache is unknown, or if the cache has no benefit.
    """
    steps, step = root_steps_per_epoch(analysis, pipeline), pipeline.steps
    if steps is None or step is None or place.prediction.value <= 1:
        return None
    fill_ns = 0.0
    if write_bytes_per_s is not None:
        if place.bytes is None or write_bytes_per_s <= 0:
            return None
        fill_ns = place.bytes / write_bytes_per_s * 1e9
    epoch_ns = steps * step.mean_ns
    later_ns = epoch_ns / place.prediction.value
    break_even = break_even_pass(place.prediction.value, epoch_ns / (epoch_ns + fill_ns))
    if break_even is None:
        return None
    return BreakEven(epoch_ns, epoch_ns + fill_ns, later_ns, break_even)
