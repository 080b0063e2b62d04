"""The speed of two texts of a script, from alternating runs or from alternating turns of their pipelines.

In: measurements, and recordings of one run of each text.  Out: `ChangeSpeed`; the steps before both texts are in a steady state.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.model.calls import Call
from advisor.model.change_proof import NOT_MEASURED, UNKNOWN
from advisor.model.outcome import LossDeviation, LossPoint
from advisor.model.paired_test import PairedTest
from advisor.model.proof_result import Side
from advisor.model.recording import Recording
from advisor.prove.measure.compare_runs import verdict_of
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.losses import loss_curve, loss_deviation
from advisor.prove.measure.run_steps import RunSteps, median_of
from advisor.prove.measure.steady_state import UnknownEpoch, steps_to_fill_caches
from advisor.prove.texts.change_verdict import SpeedFacts, judge_speed
from advisor.prove.texts.training_loops import main_consumer
from advisor.prove.trial.ab_benchmark import Measurement

_FILLED = ("cache", "snapshot")


@dataclass(frozen=True, slots=True)
class ChangeSpeed:
    """A measurement of both texts."""

    facts: SpeedFacts
    turns: int = 0
    """Pairs of runs, or of turns."""
    before: Side = NOT_MEASURED
    after: Side = NOT_MEASURED
    losses: tuple[LossPoint, ...] = ()
    """As in `ChangeProof`."""
    loss: LossDeviation | None = None
    test: PairedTest | None = None


def not_measured(why: str) -> ChangeSpeed:
    """Return that nothing is known about the speed, for a reason in one sentence."""
    return ChangeSpeed(SpeedFacts(UNKNOWN, None, why))


def speed_of_scripts(whole: EndToEnd) -> ChangeSpeed:
    """Return what alternating runs of both texts say."""
    sizes = [batch_size(runs[0]) if runs else None for runs in (whole.before, whole.after)]
    facts = judge_speed(verdict_of(whole), whole.speedup, whole.note)
    if None not in sizes and sizes[0] != sizes[1]:
        rows = [runs[0].rows for runs in (whole.before, whole.after)]
        why = f"A step takes {rows[0]} elements without the change and {rows[1]} with it, so step times cannot be compared."
        facts = SpeedFacts(UNKNOWN, None, why)
    turns = min(len(whole.before), len(whole.after))
    test = None if facts.speedup is None else whole.test
    return ChangeSpeed(facts, turns, _figures(whole.before), _figures(whole.after), test=test)


def with_losses(speed: ChangeSpeed, whole: EndToEnd) -> ChangeSpeed:
    """Return the measurement with the losses of its runs, whose trainings read the same elements."""
    return replace(speed, losses=loss_curve(whole.before, whole.after), loss=loss_deviation(whole.before, whole.after))


def batch_size(run: RunSteps) -> int | None:
    """Return the elements of a batch; None if unknown. A step of Keras may be several batches."""
    return None if run.rows is None else run.rows // run.batches


def speed_of_pipelines(result: Measurement, peaks: tuple[int | None, int | None]) -> ChangeSpeed:
    """Return what alternating turns of both pipelines say.

    Args:
        result: The measurement.
        peaks: Peak memory of both processes in bytes; None if unknown.
    """
    facts = judge_speed(result.verdict, result.speedup, result.note)
    before = Side(elements_per_s=result.rate_before, peak_rss_bytes=peaks[0])
    return ChangeSpeed(facts, result.turns, before, Side(elements_per_s=result.rate_after, peak_rss_bytes=peaks[1]))


def consumed_call(recording: Recording) -> Call | None:
    """Return the call whose dataset the training consumes; None if it is unknown."""
    main = main_consumer(recording)
    return next((call for call in recording.calls if main is not None and call.id == main.call_id), None)


def steps_until_steady(recordings: Sequence[Recording], epoch_elements: int | None) -> int | None:
    """Return the number of steps until the caches of both texts are full; None if there are none.

    Args:
        recordings: A run of each text.
        epoch_elements: Elements of an epoch of the training's dataset, if they are known.

    Raises:
        UnknownEpoch: That is unknown, and one text has more caches than the other.
    """
    counts: list[int] = []
    is_unknown = False
    for recording in recordings:
        call = consumed_call(recording)
        if call is None:
            continue
        try:
            per_call = recording.keras.get("steps_per_execution")
            steps = steps_to_fill_caches(recording.calls, call, epoch_elements, per_call)
        except UnknownEpoch:
            is_unknown = True
            continue
        counts += [] if steps is None else [steps]
    if is_unknown and len({_num_caches(recording) for recording in recordings}) > 1:
        raise UnknownEpoch
    return max(counts, default=None)


def _num_caches(recording: Recording) -> int:
    return sum(call.method in _FILLED for call in recording.calls)


def _figures(runs: Sequence[RunSteps]) -> Side:
    peak = median_of(runs, lambda run: run.peak_rss_bytes)
    return Side(
        step_ns=median_of(runs, lambda run: run.step_ns),
        wait_share=median_of(runs, lambda run: run.wait_share),
        peak_rss_bytes=None if peak is None else int(peak),
    )
