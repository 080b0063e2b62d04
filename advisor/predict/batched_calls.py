"""Predicts what it gains to call the function of a `map` once per batch, with the same ops.

In: the iterator of the `map` and the size of a batch.  Out: `Prediction`. The calls are divided by the size. An op does the same
work for a batch as for its elements, but starts once; how long it takes to start is a cost of the machine.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.finding import Prediction
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.machine_costs import machine_costs
from advisor.predict.operational import predict_speedup
from advisor.predict.structure import iterators_of_call


def predict_batched(
    analysis: Analysis, pipeline: Pipeline, call: Call, iterator: Iterator, size: int
) -> Prediction | None:
    """Return the predicted speedup; its range is that of the start of an op, from nothing to several times the typical one.

    Args:
        analysis: The analysis.
        pipeline: The pipeline of the iterator.
        call: The call whose function is called for each element.
        iterator: One of its iterators.
        size: Elements per batch.

    Returns:
        The prediction, or None if nothing was measured.
    """
    costs = machine_costs(analysis)
    copies = [copy.id for copy in iterators_of_call(pipeline, call)]
    least, typical, most = (
        predict_speedup(analysis, pipeline, dict.fromkeys(copies, left), dict.fromkeys(copies, left))
        for left in (left_when_batched(iterator, size, start_ns) for start_ns in (0.0, *costs.op_start_ns))
    )
    if least is None or typical is None or most is None:
        return None
    return costs.mark(replace(typical, low=least.low, high=most.high, best_effects=most.effects), "op_start_ns")


def left_when_batched(iterator: Iterator, size: int, start_ns: float) -> float:
    """Return the share of an iterator's time that remains with one call per batch.

    Args:
        iterator: The iterator that calls the function for each element.
        size: Elements per batch.
        start_ns: Time that an op takes before it computes anything, in nanoseconds.
    """
    if not iterator.busy_ns:
        return 1.0
    ops_ns = sum(op.total_ns for op in iterator.ops)
    op_share = min(1.0, ops_ns / iterator.busy_ns)
    starting_ns = sum(min(op.total_ns, op.count * start_ns) for op in iterator.ops)
    starting_share = starting_ns / ops_ns * op_share if ops_ns else 0.0
    return op_share - starting_share + (1 - op_share + starting_share) / size
