"""Predicts the effect of a change on a whole run of the script, which passes over its data a number of times.

In: the prediction of a change for a step, and the `Horizon` of the run.  Out: `RunGain`.

A cache does not help the first pass over the data. With n passes, a speedup s of later passes and a speedup f of the first one
(1 for a cache in memory), the whole run becomes

    n / (1 / f + (n - 1) / s)

times as fast; less than n times, whatever s is.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from advisor.model.finding import Finding, Prediction, RunGain
from advisor.model.horizon import Horizon
from advisor.model.pipeline import Analysis
from advisor.model.units import format_count, format_epochs, format_range, format_ratio
from advisor.predict.call_index import graph_of
from advisor.predict.passes_over_data import horizon

_EXAMPLES = (2, 10)
"""Numbers of passes for which the gain is given if their number is unknown."""


def with_run_gains(analysis: Analysis, findings: Sequence[Finding]) -> list[Finding]:
    """Return the findings with their effect on a whole run of the main pipeline.

    Args:
        analysis: The run; without a main pipeline, the findings stay as they are.
        findings: Findings with predictions of the step time.
    """
    pipeline = analysis.main
    if pipeline is None:
        return list(findings)
    calls = graph_of(analysis).by_id
    horizons: dict[tuple[str | None, bool], Horizon] = {}
    extended = []
    for finding in findings:
        key = (finding.call_id if finding.is_delayed else None, finding.makes_once)
        if key not in horizons:
            horizons[key] = horizon(analysis, pipeline, calls.get(key[0] or ""), makes_once=finding.makes_once)
        gain = finding.prediction and run_gain(finding.prediction, horizons[key], pipeline.step_ns)
        extended.append(replace(finding, over_run=gain or finding.over_run))
    return extended


def run_gain(prediction: Prediction, over: Horizon, step_ns: float, first: Prediction | None = None) -> RunGain:
    """Return the effect of a change on a whole run.

    Args:
        prediction: The prediction of the change; of several changes, of their effect on later passes.
        over: The passes of the run.
        step_ns: The present step in nanoseconds.
        first: The prediction for the first pass, with its range; None: `prediction.first_pass`.
    """
    if first is None:
        own = prediction.first_pass
        first = prediction if own is None else Prediction(own, own, own)
    passes = over.passes
    whole = None if passes is None else _over(passes, prediction, first)
    saved_share = 1 - 1 / prediction.value if whole is None else 1 - 1 / whole.value
    steps, per = 1.0, "step"
    if over.steps_per_pass:
        steps, per = (over.steps_per_pass, "pass") if passes is None else (over.steps_per_pass * passes, "run")
    break_even = break_even_pass(prediction.value, first.value) if prediction.is_delayed else None
    return RunGain(
        passes=passes,
        basis=over.basis,
        prediction=whole,
        saved_ns=step_ns * steps * saved_share,
        saved_per=per,
        break_even_pass=break_even,
        sentence=_sentence(prediction, first, whole, over, break_even) if prediction.is_delayed else "",
    )


def run_ratio(passes: float, first: float, later: float) -> float:
    """Return the speedup of all passes together.

    Args:
        passes: Number of passes; less than one if a run ends within the first.
        first: Speedup of the first pass.
        later: Speedup of every later pass.
    """
    if passes <= 1:
        return first
    return passes / (1 / first + (passes - 1) / later)


def break_even_pass(later: float, first: float) -> int | None:
    """Return the pass after which the run has taken less time than now; None if it never has.

    Args:
        later: Speedup of every pass but the first.
        first: Speedup of the first pass, at most 1 if it does not become faster.
    """
    saved = 1 - 1 / later
    if saved <= 0:
        return None
    # n passes take 1/first + (n - 1)/later passes of now: less than n for n > 1 + (1/first - 1) / saved
    return math.floor(1 + max(0.0, 1 / first - 1) / saved) + 1


def _over(passes: float, later: Prediction, first: Prediction) -> Prediction:
    return Prediction(
        run_ratio(passes, first.value, later.value),
        run_ratio(passes, first.low, later.low),
        run_ratio(passes, first.high, later.high),
    )


def _sentence(
    prediction: Prediction, first: Prediction, whole: Prediction | None, over: Horizon, break_even: int | None
) -> str:
    later = format_range(prediction.value, prediction.low, prediction.high)
    even = "" if break_even is None else f"; breaks even in epoch {format_count(break_even)}"
    if whole is None or over.passes is None:
        some = " and ".join(
            f"{format_ratio(run_ratio(passes, first.value, prediction.value))} over {passes} epochs"
            for passes in _EXAMPLES
        )
        return (
            f"{later} from the second epoch on; the first one does not become faster. The number of epochs is unknown "
            f"({over.why}): {some}{even}."
        )
    if over.passes <= 1:
        makes = "at most one pass over the data is left of this run"
        if not over.is_rest:
            makes = "this run makes at most one pass over the data"
        return f"No gain: {makes} ({over.basis}: {over.why})."
    gain = format_range(whole.value, whole.low, whole.high)
    run = "left of this run" if over.is_rest else "of this run"
    basis = f"{over.basis}: {over.why}"
    return f"Over the {format_epochs(over.passes)} {run} ({basis}) {gain}; {later} from the second epoch on{even}."
