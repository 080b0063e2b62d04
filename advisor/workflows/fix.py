"""The phases of `advisor fix`: analyse, try fixes on the dataset, prove all of them on the whole script.

In: a `FixRequest`.  Out: `FixResult`: the report with its fixes, comparison and proof, and the patch to write. This file writes
nothing.

    analyze -> plan -> proof session (greedy loop on the pipeline alone) -> patch -> alternating end-to-end runs -> report

With `--pipeline-only` and `--as-if-step`, `advisor.workflows.fix_pipeline` does it.

Each fix is judged on the pipeline alone, which compares hundreds of elements in seconds. All fixes together are judged on the
whole script: changes from which the training is measured not to gain are not applied. Changes of the training step are judged on
the whole script only.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import CaptureRequest
from advisor.engine.run import SourceLines
from advisor.host.calibration.proof import LEAST_TRIAL_S
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Finding
from advisor.model.outcome import Report
from advisor.model.termination import is_interrupt
from advisor.model.untried import Why
from advisor.predict.remade_calls import calls_with_lost_caches
from advisor.predict.structure import consumed_call
from advisor.prove.budget import check_budget
from advisor.prove.ends.early_ends import add_step
from advisor.prove.measure.run_steps import main_series
from advisor.prove.search.loop_result import Attempt, LoopResult, interrupted, kept_of
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.proved_text import with_proved_text
from advisor.prove.search.remaining_pauses import EpochEnds
from advisor.prove.search.script_proof import prove_on_script
from advisor.prove.search.search_limits import SearchLimits, gain_left, is_enough
from advisor.prove.search.step_trials import to_be_tried
from advisor.prove.search.whole_script import WholeScript
from advisor.prove.session.held_analysis import HeldAnalysis
from advisor.prove.texts.text_check import TextCheck
from advisor.prove.trial.trial_result import REFUSED, Trial
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import analyze
from advisor.workflows.fix_phases import FixPhases, OnProgress
from advisor.workflows.fix_pipeline import PipelineFixing
from advisor.workflows.fix_request import FixRequest, FixResult, check_writable

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.settings import Settings
    from advisor.prove.session.proof_session import ProofSession


_LEAST_TRIALS = 3
"""Trials for which there is time at least if the budget is not given: one may have to fill a cache first."""


def fix(request: FixRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress) -> FixResult:
    """Find, try and prove fixes.

    Args:
        request: The script and the limits.
        rules: The rules to ask.
        settings: The settings of the script's folder.
        on_progress: Called with progress messages.

    Returns:
        The report and the patch. If nothing can be proved, the report says why.

    Raises:
        AdvisorError: The script cannot be analysed, cannot be written, or the budget is too short.
        ScriptFailed: The script failed before anything was measured.
    """
    check_budget(request.budget_s)
    check_writable(request)
    is_alone = request.is_pipeline_only or request.as_if is not None
    kind = PipelineFixing if is_alone else _ScriptFixing
    try:
        return kind(request, rules, settings, on_progress).run()
    except AdvisorError as error:
        add_step(error, request.commands)
        raise


@dataclass(frozen=True, slots=True)
class _Ends:
    """When the work on the pipeline alone ends; times of the monotonic clock."""

    trials: float
    """Trials of single changes are expected to end by then."""
    pipeline: float
    """So is everything on the pipeline alone, to leave time for the whole script."""
    limit: float
    """Whatever still runs is stopped."""


def _overtime(session: ProofSession, ends: _Ends) -> float:
    """Let trials take longer than intended, and return until when."""
    session.trials_end = ends.pipeline
    return ends.pipeline


class _ScriptFixing(FixPhases):
    """One run of `fix` on the whole script."""

    def run(self) -> FixResult:
        """Run all phases in order."""
        with HeldAnalysis(self._budget.end) as analysis:
            return self._run(analysis)

    def _run(self, analysis: HeldAnalysis) -> FixResult:
        began_ns = time.time_ns()
        request = replace(self._request.script, deadline=self._budget.analysis_end)
        try:
            with self._phase("analysis"):
                report = analyze(request, self._rules, self._settings, self._on_progress, analysis.capture)
                self._runs += 1
        except OutOfTime:
            raise self._too_slow("measured") from None
        proposals = self._proposals_of(report)
        try:
            self._prove(report, proposals, analysis, startup_s_of(report, began_ns))
        except KeyboardInterrupt as error:
            if not is_interrupt(error):
                raise
            self._loop_result = kept_of(error, self._loop_result)
        return self._conclude(report, proposals, self._loop_result, self._whole)

    def _prove(self, report: Report, proposals: Proposals, analysis: HeldAnalysis, startup_s: float) -> None:
        """Try the proposed fixes and prove what is kept; `_loop_result` and `_whole` hold what is known at any time."""
        candidates = self._candidates(report, proposals)
        if not candidates:
            return
        script = self._request.script
        capture_request = CaptureRequest(
            Path("unused"), script.path, script.module, script.args,
            self._settings.steps, self._settings.warmup, self._settings.seconds, in_place=script.in_place,
        )  # fmt: skip
        whole = WholeScript(
            capture_request, report.analysis, proposals, startup_s, self._budget.end, self._on_progress,
            usual_end=self._budget.usual_end,
        )  # fmt: skip
        if not all(finding.is_of_step for finding in candidates):
            least_s = startup_s + _LEAST_TRIALS * LEAST_TRIAL_S.value if self._request.trials_s is not None else None
            pipeline_end = self._budget.pipeline_end(whole.seconds_to_reserve(candidates, least_s), startup_s)
            no_time = self._budget.why_no_trial(pipeline_end, startup_s)
            if no_time:
                missing_s = self._budget.least_s(startup_s) - self._budget.seconds
                self._loop_result = LoopResult(
                    stopped_because=no_time, why=Why.NO_TIME, untried=tuple(candidates), missing_s=max(0.0, missing_s)
                )
                return
            ends = _Ends(self._budget.trials_end(pipeline_end, startup_s), pipeline_end, self._budget.end - startup_s)
            with self._phase("trials"):
                self._loop_result = self._try_on_dataset(report, proposals, ends, analysis, whole)
            if self._loop_result.is_interrupted:
                return
        analysis.end()  # its memory and its accelerator are needed
        waiting = to_be_tried(candidates)
        self._loop_result = replace(self._loop_result, attempts=(*self._loop_result.attempts, *waiting))
        has_step = any(finding.is_of_step for finding in candidates)  # measured with seeds, and so in runs of their own
        check = whole.text_check = self._text_check(report, None if has_step else whole.window_of)
        try:
            with self._phase("whole script"):
                self._prove_on_script(proposals, check, whole)
        finally:
            self._runs += whole.runs + check.runs
            self._notes += whole.notes

    def _prove_on_script(self, proposals: Proposals, check: TextCheck, whole: WholeScript) -> None:
        """Check the changed text, and measure the whole script; Ctrl-C keeps what was proved until then."""
        try:
            self._loop_result = with_proved_text(self._loop_result, proposals, check, self._notes.append)
            self._loop_result, self._whole = prove_on_script(self._loop_result, whole, proposals.is_asked)
            if self._loop_result.is_interrupted or self._loop_result.why is Why.SCRIPT_UNSTABLE:
                return
            measured = self._loop_result.kept
            self._loop_result = with_proved_text(self._loop_result, proposals, check, self._notes.append)
            if self._loop_result.kept != measured:
                self._whole = None
        except KeyboardInterrupt as error:
            if not is_interrupt(error):
                raise
            when = "before the changed text was checked"
            self._loop_result = interrupted(self._loop_result, when, Why.INTERRUPTED_SCRIPT)

    def _try_on_dataset(
        self, report: Report, proposals: Proposals, ends: _Ends, analysis: HeldAnalysis, whole: WholeScript
    ) -> LoopResult:
        """Run the greedy loop on the dataset that the training consumes; without a session, refuse every fix.

        Trials that are not expected to end in time are not begun. One that still runs then may go on up to the limit: without it,
        the whole script has nothing to prove.
        """
        main = report.analysis.main
        consumed = consumed_call(report.analysis, main) if main is not None else None
        if consumed is None:
            return self._all_refused(report, proposals, "The call that creates the consumed dataset is unknown.")
        try:
            with ExitStack() as stack:
                folder = stack.enter_context(temporary_folder("fix"))
                lost = calls_with_lost_caches(report.analysis, main) if main is not None else frozenset[str]()
                session = self._session(
                    folder, consumed, report.analysis.calls, ends.limit, lost, analysed=analysis.take()
                )
                stack.callback(self._collect_facts, session)
                try:
                    stack.enter_context(session)
                except ScriptFailed:
                    raise
                except AdvisorError as error:  # the whole script may still be run
                    return self._all_refused(report, proposals, str(error))
                if ends.trials < ends.pipeline:
                    session.trials_end = ends.trials
                limits = replace(self._limits(report, whole), overtime=partial(_overtime, session, ends))
                at_ends = EpochEnds(proposals, report.analysis, self._is_reported)
                loop = self._try_fixes(session, report, proposals, ends.trials, limits, at_ends)
                self._loop_result = loop
                if loop.why is Why.PROCESS_ENDED:
                    return loop
                loop = self._with_cheapest(session, loop, report, proposals, ends.pipeline)
                self._loop_result = loop
                self._read_calls(session, loop, proposals)
        except KeyboardInterrupt as error:
            if not is_interrupt(error):
                raise
            return kept_of(error, self._loop_result)
        return self._loop_result

    def _limits(self, report: Report, whole: WholeScript) -> SearchLimits:
        return SearchLimits(
            is_enough=partial(is_enough, report.analysis),
            gain_left=partial(gain_left, report.analysis),
            needs_total=lambda edits: whole.window_of(edits) is None,
            more_time=f"`{self._commands.longer()}` allows more.",
            try_small=f"`{self._commands.pipeline_only()}` tries everything.",
        )

    def _is_reported(self, finding: Finding) -> bool:
        """Whether the rule of a finding is in use, and not silenced at its place."""
        is_loaded = any(loaded.id == finding.rule for loaded in self._rules)
        return is_loaded and finding.rule not in self._settings.ignore and not SourceLines().is_silenced(finding)

    def _all_refused(self, report: Report, proposals: Proposals, why: str) -> LoopResult:
        self._notes.append(why)
        refused = Trial(REFUSED, note=why, is_replayable=False)
        findings = proposals.propose_for_pipeline(report, ())
        return LoopResult(tuple(Attempt(finding, refused, is_kept=False) for finding in findings))


def startup_s_of(report: Report, began_ns: int) -> float:
    """Return the seconds from the script's start to its first step; 0 if unknown."""
    recording = report.analysis.recording
    series = main_series(recording) if recording is not None else None
    return max(0.0, (series.start_ns[0] - began_ns) / 1e9) if series is not None and series.start_ns else 0.0
