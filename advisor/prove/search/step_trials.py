"""Judges changes of the training step, which no dataset can be made again with: only the whole script can prove them.

In: findings, and the alternating runs of the script without and with one of them.  Out: `Attempt`s for the loop's result, and the
report in which a hint has become a finding, or a rejected change with the reason.

A change of the step has to leave the data alone, which is checked on the recorded calls of the runs. It may move the loss a
little, which is reported, but not by more than other arithmetic explains.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

from advisor.host.calibration.proof import LOSS_BEYOND_ROUNDING
from advisor.model.edits import SetBatchSize
from advisor.model.finding import Finding, Rejected
from advisor.model.outcome import LossDeviation, Report
from advisor.model.units import format_range
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.losses import loss_deviation
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, Trial

_FAILED = "before anything was measured: "
"""What precedes the user's error in the sentence on a script that failed."""
_UNTOUCHED = "The training reads the dataset of the same calls, with the same element spec; elements were not compared."
_UNKNOWN_LOSS = "The loss was not compared, as the runs do not show it."


def to_be_tried(findings: Sequence[Finding]) -> tuple[Attempt, ...]:
    """Return attempts that only the whole script can judge, for the changes of the step among the findings."""
    waiting = Trial(REFUSED, note="The whole script was not measured with it.", is_replayable=False)
    return tuple(Attempt(finding, waiting, is_kept=False) for finding in findings if finding.is_of_step)


def attempt_of(attempt: Attempt, alone: EndToEnd) -> Attempt:
    """Return the attempt with what the runs have shown.

    Args:
        attempt: The attempt, not measured yet.
        alone: The runs without and with this change.
    """
    fix = attempt.finding.fix
    assert fix is not None
    has_other_batches = any(isinstance(edit, SetBatchSize) for edit in fix.step_edits)
    deviation = None if has_other_batches else loss_deviation(alone.before, alone.after)
    verdict, notes = alone.verdict, [alone.note]
    problem = _problem(alone, has_other_batches) or _other_loss(deviation)
    if problem:
        verdict, notes = BROKEN, [problem]
    elif verdict != BROKEN:
        notes += ["The batches are larger, their rows untouched." if has_other_batches else _UNTOUCHED]
        notes += [_loss_sentence(deviation, has_other_batches)]
    trial = Trial(
        verdict,
        None if verdict == BROKEN else alone.speedup,
        turns=min(len(alone.before), len(alone.after)),
        safety_seen=None if verdict == BROKEN else fix.safety,
        note=" ".join(filter(None, notes)),
        is_replayable=False,
        loss=deviation,
    )
    return Attempt(attempt.finding, trial, verdict == FASTER, is_end_to_end=True)


def with_results(report: Report, loop: LoopResult) -> Report:
    """Return the report of a proof: what is proved is a finding, what was not is rejected with the reason."""
    tried = {
        attempt.finding.fix.changes: attempt
        for attempt in loop.attempts
        if attempt.finding.fix is not None and attempt.finding.is_of_step and attempt.trial.verdict != REFUSED
    }
    if not tried:
        return report
    attempts = {hint: tried.get(hint.fix.changes) if hint.fix is not None else None for hint in report.hints}
    proved = tuple(hint for hint, attempt in attempts.items() if attempt is not None and attempt.is_kept)
    rejected = tuple(
        Rejected(hint.rule, hint.title, _reason(attempt.trial))
        for hint, attempt in attempts.items()
        if attempt is not None and not attempt.is_kept
    )
    return replace(
        report,
        findings=(*report.findings, *proved),
        hints=tuple(hint for hint, attempt in attempts.items() if attempt is None),
        rejected=(*report.rejected, *rejected),
    )


def _reason(trial: Trial) -> str:
    """Why a change that was tried is not proposed, as a clause."""
    if trial.verdict == BROKEN:
        error = trial.note.rpartition(_FAILED)[2]
        return f"the script fails with it: {error.rstrip(chr(46))}" if error != trial.note else trial.note.rstrip(".")
    if trial.speedup is None:
        return "it could not be measured"
    interval = trial.speedup
    return f"measured on this machine: {format_range(interval.value, interval.low, interval.high)}"


def _problem(alone: EndToEnd, has_other_batches: bool) -> str:
    """What the runs with the change show to be wrong, as a sentence; empty if nothing."""
    if not alone.before or not alone.after:
        return ""
    old, new = alone.before[0].data, alone.after[0].data
    if has_other_batches:
        old, new = (tuple((method, "") for method, _ in data) for data in (old, new))
    if old != new:
        other = next((pair for pair in zip(old, new, strict=False) if pair[0] != pair[1]), None)
        if other is None:
            return "With the change, the training's dataset is made by other calls."
        (method, was), (_, now) = other
        return f"With the change, {method} of the training's dataset emits {now} instead of {was}."
    is_same_loss = len({run.loss_source for run in (*alone.before, *alone.after)}) == 1
    if is_same_loss and any(not math.isfinite(loss) for run in alone.after for _, loss in run.losses):
        is_new = all(math.isfinite(loss) for run in alone.before for _, loss in run.losses)
        return "With the change, the loss is not a finite number." if is_new else ""
    return ""


def _other_loss(deviation: LossDeviation | None) -> str:
    """Say that the change moves the loss by more than other arithmetic explains, as a sentence; empty if it does not.

    A script whose unchanged runs differ widely may differ as widely with the change, since medians of the runs are compared.
    """
    if deviation is None or deviation.relative - (deviation.between_runs or 0.0) <= LOSS_BEYOND_ROUNDING.value:
        return ""
    return f"{deviation.sentence.rstrip('.')}, which is more than other arithmetic explains."


def _loss_sentence(deviation: LossDeviation | None, has_other_batches: bool) -> str:
    if has_other_batches:
        return "The losses of different batches were not compared."
    if deviation is None:
        return _UNKNOWN_LOSS
    return deviation.sentence
