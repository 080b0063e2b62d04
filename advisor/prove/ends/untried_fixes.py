"""Collects the proposed changes that were not measured, each with its reason and the command that tries it.

In: the report of the analysis, what was left out, the loop's result, and the commands for the script.  Out: `UntriedFix`es.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from advisor.model.calls import Site
from advisor.model.finding import Finding
from advisor.model.outcome import Report
from advisor.model.untried import MADE_BY_HAND, UntriedFix, Why
from advisor.prove.ends.script_commands import ScriptCommands
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.trial.trial_result import REFUSED
from advisor.rewrite.fix_plan import LeftOut

_OUT_OF_TIME = frozenset({Why.NO_TIME, Why.TRIALS_OUT_OF_TIME, Why.SCRIPT_OUT_OF_TIME})


def untried_fixes(
    report: Report, left_out: Iterable[LeftOut], loop: LoopResult, commands: ScriptCommands
) -> tuple[UntriedFix, ...]:
    """Return every proposed change that was not measured, once, in the order of the report.

    Args:
        report: The analysis.
        left_out: What was not to be tried.
        loop: What was tried.
        commands: The commands for the script.
    """
    reasons: dict[tuple[str, str, Site | None], UntriedFix] = {}
    measured = {attempt.finding.identity for attempt in loop.attempts if attempt.trial.verdict != REFUSED}
    # With a budget in which nothing could be tried, no other change can be, either.
    enough = commands.with_more_time(loop.missing_s) if loop.why is Why.NO_TIME else commands

    def add(finding: Finding, why: Why, sentence: str, options: Sequence[str] = ()) -> None:
        if finding.identity not in measured:
            is_timed = why in _OUT_OF_TIME
            command = command_for(why, finding.rule, options, commands if is_timed else enough, loop.missing_s)
            untried = UntriedFix(finding.rule, finding.title, finding.site, why, sentence, command, tuple(options))
            reasons.setdefault(finding.identity, untried)

    for attempt in loop.attempts:
        if attempt.trial.verdict == REFUSED:
            add(attempt.finding, _why_refused(attempt, loop), attempt.trial.note)
    for finding in loop.untried:
        if loop.why is not None:
            add(finding, loop.why, loop.stopped_because)
    for entry in left_out:
        add(entry.finding, entry.why, entry.reason, entry.options)
    for finding in report.findings:
        if finding.fix is None:
            add(finding, Why.ADVICE_ONLY, "Advice only: the change cannot be made by editing a call.")
    places = {finding.identity: number for number, finding in enumerate((*report.findings, *report.hints))}
    return tuple(reasons[name] for name in sorted(reasons, key=lambda name: places.get(name, len(places))))


def command_for(
    why: Why, rule: str, options: Sequence[str], commands: ScriptCommands, missing_s: float = 0.0
) -> str | None:
    """Return the command that tries a change which was left out, or that judges it if it is made by hand.

    Args:
        why: Why it was left out.
        rule: Its rule.
        options: The options that permit it.
        commands: The commands for the script.
        missing_s: Seconds that the budget lacked at least.
    """
    if why in MADE_BY_HAND:
        return commands.prove()
    if why in _OUT_OF_TIME:
        return commands.longer(missing_s)
    if why in (Why.SMALL_GAIN, Why.FAST_ENOUGH):
        return commands.pipeline_only()
    if why is Why.CANNOT_REPLAY:
        return commands.prove() if commands.is_whole_script else commands.whole_script()
    if why is Why.UNWRITABLE:
        return commands.not_written()
    if why in (Why.NEEDS_PERMISSION, Why.NEEDS_REQUEST):
        return commands.permitted(options) if options else None
    if why in (Why.CONFLICT, Why.TOO_MANY):
        return commands.only_these([rule])
    if why is Why.NOT_REQUESTED:
        return commands.all_rules()
    return commands.again()


def _why_refused(attempt: Attempt, loop: LoopResult) -> Why:
    """Why an attempt has no result."""
    is_last = attempt is loop.attempts[-1]
    if loop.is_interrupted and not attempt.trial.is_replayable:
        return loop.why or Why.INTERRUPTED_SCRIPT
    if attempt.why is not None:
        return attempt.why
    if not attempt.trial.is_replayable:
        return Why.SCRIPT_OUT_OF_TIME if loop.why is Why.SCRIPT_OUT_OF_TIME else Why.CANNOT_REPLAY
    if loop.why in (Why.TRIALS_OUT_OF_TIME, Why.PROCESS_ENDED) and is_last and loop.why is not None:
        return loop.why
    return Why.TRIAL_FAILED
