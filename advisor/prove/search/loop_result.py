"""What the search for changes has found: attempts and kept fixes.

In: attempts of the greedy loop and of the whole script.  Out: `LoopResult`, and what remains of it after Ctrl-C or without a fix.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.model.calls import Call
from advisor.model.edits import Edit
from advisor.model.finding import Finding, Safety
from advisor.model.proof_result import FixedNumbers
from advisor.model.untried import Why
from advisor.prove.trial.trial_result import FASTER, Trial
from advisor.rewrite.combined_edits import combine

SAFETY_ORDER = tuple(Safety)


@dataclass(frozen=True, slots=True)
class Attempt:
    """One fix that was tried."""

    finding: Finding
    trial: Trial
    is_kept: bool
    is_end_to_end: bool = False
    """Tried by running the whole script, because its dataset could not be replayed."""
    why: Why | None = None
    """Why there is no result, where the trial does not show it."""
    claimed_together: Safety | None = None
    """What the fix and those kept before it claim together; None if it was not tried on the pipeline alone."""


@dataclass(frozen=True, slots=True)
class LoopResult:
    """Attempts and kept fixes of the loop."""

    attempts: tuple[Attempt, ...] = ()
    kept: tuple[Finding, ...] = ()
    """In order of application."""
    total: Trial | None = None
    """The original pipeline against all kept fixes, but without one that the whole script has measured on top of them. None if no
    fix is kept or they were not measured together."""
    stopped_because: str = ""
    """One sentence; empty if the loop ended for lack of new proposals."""
    why: Why | None = None
    """The reason in `stopped_because`; None if everything was tried."""
    untried: tuple[Finding, ...] = ()
    """Proposed and not tried, for this reason."""
    missing_s: float = 0.0
    """Seconds that the budget lacked at least, if time was the reason; 0 if that is unknown."""
    is_interrupted: bool = False
    """Ctrl-C ended the proof: what was found until then is reported, and nothing is written."""
    fixed_numbers: FixedNumbers | None = None
    """Numbers that were compared with AUTOTUNE; None if none were."""


class LoopInterrupted(KeyboardInterrupt):
    """Ctrl-C while changes were tried; `result` holds what was proved until then, which may be nothing."""

    def __init__(self, result: LoopResult) -> None:
        super().__init__()
        self.result = result


def edits_of(findings: Sequence[Finding], calls: Mapping[str, Call]) -> tuple[Edit, ...]:
    """Combine the edits of several findings in a valid order.

    Raises:
        ValueError: The fixes conflict.
    """
    return combine([finding.fix for finding in findings if finding.fix is not None], calls)


def safety_of(findings: Sequence[Finding]) -> Safety:
    """Return the combined effect on the data: the most harmful level of all fixes."""
    levels = [finding.fix.safety for finding in findings if finding.fix is not None]
    return max(levels, key=SAFETY_ORDER.index, default=Safety.EXACT)


def interrupted(loop: LoopResult, when: str, why: Why = Why.INTERRUPTED_TRIALS) -> LoopResult:
    """Return the result of a loop that Ctrl-C ended, with a note; one that was ended by it before is not changed.

    Args:
        loop: What the loop found until then.
        when: A clause for the note: `before all changes were tried`.
        why: Why the loop ended, which decides the line `Next:`.
    """
    if loop.is_interrupted:
        return loop
    note = f"{loop.stopped_because} Interrupted {when}, so nothing was written.".strip()
    return replace(loop, stopped_because=note, is_interrupted=True, why=why)


def kept_of(error: KeyboardInterrupt, loop: LoopResult) -> LoopResult:
    """Return what a Ctrl-C has left: the result of the loop that it has ended, or of the one that another has ended before.

    Args:
        error: The latest Ctrl-C, perhaps a second one while the process of the trials ends after the first.
        loop: The result so far.
    """
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, LoopInterrupted):
            return cause.result
        cause = cause.__context__
    return interrupted(loop, "before all changes were tried")


def without_last(result: LoopResult) -> LoopResult:
    """Return the result without the latest kept fix.

    The remaining fixes have a common measurement (`total`) only if there is exactly one.
    """
    *rest, dropped = result.kept
    attempts = tuple(
        replace(attempt, is_kept=attempt.is_kept and attempt.finding is not dropped) for attempt in result.attempts
    )
    total = first_trial(attempts) if len(rest) == 1 else None
    return replace(result, attempts=attempts, kept=tuple(rest), total=total)


def first_trial(attempts: Sequence[Attempt]) -> Trial | None:
    """Return the trial of the only kept fix, if it was measured against the original pipeline; else None."""
    faster = (attempt for attempt in attempts if attempt.trial.verdict == FASTER)
    first = next((attempt for attempt in faster if attempt.is_kept or not attempt.trial.is_undecided), None)
    return first.trial if first is not None and first.is_kept and not first.is_end_to_end else None
