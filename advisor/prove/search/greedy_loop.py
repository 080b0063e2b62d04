"""The greedy loop: apply the fix with the best prediction, measure it, keep or drop it, analyse again.

In: a proof session, an initial report, and a function that proposes fixes for a report.  Out: `LoopResult`: every attempt, and
the kept fixes.

Gains do not add up: a cache makes the parallel map above it pointless. So every fix is measured on top of those already kept, and
the next proposals come from an analysis of the pipeline with those fixes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from advisor.capture.request import RESULT, Progress
from advisor.host.calibration.proof import MAX_ATTEMPTS, MIN_GAIN, OVERTIME_GAIN
from advisor.model.calls import Call
from advisor.model.edits import Edit, StepEdit
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Finding, Safety
from advisor.model.outcome import Report
from advisor.model.termination import is_interrupt
from advisor.model.units import format_share
from advisor.model.untried import Why
from advisor.prove.search.loop_result import (
    Attempt,
    LoopInterrupted,
    LoopResult,
    edits_of,
    first_trial,
    interrupted,
    safety_of,
)
from advisor.prove.search.result_lines import line_of_trial
from advisor.prove.search.search_limits import NO_LIMITS, SearchLimits
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, Trial
from advisor.rewrite.fix_plan import is_untuning


class Session(Protocol):
    """The part of `advisor.prove.session.proof_session.ProofSession` that the loop uses."""

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
    ) -> Trial:
        """Measure the pipeline with `current` against that with `current + candidate`, and compare the latter with the original.

        Args:
            current: The edits kept so far.
            candidate: The edits to try.
            claimed: The safety level that all edits together claim.
            predicted_memory_bytes: Predicted additional memory of the candidate; None if it is unknown.
        """
        ...

    def profile(self, edits: tuple[Edit, ...]) -> Path:
        """Profile the edited pipeline alone and return its run folder."""
        ...

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original pipeline against all edits."""
        ...


@dataclass(frozen=True, slots=True)
class _Stop:
    """Why the search has ended; an empty sentence if everything was tried."""

    sentence: str = ""
    why: Why | None = None


@dataclass(slots=True)
class _State:
    calls: Mapping[str, Call]
    is_asked: Callable[[Finding], bool]
    clock: Callable[[], float]
    longest_trial_s: float
    limits: SearchLimits
    kept: list[Finding] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    tried: set[tuple[Edit | StepEdit, ...]] = field(default_factory=set)
    proposed: Sequence[Finding] = ()
    """The latest proposals."""
    latest: Trial | None = None
    """The trial of the latest kept fix."""

    def is_worth(self, finding: Finding) -> bool:
        """Whether the fix is to be tried on top of those already kept."""
        if self.latest is None or self.is_asked(finding):
            return True
        gain = self.limits.gain_left(self.latest, finding)
        return gain is None or gain >= 1 + MIN_GAIN.value

    @property
    def edits(self) -> tuple[Edit, ...]:
        return edits_of(self.kept, self.calls)

    @property
    def expected_s(self) -> float:
        """Seconds for another trial and, if it becomes necessary, for measuring all changes together."""
        return self.longest_trial_s * (2 if self.kept and self.limits.needs_total(self.edits) else 1)


def prove_fixes(
    session: Session,
    report: Report,
    calls: Mapping[str, Call],
    propose: Callable[[Report, Sequence[Finding]], Sequence[Finding]],
    analyse: Callable[[Path], Report],
    deadline: float,
    on_progress: Callable[[Progress], None],
    limits: SearchLimits = NO_LIMITS,
    is_asked: Callable[[Finding], bool] = lambda finding: False,
    least_trial_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> LoopResult:
    """Try the proposed fixes, best first, until there are no new ones or the deadline has passed.

    Args:
        session: Measures fixes on the held script.
        report: The initial analysis.
        calls: Calls of the first run, to whose ids all edits refer.
        propose: Returns the findings to try, given a report and the kept findings.
        analyse: Analyses a run folder of the session.
        deadline: A time of `clock`.
        on_progress: Called with progress messages.
        limits: When the search ends before the deadline.
        is_asked: Whether the user requested the fix, so that it is kept even if its effect on the data is undecided.
        least_trial_s: Minimum seconds of a trial. If 0, a trial may start until the deadline and is then finished. Otherwise it
            starts only if a trial as long as the longest so far (without what later ones need not do again), plus measuring all
            changes together if some are kept, ends before the deadline; the session stops whatever still runs at the deadline
            and raises OutOfTime. A change with a large predicted gain is also tried until `limits.overtime()`.
        clock: Source of the time in seconds.

    Returns:
        All attempts and the kept fixes.

    Raises:
        LoopInterrupted: Ctrl-C.
    """
    state = _State(calls, is_asked, clock, least_trial_s, limits)
    try:
        stopped = _search(session, report, state, propose, analyse, deadline, on_progress)
        return _conclude(session, state, stopped, on_progress)
    except KeyboardInterrupt as error:
        if not is_interrupt(error):
            raise
        kept = tuple(state.kept)
        total = first_trial(state.attempts) if len(kept) == 1 else None
        measured = [attempt.finding for attempt in state.attempts]
        untried = tuple(finding for finding in state.proposed if finding not in measured)
        result = LoopResult(tuple(state.attempts), kept, total, untried=untried)
        missing = "; ".join(finding.title for finding in untried)
        when = f"before all changes were tried{f' (not measured: {missing})' if missing else ''}"
        raise LoopInterrupted(interrupted(result, when)) from error


def _search(
    session: Session,
    report: Report,
    state: _State,
    propose: Callable[[Report, Sequence[Finding]], Sequence[Finding]],
    analyse: Callable[[Path], Report],
    deadline: float,
    on_progress: Callable[[Progress], None],
) -> _Stop:
    """Try fixes, and return why the search has ended before everything was tried."""
    clock, limits = state.clock, state.limits
    # Last, as their proof takes runs of the whole script that the other changes need; sorting keeps the order of the others.
    first = sorted(propose(report, ()), key=_is_untuning)
    proposed: Sequence[Finding] = first
    state.proposed = first
    stopped = _Stop()
    while finding := _next(proposed, state):
        if clock() + state.expected_s >= deadline and (late := _in_overtime(proposed, state)) is not None:
            finding = late
        elif clock() + state.expected_s >= deadline:
            stopped = _Stop(
                f"The time for trials was used up; not tried: {_titles(proposed, state)}. {limits.more_time}",
                Why.TRIALS_OUT_OF_TIME,
            )
            break
        if len(state.attempts) >= MAX_ATTEMPTS.value:
            stopped = _Stop(
                f"The limit of {MAX_ATTEMPTS.value} fixes was reached; not tried: {_titles(proposed, state)}.",
                Why.TOO_MANY,
            )
            break
        try:
            attempt = _try(session, finding, state, on_progress)
        except ScriptFailed:
            raise
        except OutOfTime:
            unfinished = Trial(REFUSED, note="The budget was used up during the trial.")
            state.attempts.append(Attempt(finding, unfinished, is_kept=False))
            others = _titles(proposed, state)
            stopped = _Stop(
                f"The budget was used up during a trial{f'; not tried: {others}' if others else ''}.",
                Why.TRIALS_OUT_OF_TIME,
            )
            break
        except AdvisorError as error:
            state.attempts.append(Attempt(finding, Trial(REFUSED, note=str(error)), is_kept=False))
            stopped = _Stop(str(error), Why.PROCESS_ENDED)
            break
        if not attempt.is_kept:
            continue
        state.latest = attempt.trial
        if limits.is_enough(attempt.trial):
            stopped = _Stop(
                "The pipeline alone is now so much faster than the training that further changes would gain nothing.",
                Why.FAST_ENOUGH,
            )
            break
        if clock() + state.expected_s >= deadline and _in_overtime(proposed, state) is None:
            stopped = _Stop(
                f"The time for trials was used up before the search for further changes. {limits.more_time}",
                Why.TRIALS_OUT_OF_TIME,
            )
            break
        on_progress(Progress("analysing", text="the changed pipeline"))
        try:
            proposed = state.proposed = propose(analyse(session.profile(state.edits)), tuple(state.kept))
        except AdvisorError as error:
            stopped = _Stop(f"The changed pipeline could not be analysed: {error}", Why.PROCESS_ENDED)
            break
    if not stopped.sentence and (left := _untried(proposed, state)):
        titles = "; ".join(finding.title for finding in left)
        gain = format_share(MIN_GAIN.value)
        sentence = f"Not tried: {titles}, as a training step could gain less than {gain} more. {limits.try_small}"
        stopped = _Stop(sentence.strip(), Why.SMALL_GAIN)
    beside = [finding.title for finding in _untried(first, state) if _is_untuning(finding)]
    if state.kept and beside:
        titles = "; ".join(beside)
        sentence = f"Not tried beside other changes: {titles}. Run `advisor fix` again when these are written."
        stopped = _Stop(_joined(stopped.sentence, sentence), stopped.why)
    return stopped


def _is_untuning(finding: Finding) -> bool:
    return finding.fix is not None and is_untuning(finding.fix)


def _next(proposed: Sequence[Finding], state: _State) -> Finding | None:
    return next((finding for finding in _untried(proposed, state) if state.is_worth(finding)), None)


def _in_overtime(proposed: Sequence[Finding], state: _State) -> Finding | None:
    """The first change whose predicted gain is so large that its trial may begin although the time for trials is used up."""
    large = (finding for finding in _untried(proposed, state) if finding.gain >= OVERTIME_GAIN.value)
    finding = next(filter(state.is_worth, large), None)
    if finding is None or state.clock() + state.expected_s >= state.limits.overtime():
        return None
    return finding


def _untried(proposed: Sequence[Finding], state: _State) -> list[Finding]:
    return [finding for finding in proposed if finding.fix and finding.fix.changes not in state.tried]


def _titles(proposed: Sequence[Finding], state: _State) -> str:
    return "; ".join(finding.title for finding in _untried(proposed, state))


def _try(session: Session, finding: Finding, state: _State, on_progress: Callable[[Progress], None]) -> Attempt:
    assert finding.fix is not None
    state.tried.add(finding.fix.changes)
    on_progress(Progress("proving", done=len(state.attempts) + 1, text=finding.title))
    claimed = safety_of([*state.kept, finding])
    began = state.clock()
    trial = session.try_fix(state.edits, finding.fix.edits, claimed, finding.memory_bytes)
    if state.longest_trial_s:
        state.longest_trial_s = max(state.longest_trial_s, state.clock() - began - trial.original_s)
    attempt = judged(finding, trial, state.is_asked)
    state.attempts.append(attempt)
    if attempt.is_kept:
        state.kept.append(finding)
    on_progress(Progress(RESULT, text=line_of_trial(finding, attempt.trial, attempt.is_kept)))
    return attempt


def judged(finding: Finding, trial: Trial, is_asked: Callable[[Finding], bool], is_end_to_end: bool = False) -> Attempt:
    """Return the attempt; it is kept if it is faster, and its effect on the data is decided or the user requested it.

    Args:
        finding: The finding whose fix was tried.
        trial: What the trial measured.
        is_asked: Whether the user requested a fix by the name of its rule.
        is_end_to_end: Whether the trial ran the whole script, not the pipeline alone.
    """
    if trial.is_undecided and trial.verdict == FASTER and not is_asked(finding):
        note = f"{trial.note} Not applied automatically: --only {finding.rule} applies it.".strip()
        return Attempt(finding, replace(trial, note=note), is_kept=False, is_end_to_end=is_end_to_end)
    return Attempt(finding, trial, trial.verdict == FASTER, is_end_to_end)


def _conclude(session: Session, state: _State, stop: _Stop, on_progress: Callable[[Progress], None]) -> LoopResult:
    """Measure all kept fixes together against the original; while that is no proof, drop the latest."""
    untried = tuple(_untried(state.proposed, state)) if stop.why is not None else ()
    reverted = ""
    total: Trial | None = None
    while state.kept:
        if len(state.kept) == 1 and state.attempts and (alone := first_trial(state.attempts)) is not None:
            total = alone  # already measured against the original
            break
        if not state.limits.needs_total(state.edits):
            break  # the whole script measures them; their elements were compared in the latest trial that was kept
        on_progress(Progress("proving", text="all changes together"))
        try:
            total = session.total(state.edits, safety_of(state.kept))
        except OutOfTime:
            total, problem = None, "The budget was used up before all changes could be measured together."
            stop = _Stop(_joined(stop.sentence, problem), Why.TRIALS_OUT_OF_TIME)
            break
        except AdvisorError as error:
            total, stop = None, _Stop(_joined(stop.sentence, str(error)), Why.PROCESS_ENDED)
            break
        if total.verdict == FASTER and (not total.is_undecided or all(map(state.is_asked, state.kept))):
            break
        dropped = state.kept.pop()
        reverted = _joined(reverted, f"{dropped.title} was reverted: {_why_not(total)}.")
        state.attempts = [
            replace(attempt, is_kept=attempt.is_kept and attempt.finding is not dropped) for attempt in state.attempts
        ]
        total = None
    sentence = _joined(stop.sentence, reverted)
    return LoopResult(tuple(state.attempts), tuple(state.kept), total, sentence, stop.why, untried)


def _joined(*sentences: str) -> str:
    return " ".join(filter(None, sentences))


def _why_not(total: Trial) -> str:
    if total.verdict == BROKEN:
        return "with it the elements differ from those of the script"
    return total.note.rstrip(".") or "with it all changes together are not proved faster than the unchanged script"
