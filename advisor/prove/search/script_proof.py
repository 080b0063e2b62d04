"""Proves changes on the whole script: which ones need it, each of these, then all kept ones together.

In: the result of the loop on the pipeline alone, a `WholeScript`.  Out: the updated result, with the measurement of all fixes.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from advisor.model.edits import InsertAfter, MoveAfter, SetOption
from advisor.model.finding import Finding, Fix
from advisor.model.termination import is_interrupt
from advisor.model.untried import Why
from advisor.prove.measure.end_to_end_result import EndToEnd, RunsInterrupted
from advisor.prove.search.greedy_loop import judged
from advisor.prove.search.loop_result import Attempt, LoopResult, interrupted, without_last
from advisor.prove.search.remaining_pauses import pauses_of
from advisor.prove.search.step_trials import attempt_of
from advisor.prove.search.whole_script import WholeScript
from advisor.prove.trial.trial_result import BROKEN, FASTER, REFUSED, SAME, SLOWER, Trial
from advisor.rewrite.fix_plan import is_splitting, is_untuning

INJECTING_OPTIONS = (
    "autotune.enabled",
    "experimental_optimization.apply_default_optimizations",
    "experimental_optimization.inject_prefetch",
)
"""Options under which tf.data appends a prefetch."""


def prove_on_script(
    loop: LoopResult, script: WholeScript, is_asked: Callable[[Finding], bool] = lambda finding: False
) -> tuple[LoopResult, EndToEnd | None]:
    """Measure each fix that the pipeline alone cannot judge, then all kept fixes against the unchanged script.

    Args:
        loop: The result of the loop on the pipeline alone.
        script: Measures the whole script.
        is_asked: As for `prove_fixes`.

    Returns:
        The updated result, and the measurement of all kept fixes; None if there are none or they were not measured. Ctrl-C keeps
        what was proved until then, with the pairs of runs that were finished.
    """
    whole: EndToEnd | None = None
    late: list[EndToEnd] = []
    is_of_all = False
    try:
        for number, attempt in enumerate(loop.attempts):
            if not needs_script(attempt, script.method_of):
                continue
            fix = attempt.finding.fix
            if loop.kept and fix is not None and is_untuning(fix):
                continue  # its proof would take the runs that the kept changes need
            alone = script.measure(loop.kept, (*loop.kept, attempt.finding), attempt.finding.title)
            if alone is not None and alone.is_script_failing:
                return replace(loop, why=Why.SCRIPT_UNSTABLE), alone
            if alone is None or alone.verdict == REFUSED:
                late += [alone] if alone is not None and alone.is_out_of_time else []
                if alone is not None and (alone.is_undecided or alone.is_run_too_short):
                    why = Why.RUN_TOO_SHORT if alone.is_run_too_short else None
                    noted = replace(_with_note(attempt, alone.note), why=why)
                    loop = replace(loop, attempts=(*loop.attempts[:number], noted, *loop.attempts[number + 1 :]))
                continue
            is_of_step = attempt.finding.is_of_step
            tried = attempt_of(attempt, alone) if is_of_step else _attempt_of(attempt, alone, is_asked)
            attempts = (*loop.attempts[:number], tried, *loop.attempts[number + 1 :])
            if tried.is_kept:
                whole = alone if not loop.kept else None
                loop = replace(loop, kept=(*loop.kept, tried.finding), total=None)
            loop = replace(loop, attempts=attempts)
        if loop.kept and whole is None:
            is_of_all = True
            whole = script.measure((), loop.kept, "all changes")
        if whole is not None and whole.is_script_failing:
            return replace(loop, why=Why.SCRIPT_UNSTABLE), whole
        late += [whole] if whole is not None and whole.is_out_of_time else []
        if late:
            missing_s = max(measured.missing_s for measured in late)
            loop = replace(loop, why=Why.SCRIPT_OUT_OF_TIME, missing_s=missing_s)
        loop, whole = _without_culprit(loop, whole, script)
        if loop.kept and not is_untuned(loop.kept):
            loop = _with_epochs_ended(loop, whole, script, is_asked)
        return loop, whole
    except KeyboardInterrupt as error:
        if not is_interrupt(error):
            raise
        when = "before all runs of the whole script had ended"
        loop = interrupted(loop, when, Why.INTERRUPTED_SCRIPT)
        if whole is None and isinstance(error, RunsInterrupted) and is_of_all:
            whole = error.result
            script.notes.append(whole.note)
        return loop, whole


def is_untuned(findings: Sequence[Finding]) -> bool:
    """Whether one of the changes turns AUTOTUNE off."""
    return any(finding.fix is not None and is_untuning(finding.fix) for finding in findings)


def _with_epochs_ended(
    loop: LoopResult, whole: EndToEnd | None, script: WholeScript, is_asked: Callable[[Finding], bool]
) -> LoopResult:
    """Measure what turning AUTOTUNE off gains on top of the kept changes, if their runs show pauses between epochs."""
    places = [number for number, attempt in enumerate(loop.attempts) if is_untuned([attempt.finding])]
    place = next((number for number in places if needs_script(loop.attempts[number], script.method_of)), None)
    if place is None:
        return loop
    attempt = loop.attempts[place]
    title = attempt.finding.title
    if whole is None or whole.verdict != FASTER:
        script.notes.append(
            f"Not measured beside other changes: {title}. Run `advisor fix` again when these are written."
        )
        return loop
    pauses = pauses_of(whole.after)
    if pauses.why_not:
        script.notes.append(f"Not measured beside other changes: {title}: {pauses.why_not}.")
        return loop
    finding = pauses.seen(attempt.finding)
    alone = script.measure(loop.kept, (*loop.kept, finding), title, epoch_s=pauses.epoch_s)
    tried = replace(attempt, finding=finding)
    if alone is not None and alone.verdict != REFUSED:
        tried = _attempt_of(tried, alone, is_asked)
    elif alone is not None and alone.note:
        tried = _with_note(tried, alone.note)
    if tried.is_kept:
        tried = _with_note(
            tried, "Measured on top of the other changes; the figures of all changes are without this one."
        )
    attempts = (*loop.attempts[:place], tried, *loop.attempts[place + 1 :])
    return replace(loop, attempts=attempts, kept=(*loop.kept, finding) if tried.is_kept else loop.kept)


def _without_culprit(
    loop: LoopResult, whole: EndToEnd | None, script: WholeScript
) -> tuple[LoopResult, EndToEnd | None]:
    """If the script fails or is slower with all changes, drop the latest until it does not, to keep the others."""
    while whole is not None and whole.verdict in (SLOWER, BROKEN) and len(loop.kept) > 1:
        *rest, dropped = loop.kept
        again = script.measure((), rest, f"without: {dropped.title}")
        if again is None or again.verdict == REFUSED:
            break
        how = "the whole script is slower" if whole.verdict == SLOWER else "the whole script fails"
        if whole.is_other_text:
            how = "the changed text differs from what was proved"
        script.notes.append(f"{dropped.title} was reverted: with it {how}.")
        loop, whole = without_last(loop), again
    return loop, whole


def needs_script(attempt: Attempt, method_of: Mapping[str, str]) -> bool:
    """Whether only the whole script can measure the fix.

    That is so if the dataset cannot be rebuilt with the fix, if the fix only overlaps work with the training, which the
    pipeline alone does not have, or if it saves time between epochs.

    Args:
        attempt: The attempt on the pipeline alone.
        method_of: The method of each recorded call, by call id.
    """
    trial, fix = attempt.trial, attempt.finding.fix
    if trial.verdict == REFUSED:
        # Halves of a function that could not be compared with it are never run.
        return not trial.is_replayable and (fix is None or not is_splitting(fix))
    if fix is not None and is_untuning(fix) and trial.verdict == FASTER:
        return not attempt.is_kept and not trial.is_undecided
    if fix is None or trial.verdict not in (SAME, SLOWER):
        return False
    return is_untuning(fix) or only_overlaps(fix) or only_leaves_a_buffer(fix, method_of)


def only_leaves_a_buffer(fix: Fix, method_of: Mapping[str, str]) -> bool:
    """Whether the fix only moves calls after a shuffle, so that work before the first element overlaps with training instead.

    On the pipeline alone such a fix may even measure as slower: if an epoch is longer than a turn, the turns hold more of its
    end, where the full buffer is emitted without any work, than of its beginning.
    """
    return bool(fix.edits) and all(
        isinstance(edit, MoveAfter) and method_of.get(edit.after_id) == "shuffle" for edit in fix.edits
    )


def only_overlaps(fix: Fix) -> bool:
    """Whether the fix only appends a buffer at the end, or lets tf.data do so."""
    return bool(fix.edits) and all(
        (isinstance(edit, InsertAfter) and edit.method == "prefetch")
        or (isinstance(edit, SetOption) and edit.option in INJECTING_OPTIONS)
        for edit in fix.edits
    )


def _with_note(attempt: Attempt, note: str) -> Attempt:
    """The attempt with a note on its runs of the whole script; it replaces the one that there were none."""
    trial = attempt.trial
    return replace(
        attempt, trial=replace(trial, note=note if trial.verdict == REFUSED else f"{trial.note} {note}".strip())
    )


def _attempt_of(attempt: Attempt, alone: EndToEnd, is_asked: Callable[[Finding], bool]) -> Attempt:
    compared = attempt.trial.safety_seen is not None
    not_compared = "" if compared else "; the elements were not compared"
    undecided = attempt.trial.note if attempt.trial.is_undecided else ""
    trial = Trial(
        alone.verdict,
        alone.speedup,
        turns=min(len(alone.before), len(alone.after)),
        safety_seen=attempt.trial.safety_seen,
        elements_compared=attempt.trial.elements_compared,
        memory_before_bytes=attempt.trial.memory_before_bytes,
        memory_after_bytes=attempt.trial.memory_after_bytes,
        note=" ".join(filter(None, (alone.note or f"Measured by running the whole script{not_compared}.", undecided))),
        is_undecided=attempt.trial.is_undecided or not compared,
        is_replayable=attempt.trial.is_replayable,
    )
    tried = judged(attempt.finding, trial, is_asked, is_end_to_end=True)
    return replace(tried, claimed_together=attempt.claimed_together)
