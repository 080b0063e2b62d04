"""The greedy loop: apply the fix with the best prediction, measure it, keep or drop it, analyse again.

In: a proof session, a report to begin with, and what proposes fixes from a report.  Out: `LoopResult`: every attempt, and the
fixes that are kept.

Gains do not add: a cache makes the parallel map above it pointless. So no fix is judged by what it gave beside others, each is
measured on top of those that are kept, and what is proposed next is read off the pipeline as it then is.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from advisor.capture.request import Progress
from advisor.graph import MIN_STEPS
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Edit, Finding, Safety
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis
from advisor.model.recording import Call
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, Trial
from advisor.rewrite.fix_plan import combine

SAFETY_ORDER = tuple(Safety)
MAX_ATTEMPTS = 30
"""No script needs as many; a rule that proposes something new each time must not keep the loop going."""


MIN_GAIN = 0.05
"""What the rules call worth having (`Rule.min_speedup`)."""


class Session(Protocol):
    """What the loop needs of `advisor.prove.proof_session.ProofSession`."""

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
    ) -> Trial:
        """Measure `current` against `current + candidate`; compare the latter's elements with the original's."""
        ...

    def profile(self, edits: tuple[Edit, ...]) -> Path:
        """A run folder of the edited pipeline alone."""
        ...

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original against all edits."""
        ...


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fix that was tried."""

    finding: Finding
    trial: Trial
    is_kept: bool
    is_end_to_end: bool = False
    """Tried by running the whole script, for its dataset could not be replayed."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """What the loop tried and what it keeps."""

    attempts: tuple[Attempt, ...] = ()
    kept: tuple[Finding, ...] = ()
    """In the order in which they were applied."""
    total: Trial | None = None
    """The original against all that is kept; None: nothing is kept."""
    stopped_because: str = ""
    """One sentence; empty: nothing more was found."""


@dataclass(slots=True)
class _State:
    calls: Mapping[str, Call]
    is_asked: Callable[[Finding], bool]
    clock: Callable[[], float]
    longest_trial_s: float
    kept: list[Finding] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    tried: set[tuple[Edit, ...]] = field(default_factory=set)

    @property
    def edits(self) -> tuple[Edit, ...]:
        return edits_of(self.kept, self.calls)

    @property
    def expected_s(self) -> float:
        """What another trial takes, and the measurement of all changes together that it makes necessary."""
        return self.longest_trial_s * (2 if self.kept else 1)


def edits_of(findings: Sequence[Finding], calls: Mapping[str, Call]) -> tuple[Edit, ...]:
    """Their edits, in an order in which all hold. Raises ValueError for findings whose fixes conflict."""
    return combine([finding.fix for finding in findings if finding.fix is not None], calls)


def safety_of(findings: Sequence[Finding]) -> Safety:
    """What all of them together do to the data: the most harmful of what each does."""
    levels = [finding.fix.safety for finding in findings if finding.fix is not None]
    return max(levels, key=SAFETY_ORDER.index, default=Safety.EXACT)


def prove_fixes(
    session: Session,
    report: Report,
    calls: Mapping[str, Call],
    propose: Callable[[Report, Sequence[Finding]], Sequence[Finding]],
    analyse: Callable[[Path], Report],
    deadline: float,
    on_progress: Callable[[Progress], None],
    is_enough: Callable[[Trial], bool] = lambda trial: False,
    is_asked: Callable[[Finding], bool] = lambda finding: False,
    least_trial_s: float = 0.0,
    clock: Callable[[], float] = time.monotonic,
) -> LoopResult:
    """Try what `propose(report, kept)` gives, best first, until nothing new comes or the deadline has passed.

    `calls` are those of the first run, which all edits speak of; `analyse` reads a run folder of the session. `deadline` is an
    instant of `clock`. `is_enough` is asked after each fix that is kept: whether more speed could still be of use. `is_asked`:
    whether the user asked for this fix, so that it is kept although the elements could not decide what it does to the data.

    `least_trial_s`: what a trial takes at least; 0: a trial may begin until the deadline and is then finished. Otherwise a trial
    begins only if one as long as the longest so far ends by the deadline, and, where something is kept already, the measurement
    of all changes together too; what still runs at the deadline is stopped by the session, which raises OutOfTime.
    """
    state = _State(calls, is_asked, clock, least_trial_s)
    proposed = propose(report, ())
    stopped = ""
    while finding := _next(proposed, state):
        if clock() + state.expected_s >= deadline:
            stopped = f"The budget was used up; not tried: {_titles(proposed, state)}."
            break
        if len(state.attempts) >= MAX_ATTEMPTS:
            stopped = f"{MAX_ATTEMPTS} fixes were tried; not tried: {_titles(proposed, state)}."
            break
        try:
            attempt = _try(session, finding, state, on_progress)
        except ScriptFailed:
            raise
        except OutOfTime:
            cut_off = Trial(REFUSED, note="The budget was used up while it was tried.")
            state.attempts.append(Attempt(finding, cut_off, is_kept=False))
            others = _titles(proposed, state)
            stopped = f"The budget was used up while a change was tried{f'; not tried: {others}' if others else ''}."
            break
        except AdvisorError as error:
            if not state.attempts:
                raise
            stopped = str(error)
            break
        if not attempt.is_kept:
            continue
        if is_enough(attempt.trial):
            stopped = (
                "The pipeline alone is now so much faster than the training takes elements that more gains nothing."
            )
            break
        if clock() + state.expected_s >= deadline:
            stopped = "The budget was used up; whether more is to be gained was not looked at."
            break
        on_progress(Progress("analysing", text="the pipeline as it is now"))
        try:
            proposed = propose(analyse(session.profile(state.edits)), tuple(state.kept))
        except AdvisorError as error:
            stopped = f"The pipeline could not be analysed again with what is kept: {error}"
            break
    return _conclude(session, state, stopped, on_progress)


def _next(proposed: Sequence[Finding], state: _State) -> Finding | None:
    return next((finding for finding in proposed if finding.fix and finding.fix.edits not in state.tried), None)


def _titles(proposed: Sequence[Finding], state: _State) -> str:
    return "; ".join(finding.title for finding in proposed if finding.fix and finding.fix.edits not in state.tried)


def _try(session: Session, finding: Finding, state: _State, on_progress: Callable[[Progress], None]) -> Attempt:
    assert finding.fix is not None
    state.tried.add(finding.fix.edits)
    on_progress(Progress("proving", done=len(state.attempts) + 1, text=finding.title))
    claimed = safety_of([*state.kept, finding])
    began = state.clock()
    trial = session.try_fix(state.edits, finding.fix.edits, claimed, finding.memory_bytes)
    if state.longest_trial_s:
        state.longest_trial_s = max(state.longest_trial_s, state.clock() - began)
    attempt = judged(finding, trial, state.is_asked)
    state.attempts.append(attempt)
    if attempt.is_kept:
        state.kept.append(finding)
    return attempt


def judged(finding: Finding, trial: Trial, is_asked: Callable[[Finding], bool], is_end_to_end: bool = False) -> Attempt:
    """The attempt, kept if it is faster, and decided or asked for."""
    if trial.is_undecided and trial.verdict == FASTER and not is_asked(finding):
        note = f"{trial.note} Not applied unasked: --only {finding.rule} applies it.".strip()
        return Attempt(finding, replace(trial, note=note), is_kept=False, is_end_to_end=is_end_to_end)
    return Attempt(finding, trial, trial.verdict == FASTER, is_end_to_end)


def _conclude(session: Session, state: _State, stopped: str, on_progress: Callable[[Progress], None]) -> LoopResult:
    """Measure all that is kept against the original; what is not proved together is taken back, the latest first."""
    total: Trial | None = None
    while state.kept:
        if len(state.kept) == 1 and state.attempts and (alone := _first_trial(state.attempts)) is not None:
            total = alone  # it was measured against the original already
            break
        on_progress(Progress("proving", text="all of them together"))
        try:
            total = session.total(state.edits, safety_of(state.kept))
        except OutOfTime:
            why = "The budget was used up before all changes could be measured together."
            return LoopResult(tuple(state.attempts), tuple(state.kept), None, f"{stopped} {why}".strip())
        except AdvisorError as error:
            return LoopResult(tuple(state.attempts), tuple(state.kept), None, f"{stopped} {error}".strip())
        if total.verdict == FASTER and (not total.is_undecided or all(map(state.is_asked, state.kept))):
            break
        dropped = state.kept.pop()
        stopped = f"{dropped.title} was taken back: {_why_not(total)}."
        state.attempts = [
            replace(each, is_kept=each.is_kept and each.finding is not dropped) for each in state.attempts
        ]
        total = None
    return LoopResult(tuple(state.attempts), tuple(state.kept), total, stopped)


def without_last(result: LoopResult) -> LoopResult:
    """The result with the fix that was kept last taken back; what is left was measured together only if it is a single one."""
    *rest, dropped = result.kept
    attempts = tuple(replace(each, is_kept=each.is_kept and each.finding is not dropped) for each in result.attempts)
    total = _first_trial(attempts) if len(rest) == 1 else None
    return replace(result, attempts=attempts, kept=tuple(rest), total=total)


def _first_trial(attempts: Sequence[Attempt]) -> Trial | None:
    """The trial of the only fix that is kept, if it was measured on the pipeline as it is written."""
    faster = (attempt for attempt in attempts if attempt.trial.verdict == FASTER)
    first = next((attempt for attempt in faster if attempt.is_kept or not attempt.trial.is_undecided), None)
    return first.trial if first is not None and first.is_kept and not first.is_end_to_end else None


def _why_not(total: Trial) -> str:
    if total.verdict == BROKEN:
        return "with it the elements are not those that the script gives"
    return total.note.rstrip(".") or "with it all fixes together are not proved faster than the script as it is"


def is_enough(analysis: Analysis, trial: Trial) -> bool:
    """Whether the pipeline alone needs so little of the training's own time for an element that more speed gains nothing, even
    if both shared every core."""
    verdict = analysis.verdict
    if verdict.steps is None or verdict.steps.count < MIN_STEPS:
        return False
    if verdict.input_wait_share is None or not trial.rate_after:
        return False
    own_s = verdict.steps.mean_ns * (1 - verdict.input_wait_share) / 1e9
    return own_s > 0 and 1 / trial.rate_after < MIN_GAIN * own_s
