"""Measures the whole script with and without changes, if the budget allows it.

In: the analysis of the unchanged script, the changes, the remaining budget.  Out: `EndToEnd`, or a note that says why not.
"""

from __future__ import annotations

import statistics
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace

import msgspec

from advisor.capture.request import RESULT, START_SEED, CaptureRequest, Progress
from advisor.host.calibration.proof import BUDGET_SHARE, EXPECTED_PAIRS
from advisor.model.edits import Edit
from advisor.model.errors import ScriptFailed
from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.model.sequential_test import MIN_PAIRS
from advisor.model.units import NS_PER_S, format_epochs, format_ns
from advisor.prove.measure.end_to_end import measure_end_to_end
from advisor.prove.measure.end_to_end_result import EarlyRun, EndToEnd, RunsInterrupted
from advisor.prove.measure.epoch_window import EpochWindow
from advisor.prove.measure.live_pairs import measure_live_pairs
from advisor.prove.measure.script_windows import ScriptWindow, ScriptWindows
from advisor.prove.measure.source_overlays import overlays
from advisor.prove.measure.steady_state import UnknownEpoch
from advisor.prove.search.loop_result import edits_of
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.result_lines import line_of_whole
from advisor.prove.texts.text_check import TextCheck
from advisor.prove.trial.trial_result import BROKEN, REFUSED
from advisor.rewrite.fix_plan import is_building_once, is_untuning
from advisor.rewrite.patch import CannotRewrite, Patch


class WholeScript:
    """Alternating runs of one script; counts them and collects notes."""

    def __init__(
        self,
        request: CaptureRequest,
        analysis: Analysis,
        proposals: Proposals,
        startup_s: float,
        deadline: float,
        on_progress: Callable[[Progress], None],
        clock: Callable[[], float] = time.monotonic,
        usual_end: float | None = None,
    ) -> None:
        """Prepare the measurement.

        Args:
            request: How to run the script, with the user's limits of the window.
            analysis: The analysis of the unchanged script.
            proposals: Creates the patches.
            startup_s: Seconds from the script's start to its first step.
            deadline: A time of `clock` by which all runs have ended.
            on_progress: Called with progress messages.
            clock: Source of the time in seconds.
            usual_end: As for `measure_end_to_end`.
        """
        self._clock, self._usual_end = clock, usual_end
        self.text_check: TextCheck | None = None
        """Applied before a changed text is timed; it counts its own runs."""
        self._analysis, self._proposals = analysis, proposals
        self._deadline, self._on_progress = deadline, on_progress
        self._windows = ScriptWindows(request, analysis, startup_s)
        self.runs = 0
        self.notes: list[str] = []
        self._missing_s = 0.0
        """Seconds that the budget lacked for the latest measurement that was not begun."""
        self.method_of = {call.id: call.method for call in analysis.calls}

    def measure(
        self, base: Sequence[Finding], candidate: Sequence[Finding], title: str, epoch_s: float | None = None
    ) -> EndToEnd | None:
        """Measure the script with `base` against the script with `candidate`.

        Args:
            base: Findings whose fixes are applied before; empty for the unchanged script.
            candidate: Findings whose fixes are applied after.
            title: Description for progress messages.
            epoch_s: Seconds of an epoch with `base`, if the time between epochs counts, and nothing is measured after this; None:
                those of the unchanged script.

        Returns:
            The measurement; None, with a note, if the script cannot be measured; with `is_out_of_time` and a note if only the
            time is missing, and with `is_script_failing` if a run without changes failed.
        """
        if not self._windows.has_steps:
            self.notes.append(
                "The whole script was not measured: its loop runs inside a tf.function, where steps cannot be observed."
            )
            return None
        patches = [self._proposals.patch(findings) if findings else Patch() for findings in (base, candidate)]
        if isinstance(patches[0], CannotRewrite) or isinstance(patches[1], CannotRewrite):
            return None
        try:
            window = self._windows.of(self._edits_of(candidate), epoch_s)
        except UnknownEpoch:
            self.notes.append(f"The whole script was not measured: {_why_epochs_matter(candidate)}")
            return None
        if epoch_s is not None and not self._is_usual(window, title):
            return None
        if not self._has_time(window, len(self._early_runs(patches, window))):
            return EndToEnd(REFUSED, is_out_of_time=True, missing_s=self._missing_s)
        problem = self._problem_of_text(candidate)
        if problem:
            return EndToEnd(BROKEN, note=problem, is_other_text=True)
        # Losses and the time between epochs are those of whole runs.
        is_of_step = any(finding.is_of_step for finding in candidate)
        takes_turns = window.request.takes_turns and not is_of_step and window.epochs is None
        early = {} if takes_turns or is_of_step else self._early_runs(patches, window)
        # The losses of runs that start alike are compared.
        request = replace(window.request, start_seed=START_SEED) if is_of_step else window.request
        # One change is dropped whether it is slower or makes no difference; of several, only a loss leads to the culprit.
        is_gain_only = len(candidate) == len(base) + 1

        def on_progress(progress: Progress) -> None:
            self._on_progress(msgspec.structs.replace(progress, text=f"{title}: {progress.text}"))

        with overlays(patches[0].files, patches[1].files) as (before, after), self._counting_interrupted(len(early)):
            sides = replace(request, overlay=before), replace(request, overlay=after)
            try:
                if takes_turns:
                    whole = measure_live_pairs(*sides, on_progress, self._deadline, is_gain_only=is_gain_only)
                else:
                    whole = measure_end_to_end(
                        *sides,
                        on_progress,
                        self._deadline,
                        is_with_gaps=window.epochs is not None,
                        is_per_element=is_of_step,
                        early=early,
                        is_gain_only=is_gain_only,
                        usual_end=self._usual_end_of(() if epoch_s is not None else base, window),
                    )
            except ScriptFailed as error:
                self.runs += max(0, error.runs - len(early))
                self.notes.append(
                    f"The whole script was not measured: without the changes, a run of it failed. {error}"
                )
                return EndToEnd(REFUSED, note=str(error), is_script_failing=True)
        if self.text_check is not None:
            self.text_check.forget_early_runs()
        if whole.before and whole.after and whole.before[0].batches != whole.after[0].batches:
            self.notes.append(
                "With the changes, one call runs several batches: its step times are per batch, as without the changes."
            )
        self.runs += whole.runs - len(early)  # the check has counted those
        if window.epochs is not None:
            runs = f"The runs for {title!r}, on top of the other changes," if epoch_s is not None else ""
            whole = self._of_epochs(whole, window.epochs, candidate, runs or "The runs of the whole script")
        self._on_progress(Progress(RESULT, text=line_of_whole(title, whole)))
        if whole.how:
            self.notes.append(whole.how)
        if whole.note and (whole.speedup is None or whole.is_out_of_time):
            self.notes.append(whole.note)
        return whole

    @contextmanager
    def _counting_interrupted(self, done: int) -> Iterator[None]:
        """Count the runs that Ctrl-C has left, of which some were counted by the check of the text."""
        try:
            yield
        except RunsInterrupted as error:
            self.runs += max(0, error.result.runs - done)
            raise

    def window_of(self, edits: Sequence[Edit]) -> ScriptWindow | None:
        """Return how the script with these edits will be measured against the unchanged one; None if it will not be."""
        if not self._windows.has_steps:
            return None
        try:
            window = self._windows.of(edits)
        except UnknownEpoch:
            return None
        return window if window.runs_s() <= self._deadline - self._clock() else None

    def _is_usual(self, window: ScriptWindow, title: str) -> bool:
        """Whether the fewest runs end in the usual time; otherwise a note says that they are not made."""
        if self._usual_end is None or self._clock() + window.runs_s() <= self._usual_end:
            return True
        runs = f"{2 * MIN_PAIRS} runs would take about {format_ns(window.runs_s() * NS_PER_S)} more"
        self.notes.append(
            f"Not measured beside other changes: {title}: {runs}. Run `advisor fix` again when these are written."
        )
        return False

    def _usual_end_of(self, base: Sequence[Finding], window: ScriptWindow) -> float | None:
        """When to leave a measurement undecided; early enough for that of all changes, which follows one on top of others."""
        if self._usual_end is None:
            return None
        return self._usual_end - (window.runs_s() if base else 0.0)

    def _early_runs(self, patches: Sequence[Patch | CannotRewrite], window: ScriptWindow) -> dict[str, EarlyRun]:
        """The runs of both sides that have checked their texts and can be those of the first turn."""
        check = self.text_check
        if check is None:
            return {}
        runs = {
            name: check.early_run(patch, window)
            for name, patch in zip(("before", "after"), patches, strict=True)
            if isinstance(patch, Patch)
        }
        return {name: run for name, run in runs.items() if run is not None}

    def _edits_of(self, findings: Sequence[Finding]) -> tuple[Edit, ...]:
        return edits_of(findings, {call.id: call for call in self._analysis.calls})

    def _of_epochs(self, whole: EndToEnd, window: EpochWindow, candidate: Sequence[Finding], runs: str) -> EndToEnd:
        """The measurement over whole epochs, with a note about the runs.

        It is `broken` if the changed script still makes the dataset in every epoch, although a change makes it once.

        Args:
            whole: The measurement.
            window: The window of each run.
            candidate: The changes.
            runs: What the note calls the runs.
        """
        read = [statistics.median(run.datasets for run in runs) for runs in (whole.before, whole.after) if runs]
        is_made_once = any(finding.fix is not None and is_building_once(finding.fix) for finding in candidate)
        if is_made_once and len(read) == 2 and read[1] >= read[0] > 0:
            note = "With the changes, the loop still reads another dataset in every epoch."
            return EndToEnd(BROKEN, note=note, is_other_text=True)
        if whole.speedup is None:
            return whole
        what = "the script makes the dataset" if is_made_once else "TensorFlow destroys the iterator"
        self.notes.append(
            f"{runs} were timed over {format_epochs(window.epochs)} each: the time per step includes the "
            f"time between epochs, in which {what}."
        )
        return replace(whole, epochs=window.epochs)

    def _problem_of_text(self, findings: Sequence[Finding]) -> str:
        """Why the changed text differs from what was proved; empty if it does not, or if that is unknown.

        Changes of the training step were not proved before, and the runs show whether the dataset is the same.
        """
        findings = [finding for finding in findings if not finding.is_of_step]
        patch = self._proposals.patch(findings) if findings else Patch()
        if self.text_check is None or isinstance(patch, CannotRewrite):
            return ""
        verdict = self.text_check.check(self._edits_of(findings), patch)
        return verdict.note if verdict.is_broken else ""

    def seconds_to_reserve(self, findings: Sequence[Finding], least_trials_s: float | None = None) -> float:
        """Estimate the seconds to prove any of these fixes, in the fewest runs if there is no time for more.

        Args:
            findings: The proposed fixes.
            least_trials_s: Seconds that trials need at least; None: the rest of `BUDGET_SHARE`.

        Returns:
            The seconds; 0 if even the fewest runs leave too little time for trials.
        """
        runs_s = [self._windows.least_run_s]
        for finding in findings:
            with suppress(UnknownEpoch, ValueError):
                runs_s.append(self._windows.of(self._edits_of([finding])).run_s)
        left_s = self._deadline - self._clock()
        limit_s = BUDGET_SHARE.value * left_s
        if least_trials_s is not None:
            limit_s = max(limit_s, left_s - least_trials_s)
        needs_s = (2 * pairs * max(runs_s) for pairs in (EXPECTED_PAIRS.value, MIN_PAIRS))
        return next((need_s for need_s in needs_s if need_s <= limit_s), 0.0)

    def _has_time(self, window: ScriptWindow, done: int) -> bool:
        """Whether there is time for the runs, of which some are done; otherwise a note says how much is missing."""
        need_s, left_s = window.runs_s(done), max(0.0, self._deadline - self._clock())
        if need_s <= left_s:
            return True
        self._missing_s = need_s - left_s
        filling = f" ({window.filling} steps each to fill the cache)" if window.filling else ""
        left = f"{format_ns(left_s * NS_PER_S)} of the budget remain" if left_s >= 1 else "the budget is used up"
        self.notes.append(
            f"The whole script was not measured: {2 * MIN_PAIRS - done} runs would take about "
            f"{format_ns(need_s * NS_PER_S)}{filling}, and "
            f"{left}. It needs a --budget that is about {format_ns((need_s - left_s) * NS_PER_S)} longer."
        )
        return False


def _why_epochs_matter(findings: Sequence[Finding]) -> str:
    """Why nothing can be timed without the length of an epoch, as the end of a sentence."""
    fixes = [finding.fix for finding in findings if finding.fix is not None]
    if any(is_building_once(fix) or is_untuning(fix) for fix in fixes):
        return "the gain is between epochs, and the number of steps per epoch is unknown."
    return "a cache takes effect in the second epoch, and the length of the first is unknown."
