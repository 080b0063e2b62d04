"""Predicts the speedup of work that is distributed over more threads.

In: an `Analysis`, iterators that share one piece of work, and its present and future number of threads.  Out: `Prediction`.

Twice the threads do not do twice the work. A parallel transformation emits elements in order, so a finished slot may have to wait
with its result, and each element is handed to a thread and back. The first loss grows with the work and the variation of its
times; the second is constant per element. Both were measured on an otherwise idle machine (benchmarks/hand_over.py,
docs/predictions.md): two threads instead of one, with pipelines of 25 us to 1.2 ms per element.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace

from advisor.host.calibration.prediction import EFFICIENCY
from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.cache_size import window_elements
from advisor.predict.machine_costs import machine_costs
from advisor.predict.operational import predict_speedup


def predict_parallel(
    analysis: Analysis, pipeline: Pipeline, iterators: Sequence[Iterator], threads: float, wanted: float
) -> Prediction | None:
    """Predict the speedup of the step if more threads share the work.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        iterators: The iterators whose work is distributed, the one nearest to the consumer first.
        threads: Present number of threads.
        wanted: Number of threads after the change.

    Returns:
        The prediction, or None if nothing was measured.
    """
    return _predicted(
        analysis,
        pipeline,
        lambda efficiency, ns: _factors(pipeline, iterators, threads / max(wanted, 1e-9), efficiency, ns),
    )


def predict_part_parallel(
    analysis: Analysis, pipeline: Pipeline, iterators: Sequence[Iterator], share: float, elements: float, wanted: float
) -> Prediction | None:
    """Predict the speedup of the step if a part of a sequential call's work moves to a parallel `map` before it.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        iterators: The iterators that run the call.
        share: Share of their busy time that moves.
        elements: Elements of the `map` in the window, each of which is handed to a thread and back.
        wanted: Number of threads of the `map`.

    Returns:
        The prediction, or None if nothing was measured.
    """
    part_ns = (
        sum(it.busy_ns for it in iterators) * share / elements * pipeline.unprofiled_ratio if elements > 0 else 0.0
    )

    def factors(efficiency: float, hand_over_ns: float) -> dict[str, float]:
        factor = _factor(1 / max(wanted, 1e-9), efficiency, hand_over_ns, part_ns)
        return {it.id: 1 - share + share * factor for it in iterators}

    return _predicted(analysis, pipeline, factors)


def _predicted(
    analysis: Analysis, pipeline: Pipeline, factors: Callable[[float, float], dict[str, float]]
) -> Prediction | None:
    """Predict with the least, the likely and the best efficiency.

    Args:
        analysis: The analysis.
        pipeline: One of its pipelines.
        factors: Returns the cost factor per iterator for an efficiency and the time to hand over an element, in nanoseconds.
    """
    costs = machine_costs(analysis)
    low, likely, high = (
        predict_speedup(analysis, pipeline, factors(efficiency, ns))
        for efficiency, ns in zip(EFFICIENCY.value, costs.handoff_ns, strict=True)
    )
    if low is None or likely is None or high is None:
        return None
    # The effects exclude the losses: after the change, the cores limit the pipeline.
    spread = replace(likely, low=min(low.low, likely.value), high=max(high.high, likely.value), effects=high.effects)
    return costs.mark(spread, "handoff_ns")


def _factors(
    pipeline: Pipeline, iterators: Sequence[Iterator], least: float, efficiency: float, hand_over_ns: float
) -> dict[str, float]:
    """Cost factor per iterator, at most 1."""
    call = iterators[0].main_call  # in a fused map and batch, the elements of the map are handed over
    elements = (window_elements(pipeline, call) if call is not None else None) or iterators[0].elements or 0
    each_ns = sum(it.busy_ns for it in iterators) / elements * pipeline.unprofiled_ratio if elements else 0.0
    factor = _factor(least, efficiency, hand_over_ns, each_ns)
    return {it.id: factor for it in iterators}


def _factor(least: float, efficiency: float, hand_over_ns: float, each_ns: float) -> float:
    """Cost factor of work of `each_ns` nanoseconds per element of which `least` would remain without losses; at most 1."""
    return min(1.0, max(least, least / efficiency + (hand_over_ns / each_ns if each_ns > 0 else 0.0)))
