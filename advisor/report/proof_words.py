"""Phrases for what was proved and where, shared by the text, HTML and Markdown reports.

In: the fields `verdict`, `proved_on` and `applied` of a fix, `proved_on` and `training` of a proof.  Out: short phrases.
"""

from __future__ import annotations

from advisor.model import units
from advisor.model.proof_result import NOT_MEASURED, PIPELINE, TRAINING, UNDECIDED, Phase

_PLACES = {TRAINING: "proved on the training", PIPELINE: "proved on the pipeline alone"}
_TRAININGS = {
    "faster": "faster with the changes",
    "same": "not faster with the changes",
    "slower": "slower with the changes",
    "broken": "fails with the changes",
    UNDECIDED: "undecided: its runs do not tell",
    NOT_MEASURED: NOT_MEASURED,
}


def words_for_fix(verdict: str, proved_on: str | None, is_applied: bool) -> str:
    """Return a phrase such as `proved on the training, kept`; for an unproved fix, its verdict.

    Args:
        verdict: The verdict of the trial: `faster`, `same`, `refused`, ...
        proved_on: `training` or `pipeline`, on which it was proved; None for an unproved fix.
        is_applied: Whether the fix is among the changes that are kept.
    """
    words = _PLACES.get(proved_on or "", verdict)
    if is_applied:
        return f"{words}, kept"
    return f"{words}, not kept" if proved_on else words


def words_for_training(training: str) -> str:
    """Return the phrase for the result of the whole script."""
    return _TRAININGS.get(training, NOT_MEASURED)


def phase_words(phase: Phase) -> str:
    """Return a phrase such as `trials 22.1 s for 1 run`."""
    took = f"{phase.name} {units.format_ns(phase.seconds * units.NS_PER_S)}"
    return f"{took} for {units.format_many(phase.runs, 'run')}" if phase.runs else took
