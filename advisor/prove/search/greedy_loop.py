"""The greedy loop: apply the fix with the best prediction, measure it, keep or drop it, analyse again.

In: a proof session, an initial report, and a function that proposes fixes for a report.  Out: `LoopResult`: every attempt, and
the kept fixes.

Gains do not add up: a cache makes the parallel map above it pointless. So every fix is measured on top of those already kept, and
the next proposals come from an analysis of the pipeline with those fixes.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.capture.request import RESULT, Progress
from advisor.host.calibration.proof import MAX_ATTEMPTS, MIN_GAIN, OVERTIME_GAIN
from advisor.model.calls import Call
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Finding
from advisor.model.outcome import Report
from advisor.model.termination import is_interrupt
from advisor.model.units import format_share
from advisor.model.untried import Why
from advisor.prove.search.first_pass import NOTE as FIRST_PASS_NOTE
from advisor.prove.search.first_pass import FirstPass
from advisor.prove.search.loop_result import (
    Attempt,
    LoopInterrupted,
    LoopResult,
    first_trial,
    interrupted,
    safety_of,
)
from advisor.prove.search.remaining_pauses import EpochEnds
from advisor.prove.search.result_lines import line_of_trial
from advisor.prove.search.search_limits import NO_LIMITS, SearchLimits
from advisor.prove.search.search_state import NO_MORE, Session, State, Stop
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, Trial
from advisor.rewrite.fix_plan import is_untuning


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
    first_pass: FirstPass | None = None,
    epoch_ends: EpochEnds | None = None,
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
        first_pass: What the search for a faster first pass asks, which comes after all others; None: it is left out.
        epoch_ends: What the search for pauses between epochs asks, which comes last; None: it is left out.

    Returns:
        All attempts and the kept fixes.

    Raises:
        LoopInterrupted: Ctrl-C.
    """
    state = State(calls, is_asked, clock, least_trial_s, limits)
    try:
        stopped = _search(session, report, state, propose, analyse, deadline, on_progress)
        if first_pass is not None:
            stopped = _search_first_pass(session, state, first_pass, stopped, analyse, deadline, on_progress)
        if epoch_ends is not None:
            stopped = _try_epoch_ends(session, state, epoch_ends, stopped, analyse, deadline, on_progress)
        stopped = _with_untried_beside(state, stopped)
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
    state: State,
    propose: Callable[[Report, Sequence[Finding]], Sequence[Finding]],
    analyse: Callable[[Path], Report],
    deadline: float,
    on_progress: Callable[[Progress], None],
) -> Stop:
    """Try fixes, and return why the search has ended before everything was tried."""
    clock, limits = state.clock, state.limits
    # Last, as their proof takes runs of the whole script that the other changes need; sorting keeps the order of the others.
    proposed: Sequence[Finding] = sorted(propose(report, tuple(state.kept)), key=_is_untuning)
    state.proposed = proposed
    state.untuning = state.untuning or [finding for finding in proposed if _is_untuning(finding)]
    stopped = Stop()
    while finding := _next(proposed, state):
        if clock() + state.expected_s >= deadline and (late := _in_overtime(proposed, state)) is not None:
            finding = late
        elif clock() + state.expected_s >= deadline:
            stopped = Stop(
                f"The time for trials was used up; not tried: {_titles(proposed, state)}. {limits.more_time}",
                Why.TRIALS_OUT_OF_TIME,
            )
            break
        if len(state.attempts) >= MAX_ATTEMPTS.value:
            stopped = Stop(
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
            stopped = Stop(
                f"The budget was used up during a trial{f'; not tried: {others}' if others else ''}.",
                Why.TRIALS_OUT_OF_TIME,
            )
            break
        except AdvisorError as error:
            state.attempts.append(Attempt(finding, Trial(REFUSED, note=str(error)), is_kept=False))
            stopped = Stop(str(error), Why.PROCESS_ENDED)
            break
        if not attempt.is_kept:
            continue
        state.latest, state.changed = attempt.trial, None
        if limits.is_enough(attempt.trial):
            stopped = Stop(
                "The pipeline alone is now so much faster than the training that further changes would gain nothing.",
                Why.FAST_ENOUGH,
            )
            break
        if clock() + state.expected_s >= deadline and _in_overtime(proposed, state) is None:
            stopped = Stop(
                f"The time for trials was used up before the search for further changes. {limits.more_time}",
                Why.TRIALS_OUT_OF_TIME,
            )
            break
        on_progress(Progress("analysing", text="the changed pipeline"))
        try:
            analysed = analyse(session.profile(state.edits, state.is_first_pass))
            state.changed = None if state.is_first_pass else analysed
            proposed = state.proposed = propose(analysed, tuple(state.kept))
        except AdvisorError as error:
            stopped = Stop(f"The changed pipeline could not be analysed: {error}", Why.PROCESS_ENDED)
            break
    if not stopped.sentence and (left := _untried(proposed, state)):
        titles = "; ".join(finding.title for finding in left)
        gain = format_share(MIN_GAIN.value)
        sentence = f"Not tried: {titles}, as a training step could gain less than {gain} more. {limits.try_small}"
        stopped = Stop(sentence.strip(), Why.SMALL_GAIN)
    return stopped


def _search_first_pass(
    session: Session,
    state: State,
    first_pass: FirstPass,
    stopped: Stop,
    analyse: Callable[[Path], Report],
    deadline: float,
    on_progress: Callable[[Progress], None],
) -> Stop:
    """Try what makes the first pass faster, if a cache is kept and there is time left; return why the whole search has ended.

    What it does not try is no reason to go on: it adds to what the search in later passes has found.
    """
    later, proposed, limits = state.latest, state.proposed, state.limits
    if later is None or stopped.why in NO_MORE or not first_pass.may_gain(state.kept, later):
        return stopped
    if state.clock() + state.expected_s >= deadline:
        return stopped
    on_progress(Progress("analysing", text="the first pass, which fills the cache"))
    try:
        report = analyse(session.profile(state.edits, is_first_pass=True))
    except AdvisorError:
        return stopped
    state.latest, state.limits = first_pass.limits(report, later, limits)
    state.is_first_pass = True
    ended = _search(session, report, state, first_pass.propose, analyse, deadline, on_progress)
    state.is_first_pass, state.proposed, state.limits, state.latest = False, proposed, limits, later
    return ended if ended.why is Why.PROCESS_ENDED else stopped


def _try_epoch_ends(
    session: Session,
    state: State,
    epoch_ends: EpochEnds,
    stopped: Stop,
    analyse: Callable[[Path], Report],
    deadline: float,
    on_progress: Callable[[Progress], None],
) -> Stop:
    """Try to turn AUTOTUNE off, if changes are kept and there is time left; return why the whole search has ended.

    The trial compares the elements; whether the training gains is left to the whole script.
    """
    later = state.latest
    if later is None or stopped.why in NO_MORE or not epoch_ends.may_gain(state.kept, later):
        return stopped
    if state.clock() + state.longest_trial_s >= deadline:
        return stopped
    try:
        changed = state.changed or analyse(session.profile(state.edits))
        for finding in epoch_ends.propose(changed, tuple(state.kept)):
            _try(session, finding, state, on_progress, is_left_to_script=True)
    except ScriptFailed:
        raise
    except OutOfTime:
        return stopped  # the changes that are kept need no more trials
    except AdvisorError as error:
        return Stop(str(error), Why.PROCESS_ENDED)
    return stopped


def _with_untried_beside(state: State, stopped: Stop) -> Stop:
    """Tell which changes that turn AUTOTUNE off were not tried because others are kept."""
    if not state.kept or any(_is_untuning(attempt.finding) for attempt in state.attempts) or not state.untuning:
        return stopped
    titles = "; ".join(finding.title for finding in state.untuning)
    sentence = f"Not tried beside other changes: {titles}. Run `advisor fix` again when these are written."
    return Stop(_joined(stopped.sentence, sentence), stopped.why)


def _is_untuning(finding: Finding) -> bool:
    return finding.fix is not None and is_untuning(finding.fix)


def _next(proposed: Sequence[Finding], state: State) -> Finding | None:
    return next((finding for finding in _untried(proposed, state) if state.is_worth(finding)), None)


def _in_overtime(proposed: Sequence[Finding], state: State) -> Finding | None:
    """The first change whose predicted gain is so large that its trial may begin although the time for trials is used up."""
    large = (finding for finding in _untried(proposed, state) if finding.gain >= OVERTIME_GAIN.value)
    finding = next(filter(state.is_worth, large), None)
    if finding is None or state.clock() + state.expected_s >= state.limits.overtime():
        return None
    return finding


def _untried(proposed: Sequence[Finding], state: State) -> list[Finding]:
    return [finding for finding in proposed if finding.fix and finding.fix.changes not in state.tried]


def _titles(proposed: Sequence[Finding], state: State) -> str:
    return "; ".join(finding.title for finding in _untried(proposed, state))


def _try(
    session: Session,
    finding: Finding,
    state: State,
    on_progress: Callable[[Progress], None],
    is_left_to_script: bool = False,
) -> Attempt:
    """Try a fix on top of those already kept, and keep it if it is faster, unless the whole script is to decide."""
    assert finding.fix is not None
    state.tried.add(finding.fix.changes)
    on_progress(Progress("proving", done=len(state.attempts) + 1, text=finding.title))
    claimed = safety_of([*state.kept, finding])
    began = state.clock()
    trial = session.try_fix(state.edits, finding.fix.edits, claimed, finding.memory_bytes, state.is_first_pass)
    if state.is_first_pass:
        # The whole script is timed in later passes, so it cannot measure the change in place of a trial.
        trial = replace(trial, note=f"{FIRST_PASS_NOTE} {trial.note}".strip(), is_replayable=True)
    if state.longest_trial_s:
        state.longest_trial_s = max(state.longest_trial_s, state.clock() - began - trial.original_s)
    attempt = replace(judged(finding, trial, state.is_asked), claimed_together=claimed)
    if is_left_to_script:
        attempt = replace(attempt, is_kept=False)
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


def _conclude(session: Session, state: State, stop: Stop, on_progress: Callable[[Progress], None]) -> LoopResult:
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
            stop = Stop(_joined(stop.sentence, problem), Why.TRIALS_OUT_OF_TIME)
            break
        except AdvisorError as error:
            total, stop = None, Stop(_joined(stop.sentence, str(error)), Why.PROCESS_ENDED)
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
