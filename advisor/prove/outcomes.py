"""Converts measurements to the report's model and sentences.

In: the attempts of the loop and the runs of the whole script.  Out: `FixOutcome`s, `Comparison`, `Proof`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from advisor.host.calibration.proof import MIN_GAIN, STILL
from advisor.model import units
from advisor.model.calls import Call
from advisor.model.outcome import Comparison, FixOutcome, Gain, Interval, Report, RuleError
from advisor.model.outlook import Outlook
from advisor.model.proof_result import NOT_MEASURED, PIPELINE, TRAINING, UNDECIDED, Phase, Proof, Side
from advisor.prove.ends.early_ends import next_step
from advisor.prove.ends.end_reasons import End
from advisor.prove.ends.script_commands import ScriptCommands
from advisor.prove.ends.untried_fixes import untried_fixes
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.run_steps import median_of
from advisor.prove.search.gains import gains_of
from advisor.prove.search.loop_result import Attempt, LoopResult
from advisor.prove.search.step_trials import with_results
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER, Trial
from advisor.rewrite.fix_plan import LeftOut, is_vectorizing
from advisor.rewrite.shared_calls import sentence_of_sharing

NOTHING = "Nothing to fix: "
UNKNOWN = Interval(math.nan, math.nan, math.nan)


def outcome_of(
    attempt: Attempt,
    is_applied: bool,
    calls: Mapping[str, Call],
    is_training_faster: bool = False,
    gains: tuple[Gain, Gain] = (Gain(), Gain()),
) -> FixOutcome | None:
    """Convert an attempt to a row of the table of fixes.

    Args:
        attempt: The attempt.
        is_applied: Whether the fix is part of the final patch.
        calls: The recorded calls by id.
        is_training_faster: Whether the whole script was measured to be faster with all kept fixes, including this one.
        gains: The speedups of the pipeline alone and of a training step.

    Returns:
        The row, or None for a refused fix, which is listed as not measured instead.
    """
    finding, trial = attempt.finding, attempt.trial
    if trial.verdict == REFUSED or finding.fix is None:
        return None
    shared = None if attempt.is_end_to_end else sentence_of_sharing(finding.fix, calls)
    return FixOutcome(
        rule=finding.rule,
        site=finding.site,
        predicted=finding.prediction,
        measured=trial.speedup,
        safety_claimed=finding.fix.safety,
        safety_seen=trial.safety_seen,
        claimed_together=attempt.claimed_together,
        verdict=trial.verdict,
        is_applied=is_applied,
        title=finding.title,
        note=" ".join(note for note in (shared, trial.note, finding.trade if is_applied else "") if note),
        memory_before_bytes=trial.memory_before_bytes,
        memory_after_bytes=trial.memory_after_bytes,
        is_undecided=trial.is_undecided,
        is_end_to_end=attempt.is_end_to_end,
        proved_on=_place_of_proof(attempt, is_training_faster),
        pipeline=gains[0],
        step=gains[1],
        is_of_step=finding.fix.is_of_step,
        loss=trial.loss,
    )


def _place_of_proof(attempt: Attempt, is_training_faster: bool) -> str | None:
    if attempt.trial.verdict != FASTER:
        return None
    return TRAINING if attempt.is_end_to_end or is_training_faster else PIPELINE


def sides_of(total: Trial | None, whole: EndToEnd | None) -> tuple[Side, Side]:
    """Return the figures (before, after) of all kept fixes together."""
    sides = []
    for is_after in (False, True):
        runs = () if whole is None else whole.after if is_after else whole.before
        rate = None if total is None else total.rate_after if is_after else total.rate_before
        memory = None if total is None else total.memory_after_bytes if is_after else total.memory_before_bytes
        peak = median_of(runs, lambda run: run.peak_rss_bytes)
        sides.append(
            Side(
                elements_per_s=rate,
                step_ns=median_of(runs, lambda run: run.step_ns),
                wait_share=median_of(runs, lambda run: run.wait_share),
                peak_rss_bytes=memory if peak is None else int(peak),
            )
        )
    return sides[0], sides[1]


def comparison_of(total: Trial | None, whole: EndToEnd | None, before: Side, after: Side) -> Comparison | None:
    """Return the `comparison` of the report; None if nothing was compared.

    Args:
        total: The trial of all kept fixes on the pipeline; None if there was none.
        whole: The measurement of the whole script; None if it was not measured.
        before: Figures of the original.
        after: Figures with all kept fixes.
    """
    if total is None and (whole is None or whole.speedup is None):
        return None
    return Comparison(
        pipeline_before=math.nan if before.elements_per_s is None else before.elements_per_s,
        pipeline_after=math.nan if after.elements_per_s is None else after.elements_per_s,
        pipeline_speedup=UNKNOWN if total is None or total.speedup is None else total.speedup,
        end_to_end=None if whole is None else whole.speedup,
        wait_share_before=before.wait_share,
        wait_share_after=after.wait_share,
    )


@dataclass(frozen=True, slots=True)
class ProofFacts:
    """Parts of a report's proof other than its figures; as in `Proof`."""

    runs: int = 0
    seconds: float = 0.0
    diff: str = ""
    is_applied: bool = False
    """Whether the kept fixes are to be applied."""
    calls: Mapping[str, Call] = field(default_factory=dict)
    """The recorded calls if source text is to be changed: one line may create several datasets."""
    left_out: tuple[str, ...] = ()
    written_files: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    waits: tuple[float | None, float | None] = (None, None)
    """Input wait of imagined steps, as shares of a step, without and with all kept changes."""
    phases: tuple[Phase, ...] = ()
    commands: ScriptCommands | None = None
    """The commands for the script; None if the proof is not one of a script."""
    not_tried: tuple[LeftOut, ...] = ()
    """What `left_out` says of fixes that were not to be tried."""


def report_of(report: Report, loop: LoopResult, whole: EndToEnd | None, about: ProofFacts) -> Report:
    """Return the report extended by fixes, comparison and proof.

    Args:
        report: The report of the script before any change.
        loop: The trials and the fixes that were kept.
        whole: The comparison of whole runs of the script; None if only the pipeline was measured.
        about: What else the proof says.
    """
    report = with_results(report, loop)
    before, after = sides_of(loop.total, whole)
    if whole is None and about.waits[0] is not None:
        before, after = replace(before, wait_share=about.waits[0]), replace(after, wait_share=about.waits[1])
    if whole is not None and before.wait_share is None:
        before = replace(before, wait_share=report.analysis.verdict.input_wait_share)
    verdict, sentence = sentence_of(loop, whole, before.wait_share, after.wait_share)
    if not loop.attempts:
        sentence = loop.stopped_because or _why_nothing(report, about.left_out)
    elif not loop.kept and sentence.startswith(NOTHING) and report.analysis.verdict.is_input_bound:
        sentence = f"No change is proved to help: {sentence.removeprefix(NOTHING)}"
    if report.permission:
        sentence = f"{report.permission}. {sentence}" if not loop.kept else f"{sentence} {report.permission}."
    refused = [
        f"{attempt.finding.title}: {attempt.trial.note}"
        for attempt in loop.attempts
        if attempt.trial.verdict == REFUSED
    ]
    training = training_verdict(whole)
    proved_on = None
    if loop.kept and training != BROKEN:
        proved_on = TRAINING if training == FASTER else PIPELINE
    proof = Proof(
        verdict=verdict,
        proved_on=proved_on,
        training=training,
        sentence=sentence,
        before=before,
        after=after,
        runs=about.runs,
        pipeline_turns=loop.total.turns if loop.total else 0,
        end_to_end_turns=(
            min(len(whole.before), len(whole.after)) if whole is not None and whole.speedup is not None else 0
        ),
        diff=about.diff,
        left_out=tuple(dict.fromkeys((*about.left_out, *refused))),
        written_files=about.written_files,
        notes=tuple(dict.fromkeys(note for note in (*about.notes, loop.stopped_because) if note and note != sentence)),
        seconds=about.seconds,
        phases=about.phases,
        fixed_numbers=loop.fixed_numbers,
        test=None if whole is None else whole.test,
    )
    if about.commands is not None:
        untried = untried_fixes(report, about.not_tried, loop, about.commands)
        end = End(report, loop, whole, about.is_applied, untried, about.commands)
        proof = replace(proof, next=next_step(end), untried=untried)
    outcomes = (
        outcome_of(
            attempt,
            about.is_applied and attempt.finding in loop.kept,
            about.calls,
            is_training_faster=training == FASTER and attempt.finding in loop.kept,
            gains=gains_of(attempt, report, loop, whole),
        )
        for attempt in loop.attempts
    )
    return replace(
        report,
        rule_errors=(*report.rule_errors, *_rule_errors(loop)),
        fixes=tuple(outcome for outcome in outcomes if outcome is not None),
        comparison=comparison_of(loop.total, whole, before, after),
        proof=proof,
        outlook=_consistent_outlook(report, loop),
    )


def _consistent_outlook(report: Report, loop: LoopResult) -> Outlook | None:
    """The outlook without its predicted plan if a change in the plan was measured to gain nothing."""
    outlook = report.outlook
    if outlook is None or outlook.plan is None:
        return outlook
    failed = [
        attempt.finding.as_proposed
        for attempt in loop.attempts
        if not attempt.is_kept and attempt.trial.verdict != REFUSED
    ]
    is_failed = any(report.findings[place] in failed for place in outlook.plan.findings)
    return replace(outlook, plan=None) if is_failed else outlook


def _rule_errors(loop: LoopResult) -> list[RuleError]:
    """Fixes that do not do what their rule claims, for the rule's maintainer.

    Of a vectorised function no rule can know more than that it may be the same, and of a training step not even that the script
    runs with the change; the proof decides.
    """
    return [
        RuleError(
            attempt.finding.rule,
            f"{attempt.finding.title}: {attempt.trial.note or 'It breaks the script.'} Report this to the rule's maintainer.",
        )
        for attempt in loop.attempts
        if attempt.trial.verdict == BROKEN
        and not attempt.finding.is_of_step
        and not (attempt.finding.fix and is_vectorizing(attempt.finding.fix))
    ]


def is_proved(whole: EndToEnd | None) -> bool:
    """Whether the kept fixes are to be applied.

    A proof on the pipeline alone suffices only if the whole script cannot contradict it, because it cannot be measured (None) or
    is undecided after all its runs. It does not suffice if the training gains nothing, if only the time was missing, or if the
    script fails by itself.
    """
    if whole is not None and (whole.is_out_of_time or whole.is_interrupted or whole.is_script_failing):
        return False
    return whole is None or whole.verdict in (FASTER, REFUSED) or whole.is_undecided


def training_verdict(whole: EndToEnd | None) -> str:
    """The result of the whole script, as in `Proof.training`."""
    if whole is None or (whole.verdict == REFUSED and not whole.is_undecided):
        return NOT_MEASURED
    return UNDECIDED if whole.is_undecided else whole.verdict


def sentence_of(
    loop: LoopResult, whole: EndToEnd | None, wait_before: float | None = None, wait_after: float | None = None
) -> tuple[str, str]:
    """Summarise all results.

    Args:
        loop: The attempts and the kept fixes.
        whole: The measurement of the whole script; None if it was not measured.
        wait_before: Share of a step, 0 to 1, spent waiting for input without the fixes.
        wait_after: The same with the fixes.

    Returns:
        The verdict and a sentence.
    """
    tried = [attempt for attempt in loop.attempts if attempt.trial.verdict != REFUSED]
    if not tried:
        return "nothing", f"{NOTHING}none of the changes could be tried."
    undecided = [attempt for attempt in tried if attempt.trial.is_undecided and attempt.trial.verdict == FASTER]
    if not loop.kept and undecided:
        return "nothing", (
            f"No change is applied automatically: {len(undecided)} of {units.format_many(len(tried), 'change')} tried measured "
            "faster, but the effect on the data could not be determined."
        )
    if not loop.kept:
        return _verdict_of_none(tried), f"{NOTHING}{_counted(tried)} tried, none is proved faster."
    pipeline = loop.total.speedup if loop.total is not None else None
    alone = _proved_alone(loop, pipeline)
    if whole is None or whole.speedup is None:
        if whole is not None and whole.is_other_text:
            return BROKEN, f"{alone or 'Tried'}, but the changes are not applied. {whole.note}"
        if whole is not None and whole.verdict == BROKEN:
            return (
                BROKEN,
                f"{alone}, but the script fails with the changes, so they are not applied. {whole.note}".strip(),
            )
        if not is_proved(whole):
            why = "there was no time to measure"
            if whole is not None and whole.is_interrupted:
                why = "Ctrl-C ended the runs of"
            elif whole is not None and whole.is_script_failing:
                why = "the unchanged script failed in a later run of"
            return FASTER, f"{alone}. No change is applied, as {why} the training."
        return FASTER, f"{alone}. The training was not measured."
    if whole.verdict == FASTER:
        pipeline_gain = "" if pipeline is None else f" The pipeline alone is {units.format_interval(pipeline)} faster."
        step = "a step, with its share of the time between epochs," if whole.epochs else "a step"
        return (
            FASTER,
            f"Proved on the training: {step} is {units.format_interval(whole.speedup)} faster.{pipeline_gain}",
        )
    if whole.is_out_of_time or whole.is_interrupted:
        why = "Ctrl-C ended its runs" if whole.is_interrupted else "the budget was used up"
        return (
            FASTER,
            f"{alone}. No change is applied, as {why} while the training was undecided ({units.format_interval(whole.speedup)}).",
        )
    if whole.is_undecided:
        return (
            FASTER,
            f"{alone}. The training is undecided: its runs vary by more than the gain ({units.format_interval(whole.speedup)}).",
        )
    result = "the training is not proved faster" if whole.verdict == SAME else "the training is slower"
    because = _why_no_gain(wait_before, wait_after) if whole.verdict == SAME else ""
    return (
        whole.verdict,
        f"{alone}, but {result} ({units.format_interval(whole.speedup)}){because}. No change is applied.",
    )


def _proved_alone(loop: LoopResult, pipeline: Interval | None) -> str:
    """The beginning of a sentence: what was proved without running the whole script with all changes."""
    if pipeline is not None:
        return f"Proved on the pipeline alone: {units.format_interval(pipeline)} faster"
    has_runs = any(attempt.is_kept and attempt.is_end_to_end for attempt in loop.attempts)
    where = "on the pipeline alone or on the training" if has_runs else "on the pipeline alone"
    return f"Proved {where}, each change separately"


def _why_no_gain(before: float | None, after: float | None) -> str:
    """Part of a sentence: why the training does not gain from a faster pipeline, judged by the waits; empty if unknown."""
    if before is None:
        return ""
    if before < MIN_GAIN.value:
        return f", because its steps wait for input only {units.format_share(before)} of the time"
    if after is None:
        return ""
    change = f"{units.format_share(before)} before, {units.format_share(after)} after"
    if after > (1 - STILL.value) * before:
        return f", because its steps still wait for input while the model trains ({change})"
    return f", because its steps wait less ({change}) but compute longer: pipeline and model share the cores"


def _why_nothing(report: Report, left_out: Sequence[str]) -> str:
    if report.findings and left_out:
        return "No change is made automatically: no finding could be tried, for the reasons below."
    if report.findings:
        first = report.findings[0]
        site = f" ({first.site.file.replace(chr(92), '/').rpartition('/')[2]}:{first.site.line})" if first.site else ""
        return (
            f"No change can be made automatically. Next step: {first.title}{site}. {first.because} `advisor analyze` prints all "
            "findings."
        )
    if report.analysis.verdict.is_input_bound:
        return f"No rule that was asked proposes a change. {report.analysis.verdict.sentence}"
    return "Nothing to fix."


def _verdict_of_none(tried: Sequence[Attempt]) -> str:
    """The best verdict among the attempts."""
    verdicts = [attempt.trial.verdict for attempt in tried]
    return next((verdict for verdict in (SAME, SLOWER, BROKEN) if verdict in verdicts), "nothing")


def _counted(tried: Sequence[Attempt]) -> str:
    return f"{units.format_many(len(tried), 'change')} {'was' if len(tried) == 1 else 'were'}"
