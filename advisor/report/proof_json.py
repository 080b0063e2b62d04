"""Fills the objects of `proof_format` from the model: the outlook, the fixes and their proof."""

from __future__ import annotations

from collections.abc import Iterable

from advisor.model.finding import RunGain
from advisor.model.outcome import Comparison, FixOutcome, Gain, Interval
from advisor.model.outlook import CombinedPlan, Outlook
from advisor.model.paired_test import PairedTest
from advisor.model.proof_result import FixedNumbers, Proof, Side
from advisor.model.untried import MADE_BY_HAND
from advisor.report import proof_format as v1
from advisor.report.json_format import milliseconds
from advisor.report.pipeline_format import Site


def speedup(measured: Interval | None) -> v1.Speedup | None:
    """Convert a measured ratio of times."""
    return None if measured is None else v1.Speedup(measured.value, measured.low, measured.high)


def paired_test(test: PairedTest | None) -> v1.PairedTest | None:
    """Convert the end of a test."""
    if test is None:
        return None
    return v1.PairedTest.of(test, median=None if test.median is None else v1.Ratio(*test.median))


def outlook(potential: Outlook) -> v1.Outlook:
    """Convert the potential of the main pipeline."""
    return v1.Outlook.of(
        potential,
        demands=[v1.ServiceDemand.of(demand) for demand in potential.demands],
        limits=[v1.Limit.of(limit) for limit in potential.limits],
        plan=potential.plan and _plan(potential.plan),
        horizon=v1.Horizon.maybe(potential.horizon),
        headroom=potential.headroom and v1.Headroom.of(potential.headroom, limit=v1.Limit.of(potential.headroom.limit)),
        shared_cores=v1.SharedCores.maybe(potential.shared_cores),
    )


def run_gain(gain: RunGain | None) -> v1.RunGain | None:
    """Convert the effect of a change on a whole run."""
    if gain is None:
        return None
    return v1.RunGain.of(gain, predicted_speedup=v1.Ratio.maybe(gain.prediction), saved_ms=milliseconds(gain.saved_ns))


def _plan(plan: CombinedPlan) -> v1.CombinedPlan:
    return v1.CombinedPlan.of(
        plan,
        predicted_speedup=v1.Ratio.of(plan.prediction),
        limit=v1.Limit.of(plan.limit),
        over_run=run_gain(plan.over_run),
    )


def fix(outcome: FixOutcome) -> v1.Fix:
    """Convert the result of proving one fix."""
    return v1.Fix.of(
        outcome,
        site=Site.maybe(outcome.site),
        predicted_speedup=v1.Ratio.maybe(outcome.predicted),
        measured=speedup(outcome.measured),
        safety_seen="undecided" if outcome.is_undecided else outcome.safety_seen,
        applied=outcome.is_applied,
    )


def proof(result: Proof, fixes: Iterable[FixOutcome]) -> v1.Proof:
    """Convert the proof. Its `fixes` hold, in the same order, the fields that the report's own `fixes` lack."""
    return v1.Proof.of(
        result,
        before=_side(result.before),
        after=_side(result.after),
        diff=result.diff or None,
        phases=[v1.Phase.of(phase) for phase in result.phases],
        test=paired_test(result.test),
        next_why=result.next and result.next.why,
        next_step=result.next and result.next.sentence,
        next_command=result.next and result.next.command,
        untried=[
            v1.UntriedFix.of(entry, site=Site.maybe(entry.site), by_hand=entry.why in MADE_BY_HAND)
            for entry in result.untried
        ],
        fixed_numbers=result.fixed_numbers and _fixed_numbers(result.fixed_numbers),
        fixes=[
            v1.FixDetails.of(
                fix,
                memory_bytes=v1.BeforeAfterBytes(fix.memory_before_bytes, fix.memory_after_bytes),
                end_to_end=fix.is_end_to_end,
                pipeline=_gain(fix.pipeline),
                step=_gain(fix.step),
                of_step=fix.is_of_step,
                loss=v1.LossDeviation.maybe(fix.loss),
            )
            for fix in fixes
        ],
    )


def _fixed_numbers(numbers: FixedNumbers) -> v1.FixedNumbers:
    speed = None if numbers.speed is None else v1.Speedup(*numbers.speed)
    return v1.FixedNumbers.of(numbers, speed=speed, chosen=numbers.is_chosen)


def _gain(gain: Gain) -> v1.Gain:
    return v1.Gain(v1.Ratio.maybe(gain.predicted), v1.Ratio.maybe(gain.measured))


def _side(side: Side) -> v1.ProofSide:
    return v1.ProofSide.of(
        side,
        step_time_ms=None if side.step_ns is None else milliseconds(side.step_ns),
        input_wait_share=side.wait_share,
    )


def comparison(measured: Comparison) -> v1.Comparison:
    """Convert the measurements before and after the change."""
    gain = measured.pipeline_speedup
    return v1.Comparison(
        pipeline=v1.Throughput(measured.pipeline_before, measured.pipeline_after, gain.value, gain.low, gain.high),
        end_to_end=v1.Ratio.maybe(measured.end_to_end),
        input_wait_share=v1.BeforeAfterShare(measured.wait_share_before, measured.wait_share_after),
    )
