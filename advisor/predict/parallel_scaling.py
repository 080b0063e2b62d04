"""What work gains when more threads share it.

In: an `Analysis`, iterators that do one piece of work together, and the threads it has and may have.  Out: `Prediction`.

Twice the threads never do twice the work. A parallel transformation gives its elements out in order, so a slot that is done
before its turn waits with its result; and each element is handed to a thread and back. The first grows with the work and with
how much its times differ, the second is the same for every element. Both were measured where nothing else ran
(benchmarks/hand_over.py, docs/predictions.md): two threads instead of one, on pipelines of 25 us to 1.2 ms an element.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.cache_size import window_elements
from advisor.predict.operational import predict_speedup

EFFICIENCY = (0.65, 0.8, 1.0)
"""Share of a thread's time in which it works: when times differ much, usually, when all are equal."""
HANDOFF_OVERHEAD_NS = (25_000, 15_000, 5_000)
"""For each element, of which no other element's work makes anything disappear: at most, usually, at least."""


def predict_parallel(
    analysis: Analysis, pipeline: Pipeline, iterators: Sequence[Iterator], threads: float, wanted: float
) -> Prediction | None:
    """Speedup of the step if `wanted` threads do what `threads` do now; None where nothing was measured.

    `iterators`: those whose work is spread, the one that hands the elements on first.
    """
    found = [
        predict_speedup(analysis, pipeline, _factors(pipeline, iterators, threads / max(wanted, 1e-9), share, ns))
        for share, ns in zip(EFFICIENCY, HANDOFF_OVERHEAD_NS, strict=True)
    ]
    low, likely, high = found
    if low is None or likely is None or high is None:
        return None
    # What the change does to the iterators is said without the losses: what limits a pipeline then are its cores.
    return replace(likely, low=min(low.low, likely.value), high=max(high.high, likely.value), effects=high.effects)


def _factors(
    pipeline: Pipeline, iterators: Sequence[Iterator], least: float, efficiency: float, hand_over_ns: float
) -> dict[str, float]:
    """What the cost of each is multiplied by: never more than 1, for nobody is made to run slower in parallel."""
    call = iterators[0].main_call  # of a map and a batch that were made one, each map is handed over
    elements = (window_elements(pipeline, call) if call is not None else None) or iterators[0].elements or 0
    each_ns = sum(it.busy_ns for it in iterators) / elements * pipeline.plain_over_profiled if elements else 0.0
    factor = least / efficiency + (hand_over_ns / each_ns if each_ns > 0 else 0.0)
    return {it.id: min(1.0, max(least, factor)) for it in iterators}
