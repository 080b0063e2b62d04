"""Drops changes whose source text does not make the calls that were proved.

In: the loop's result and a `TextCheck`.  Out: the result without those changes. Only changes that pass this check are written.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Protocol

from advisor.model.edits import Edit
from advisor.model.finding import Finding
from advisor.prove.search.loop_result import Attempt, LoopResult, edits_of
from advisor.prove.search.proposals import Proposals
from advisor.prove.texts.text_check import TextVerdict
from advisor.prove.trial.trial_result import BROKEN
from advisor.rewrite.patch import CannotRewrite, Patch


class Check(Protocol):
    """The part of `TextCheck` used here."""

    def check(self, edits: Sequence[Edit], patch: Patch) -> TextVerdict:
        """Compare the calls of the patched script with the proved ones."""
        ...


def with_proved_text(loop: LoopResult, proposals: Proposals, check: Check, note: Callable[[str], None]) -> LoopResult:
    """Return the result without findings whose text is broken, or cannot be checked and was not requested.

    Args:
        loop: The result of the loop.
        proposals: Creates the patches.
        check: Compares the calls of a patched script with the proved ones.
        note: Called with a sentence for each finding that is dropped or not fully checked.
    """
    if not loop.kept or _verdict(loop.kept, proposals, check).is_proved:
        return loop
    proved: list[Finding] = []
    for finding in loop.kept:  # the first finding with which the text is wrong is the cause
        if finding.is_of_step:  # makes no calls of tf.data; judged by the runs of the whole script
            proved.append(finding)
            continue
        verdict = _verdict([*proved, finding], proposals, check)
        if verdict.is_proved or (not verdict.is_broken and proposals.is_asked(finding)):
            proved.append(finding)
            if verdict.note:
                note(verdict.note)
            continue
        loop = replace(loop, attempts=tuple(_judged(attempt, finding, verdict) for attempt in loop.attempts))
        note(f"{finding.title} was reverted: {verdict.note}")
    is_same = len(proved) == len(loop.kept)
    return replace(
        loop, kept=tuple(proved), total=loop.total if is_same else None
    )  # the remaining fixes were not measured together


def _verdict(findings: Sequence[Finding], proposals: Proposals, check: Check) -> TextVerdict:
    findings = [finding for finding in findings if not finding.is_of_step]
    if not findings:
        return TextVerdict()
    patch = proposals.patch(findings)
    if isinstance(patch, CannotRewrite):
        return TextVerdict()  # nothing can be written
    return check.check(edits_of(findings, proposals.calls), patch)


def _judged(attempt: Attempt, finding: Finding, verdict: TextVerdict) -> Attempt:
    if attempt.finding is not finding:
        return attempt
    trial = replace(attempt.trial, note=verdict.note)
    if verdict.is_broken:
        trial = replace(trial, verdict=BROKEN)
    else:
        trial = replace(
            trial,
            is_undecided=True,
            note=f"{verdict.note} Not applied automatically: --only {finding.rule} applies it.",
        )
    return replace(attempt, trial=trial, is_kept=False)
