"""Finds out why a proof has ended.

In: the result of `advisor fix`.  Out: a `Why`; `advisor.prove.ends.early_ends` puts it into words.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from advisor.model.outcome import Report
from advisor.model.untried import UntriedFix, Why
from advisor.prove.ends.script_commands import ScriptCommands
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.search.loop_result import LoopResult
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER

_ENDED_EARLY = frozenset({Why.NO_TIME, Why.TRIALS_OUT_OF_TIME, Why.SCRIPT_OUT_OF_TIME, Why.PROCESS_ENDED, Why.TOO_MANY})
_MOST_USEFUL = (
    Why.NO_TIME, Why.TRIALS_OUT_OF_TIME, Why.SCRIPT_OUT_OF_TIME, Why.UNWRITABLE, Why.NEEDS_PERMISSION, Why.NEEDS_REQUEST,
    Why.NOT_REQUESTED, Why.TOO_MANY, Why.PROCESS_ENDED, Why.RUN_TOO_SHORT, Why.TRIAL_FAILED, Why.CANNOT_REPLAY, Why.CONFLICT,
    Why.SMALL_GAIN, Why.FAST_ENOUGH, Why.CANNOT_REWRITE, Why.ADVICE_ONLY, Why.NOT_LEGAL, Why.MAKES_NOTHING_FASTER,
)  # fmt: skip
"""Reasons for which changes are not tried, in the order in which the next step names them: what a command can still try first."""


@dataclass(frozen=True, slots=True)
class End:
    """The end of a proof."""

    report: Report
    loop: LoopResult
    whole: EndToEnd | None
    is_applied: bool
    """Whether changes are proved and are, or may be, written."""
    untried: Sequence[UntriedFix]
    commands: ScriptCommands


def why_of(end: End) -> Why | None:
    """Return why a proof has ended; None if everything was tried and what is proved is written."""
    loop, whole = end.loop, end.whole
    if loop.is_interrupted or loop.why is Why.SCRIPT_UNSTABLE:
        return loop.why
    if loop.kept:
        return _why_of_kept(end)
    if loop.why in _ENDED_EARLY:
        return loop.why
    if whole is not None and whole.is_out_of_time:
        return Why.SCRIPT_OUT_OF_TIME
    if undecided_rules(loop):
        return Why.DATA_UNDECIDED
    untried = _most_useful(end.untried)
    if any(attempt.trial.verdict != REFUSED for attempt in loop.attempts):
        return untried if untried in _MOST_USEFUL[: _MOST_USEFUL.index(Why.CONFLICT)] else _why_none_kept(loop)
    return untried or _why_nothing(end)


def _why_of_kept(end: End) -> Why | None:
    """Why the proof has ended if changes are faster, at least on the pipeline alone."""
    whole = end.whole
    if whole is not None and whole.is_out_of_time:
        return Why.SCRIPT_OUT_OF_TIME
    if whole is not None and whole.verdict == BROKEN:
        return Why.OTHER_TEXT if whole.is_other_text else Why.SCRIPT_FAILS
    is_undecided = whole is not None and whole.is_undecided
    if whole is not None and whole.verdict in (SAME, SLOWER) and not is_undecided:
        return Why.TRAINING_NO_GAIN
    if not end.is_applied:
        return Why.CANNOT_REWRITE
    if end.commands.is_to_be_written:
        return _most_useful(end.untried)
    if not end.commands.is_whole_script:
        return Why.PIPELINE_ALONE
    if is_undecided:
        return Why.TRAINING_UNDECIDED
    return Why.PROVED if whole is not None and whole.verdict == FASTER else Why.TRAINING_UNKNOWN


def _why_none_kept(loop: LoopResult) -> Why:
    """Why the proof has ended if changes were measured and none is kept."""
    verdicts = {attempt.trial.verdict for attempt in loop.attempts} - {REFUSED}
    return Why.SCRIPT_FAILS if verdicts == {BROKEN} else Why.NONE_FASTER


def _why_nothing(end: End) -> Why:
    """Why nothing was proposed."""
    verdict, recording = end.report.analysis.verdict, end.report.analysis.recording
    if verdict.level == "unknown":
        has_pipeline = bool(end.report.analysis.pipelines) or (recording is not None and bool(recording.consumers))
        return Why.SCRIPT_ENDED if has_pipeline else Why.NO_PIPELINE
    if end.commands.only:
        return Why.NOT_REQUESTED
    if verdict.is_input_bound:
        return Why.NOT_LEGAL if end.report.notes else Why.NO_RULE
    return Why.NOTHING_PROPOSED


def _most_useful(untried: Sequence[UntriedFix]) -> Why | None:
    reasons = {entry.why for entry in untried}
    return next((why for why in _MOST_USEFUL if why in reasons), None)


def undecided_rules(loop: LoopResult) -> list[str]:
    """Return the rules of changes that are faster and whose effect on the data is undecided."""
    return [
        attempt.finding.rule
        for attempt in loop.attempts
        if attempt.trial.verdict == FASTER and attempt.trial.is_undecided and not attempt.is_kept
    ]
