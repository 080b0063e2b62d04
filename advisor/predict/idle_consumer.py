"""How much shorter the consumer's own time becomes if the pipeline works less on the same cores.

In: an `Analysis`, the demands of its pipeline, and the share of work that remains.  Out: factors for the consumer's time, and its
CPU time. Steps whose input costs nothing are timed where possible (`advisor.capture.window.idle_steps`, `--ceiling`). A change
that removes all work of the pipeline brings the consumer there; one that removes a part of it, as far as that part goes.
"""

from __future__ import annotations

import statistics
from collections.abc import Mapping
from dataclasses import replace

from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.host.calibration.prediction import BESIDE_INPUT
from advisor.model.pipeline import Analysis
from advisor.predict.demand import Demands, has_consumer_elsewhere


def idle_step_ns(analysis: Analysis) -> float | None:
    """Return the median time of a step whose input cost nothing, in ns; None if it was not measured."""
    steps = analysis.recording.times_without_input if analysis.recording is not None else ()
    return statistics.median(steps) if len(steps) >= MIN_VERDICT_STEPS.value else None


def removed_share(measured: Demands, work: Mapping[str, float]) -> float:
    """Return the share of the pipeline's CPU time that a change removes, 0 to 1.

    Args:
        measured: The demands of the pipeline.
        work: Iterator id -> factor for its work, 0 to 1.
    """
    gone_ns = sum(node.cpu_ns * (1 - work[node.iterator_id]) for node in measured.nodes)
    return gone_ns / measured.cpu_ns if measured.cpu_ns > 0 else 0.0


def consumer_factors(analysis: Analysis, measured: Demands, work: Mapping[str, float]) -> tuple[float, float]:
    """Return the likely and the best-case factor for the consumer's own time after a change.

    Where no step without input was timed, only the best case supposes that the consumer becomes faster.

    Args:
        analysis: The analysis.
        measured: The demands of the pipeline, without the change.
        work: As for `removed_share`.
    """
    if has_consumer_elsewhere(analysis) or measured.consumer_ns <= 0:
        return 1.0, 1.0
    idle_ns, share = idle_step_ns(analysis), removed_share(measured, work)
    if idle_ns is None:
        best = 1.0 if analysis.verdict.is_ceiling_measured else 1 / BESIDE_INPUT.value
        return 1.0, 1 - (1 - best) * share
    factor = 1 - (1 - min(1.0, idle_ns / measured.consumer_ns)) * share
    return factor, factor


def with_idle_consumer(analysis: Analysis, measured: Demands, work: Mapping[str, float]) -> Demands:
    """Return the demands after a change, as far as the consumer's CPU time goes.

    A step whose input costs nothing has no more CPU time than all cores together. What the consumer seems to need beyond that
    goes with the work of the pipeline.

    Args:
        analysis: As for `consumer_factors`.
        measured: As for `consumer_factors`.
        work: As for `removed_share`.
    """
    idle_ns = idle_step_ns(analysis)
    if idle_ns is None or measured.cores is None:
        return measured
    excess_ns = max(0.0, measured.consumer_cpu_ns - idle_ns * measured.cores.usable)
    return replace(measured, consumer_cpu_ns=measured.consumer_cpu_ns - excess_ns * removed_share(measured, work))
