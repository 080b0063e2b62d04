"""Predicts how many cores the machine would need so that the consumer no longer waits for its input.

In: an `Analysis` and a pipeline.  Out: `CoresNeeded`, or None if CPU time was not measured or cores are not the limit.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.model.pipeline import Analysis, Pipeline
from advisor.predict.demand import demands
from advisor.predict.unprofiled_costs import unprofiled

_MOST_CORES = 10_000
"""A larger result means that the consumer's own time was too short to be measured."""


@dataclass(frozen=True, slots=True)
class CoresNeeded:
    """The cores that the CPU time of a step takes."""

    cpu_ns: float
    """CPU time of a step: of the pipeline and of the consumer."""
    step_ns: float
    """The step without its wait for input."""
    now: float
    """Cores that the process may use."""
    needed: int
    """Cores with which this CPU time fits into that step, if every part of it runs in parallel: a lower bound."""


def cores_needed(analysis: Analysis, pipeline: Pipeline) -> CoresNeeded | None:
    """Return how many cores the CPU time of a step takes; None if that is unknown or no more than there are."""
    measured = demands(analysis, unprofiled(pipeline))
    if measured is None or measured.cores is None or not measured.cores.is_measured or measured.consumer_ns <= 0:
        return None
    cpu_ns = measured.consumer_cpu_ns + measured.cpu_ns
    needed = cpu_ns / measured.consumer_ns
    if not math.isfinite(needed) or needed > _MOST_CORES or needed <= measured.cores.usable:
        return None
    return CoresNeeded(cpu_ns, measured.consumer_ns, measured.cores.usable, math.ceil(needed - 1e-6))
