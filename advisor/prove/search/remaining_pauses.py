"""Turning AUTOTUNE off beside other changes, so that each epoch ends at once.

In: the kept changes, an analysis of the pipeline with them, and runs of the changed script.  Out: the change to try on the
pipeline, and whether the pauses of these runs are worth the further runs that its proof takes.

The rule `epoch-pauses` sees the pauses of the unchanged script, which are a small part of its long epochs, or too few. Other
changes make the epochs shorter, and the pauses between them remain: the iterator's end waits until AUTOTUNE's next check.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

from advisor.host.calibration.proof import (
    MAX_WINDOW_S,
    MIN_GAIN,
    MIN_PAUSES,
    MIN_WINDOW_EPOCHS,
)
from advisor.model import catalog
from advisor.model.calls import Call
from advisor.model.edits import InsertAfter, MoveAfter, SetOption, added_after
from advisor.model.finding import Finding, Fix, Prediction
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis
from advisor.model.units import NS_PER_S, format_ns, format_share
from advisor.predict import epoch_ends, step_site
from advisor.predict.passes_over_data import horizon, root_steps_per_epoch
from advisor.prove.measure.run_steps import RunSteps
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.search_limits import own_step_s, pipeline_s
from advisor.prove.trial.trial_result import Trial

RULE = "epoch-pauses"
EXPECTED = Prediction(1.2, 1.0, 1.5)
"""AUTOTUNE checks a pipeline after 10, 30, 70, 150 ms ..., so the next check is up to one epoch away: 0.44 of one on average, if
all lengths are equally likely on a logarithmic scale. About every other end of an iterator waits for it [docs/measuring.md]."""


@dataclass(frozen=True, slots=True)
class EpochEnds:
    """What the search knows of the script."""

    proposals: Proposals
    analysis: Analysis
    """The analysis of the unchanged script."""
    is_reported: Callable[[Finding], bool] = lambda finding: True
    """Whether the user wants to hear of a finding."""

    def may_gain(self, kept: Sequence[Finding], latest: Trial) -> bool:
        """Whether the script makes many epochs, which the kept changes have made short enough for windows of several of them.

        Args:
            kept: The kept changes.
            latest: The trial of the latest of them.
        """
        main, step_s = self.analysis.main, pipeline_s(self.analysis, latest)
        steps = root_steps_per_epoch(self.analysis, main) if main is not None else None
        if not kept or main is None or not steps or step_s is None:
            return False
        passes = horizon(self.analysis, main).passes
        least = 1 + MIN_WINDOW_EPOCHS.value
        if passes is not None and passes < least:
            return False
        return steps * max(step_s, own_step_s(self.analysis) or 0.0) * least <= MAX_WINDOW_S.value

    def propose(self, report: Report, kept: Sequence[Finding]) -> list[Finding]:
        """Return the change to try; empty if there is none, or if nothing runs in parallel under AUTOTUNE.

        Args:
            report: The analysis of the pipeline with the kept changes.
            kept: These changes.
        """
        main = report.analysis.main
        if main is None or not any(
            it.is_autotuned and catalog.base_type(it.name).startswith(("Parallel", "MapAndBatch"))
            for it in main.iterators
        ):
            return []
        fix = epoch_ends.without_autotune(report.analysis, main)
        finding = Finding(
            RULE,
            "Turn AUTOTUNE off, so that epochs end at once",
            "With the other changes, epochs are short, and each may end with a wait for AUTOTUNE's next check of the pipeline.",
            site=step_site(self.analysis),
            prediction=EXPECTED,
            fix=None if fix is None else of_recorded_calls(fix, self.proposals.calls, kept),
        )
        if finding.fix is None or not self.is_reported(finding):
            return []
        return self.proposals.propose(replace(report, findings=(finding,), hints=(), outlook=None), kept)


def of_recorded_calls(fix: Fix, calls: Mapping[str, Call], kept: Sequence[Finding]) -> Fix | None:
    """Return the fix with links after recorded calls; None if it changes a call that a kept change has added.

    An option after a call that was added is set after the call behind which that was added: of the links after one call, options
    are the last ones (`advisor.rewrite.combined_edits`).

    Args:
        fix: The fix of the changed pipeline.
        calls: The recorded calls by id.
        kept: The changes that it has.
    """
    moved = {
        edit.call_id: edit.after_id
        for finding in kept
        if finding.fix is not None
        for edit in finding.fix.edits
        if isinstance(edit, MoveAfter)
    }

    def place_of(call_id: str) -> str:
        place = added_after(call_id)
        return moved.get(place, place)

    edits = tuple(
        replace(edit, call_id=place_of(edit.call_id)) if isinstance(edit, SetOption | InsertAfter) else edit
        for edit in fix.edits
    )
    return replace(fix, edits=edits) if all(edit.call_id in calls for edit in edits) else None


@dataclass(frozen=True, slots=True)
class Pauses:
    """The pauses between the epochs of several runs."""

    count: int
    """Number of epochs."""
    mean_ns: float
    """Mean pause; 0 without an epoch."""
    epoch_ns: float
    """Mean length of an epoch with its pause; 0 without one."""

    @property
    def why_not(self) -> str:
        """Why turning AUTOTUNE off is not measured, as a clause; empty if it is worth the runs."""
        if self.count < MIN_PAUSES.value:
            return f"the runs with the changes have shown the ends of {self.count} epochs, which is too few"
        if self.mean_ns < MIN_GAIN.value * self.epoch_ns:
            share = format_share(self.mean_ns / self.epoch_ns)
            return f"with the changes, TensorFlow destroys iterators in {format_ns(round(self.mean_ns))}, {share} of an epoch"
        return ""

    @property
    def sentence(self) -> str:
        """What was seen, as a sentence."""
        return (
            "With the other changes, the script waits between epochs until TensorFlow has destroyed the iterator: "
            f"{format_ns(round(self.mean_ns))} on average, {format_share(self.mean_ns / self.epoch_ns)} of the time over "
            f"{self.count} epochs."
        )

    def seen(self, finding: Finding) -> Finding:
        """Return the finding with these pauses in place of expected ones."""
        gain = 1 / (1 - min(0.95, self.mean_ns / self.epoch_ns))
        return replace(finding, because=self.sentence, prediction=Prediction(gain, 1.0, max(gain, EXPECTED.high)))

    @property
    def epoch_s(self) -> float:
        """Mean length of an epoch with its pause, in seconds."""
        return self.epoch_ns / NS_PER_S


def pauses_of(runs: Sequence[RunSteps]) -> Pauses:
    """Return the pauses of these runs."""
    epochs = [epoch for run in runs for epoch in run.pauses]
    if not epochs:
        return Pauses(0, 0.0, 0.0)
    return Pauses(len(epochs), *(statistics.fmean(values) for values in reversed(list(zip(*epochs, strict=True)))))
