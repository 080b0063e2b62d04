"""The phases of `advisor fix`: analyse, try fixes on the dataset, prove all of them on the whole script.

In: a `FixRequest`.  Out: `FixResult`: the report with its fixes, comparison and proof, and the patch to write. This file writes
nothing.

    analyze -> plan -> proof session (greedy loop on the pipeline alone) -> patch -> alternating end-to-end runs -> report

Each fix is judged on the pipeline alone, which compares hundreds of elements in seconds. All fixes together are judged on the
whole script: changes from which the training is measured not to gain are not applied. Changes of the training step are judged on
the whole script only.
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import RESULT, CaptureRequest, Progress
from advisor.host.calibration.proof import LEAST_TRIAL_S
from advisor.model.call_graph import CallGraph
from advisor.model.errors import AdvisorError, OutOfTime, ScriptFailed
from advisor.model.finding import Finding, Safety
from advisor.model.outcome import Report
from advisor.model.proof import Phase
from advisor.model.recording import Call
from advisor.model.run_folder import new_run_folder
from advisor.model.termination import is_interrupt
from advisor.model.units import NS_PER_S, format_ns
from advisor.predict.remade_calls import calls_with_lost_caches
from advisor.predict.structure import consumed_call
from advisor.prove.budget import Budget, check_budget
from advisor.prove.carried_state import with_state_of
from advisor.prove.end_to_end import EndToEnd, main_series
from advisor.prove.greedy_loop import (
    Attempt,
    LoopInterrupted,
    LoopResult,
    edits_of,
    interrupted,
    is_enough,
    prove_fixes,
)
from advisor.prove.outcomes import ProofFacts, is_proved, report_of
from advisor.prove.proof_session import ProofSession
from advisor.prove.proposals import Proposals
from advisor.prove.proved_text import with_proved_text
from advisor.prove.step_trials import to_be_tried
from advisor.prove.text_check import TextCheck
from advisor.prove.trial.trial_result import REFUSED, Trial
from advisor.prove.whole_script import WholeScript, prove_on_script
from advisor.rewrite.apply.writable import uncommitted
from advisor.rewrite.fix_plan import is_seeded
from advisor.rewrite.patch import CannotRewrite, Patch
from advisor.rewrite.project import project_root
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import analyze, analyze_run
from advisor.workflows.as_if_step import step_ns_of
from advisor.workflows.calibrate import calibrate_run
from advisor.workflows.fix_request import FixRequest, FixResult, check_writable

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.settings import Settings

OnProgress = Callable[[Progress], None]


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
    return _Fixing(request, rules, settings, on_progress).run()


class _Fixing:
    """One run of `fix`."""

    def __init__(
        self, request: FixRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
    ) -> None:
        self._request, self._rules, self._settings, self._on_progress = request, rules, settings, on_progress
        self._budget = Budget(request.budget_s, time.monotonic())
        self._began_ns = time.time_ns()
        self._runs = 0
        self._notes: list[str] = []
        self._written: tuple[str, ...] = ()
        self._graph: CallGraph | None = None
        self._phases: list[Phase] = []

    def run(self) -> FixResult:
        """Run all phases in order."""
        if self._request.is_pipeline_only or self._request.as_if is not None:
            return self._run_on_pipeline()
        return self._run_on_script()

    def _run_on_script(self) -> FixResult:
        began_ns = time.time_ns()
        request = replace(self._request.script, deadline=self._budget.analysis_end)
        try:
            with self._phase("analysis"):
                report = analyze(request, self._rules, self._settings, self._on_progress)
        except OutOfTime:
            raise self._too_slow("measured") from None
        self._runs += 1
        proposals = self._proposals_of(report)
        candidates = self._candidates(report, proposals)
        if not candidates:
            return self._conclude(report, proposals, LoopResult(), None)
        script = self._request.script
        capture_request = CaptureRequest(
            Path("unused"), script.path, script.module, script.args,
            self._settings.steps, self._settings.warmup, self._settings.seconds, in_place=script.in_place,
        )  # fmt: skip
        startup_s = _startup_s(report, began_ns)
        whole = WholeScript(capture_request, report.analysis, proposals, startup_s, self._budget.end, self._on_progress)
        loop = LoopResult()
        if not all(finding.is_of_step for finding in candidates):
            deadline = self._budget.pipeline_end(whole.seconds_to_reserve(candidates), startup_s)
            no_time = self._budget.why_no_trial(deadline, startup_s)
            if no_time:
                return self._conclude(report, proposals, LoopResult(stopped_because=no_time), None)
            with self._phase("trials"):
                loop = self._try_on_dataset(report, proposals, deadline)
            if loop.is_interrupted:
                return self._conclude(report, proposals, loop, None)
        loop = replace(loop, attempts=(*loop.attempts, *to_be_tried(candidates)))
        check = whole.text_check = self._text_check(report)
        with self._phase("whole script"):
            loop, proved = self._prove_on_script(loop, proposals, check, whole)
        self._runs += whole.runs + check.runs
        self._notes += whole.notes
        return self._conclude(report, proposals, loop, proved)

    def _prove_on_script(
        self, loop: LoopResult, proposals: Proposals, check: TextCheck, whole: WholeScript
    ) -> tuple[LoopResult, EndToEnd | None]:
        """Check the changed text, and measure the whole script; Ctrl-C keeps what was proved until then."""
        try:
            loop = with_proved_text(loop, proposals, check, self._notes.append)
            loop, proved = prove_on_script(loop, whole, proposals.is_asked)
            if loop.is_interrupted:
                return loop, None
            measured = loop.kept
            loop = with_proved_text(loop, proposals, check, self._notes.append)
            return loop, proved if loop.kept == measured else None
        except KeyboardInterrupt as error:
            if not is_interrupt(error):
                raise
            return interrupted(loop, "before the changed text was checked"), None

    @contextmanager
    def _phase(self, name: str) -> Iterator[None]:
        """Measure the wall time of a block."""
        began = time.monotonic()
        try:
            yield
        finally:
            self._phases.append(Phase(name, time.monotonic() - began))

    def _try_on_dataset(self, report: Report, proposals: Proposals, deadline: float) -> LoopResult:
        """Run the greedy loop on the dataset that the training consumes; without a session, refuse every fix."""
        main = report.analysis.main
        consumed = consumed_call(report.analysis, main) if main is not None else None
        if consumed is None:
            return self._all_refused(report, proposals, "The call that creates the consumed dataset is unknown.")
        try:
            with ExitStack() as stack:
                folder = stack.enter_context(temporary_folder("fix"))
                lost = calls_with_lost_caches(report.analysis, main) if main is not None else frozenset[str]()
                session = self._session(folder, consumed, report.analysis.calls, deadline, lost)
                stack.callback(self._collect_facts, session)
                try:
                    stack.enter_context(session)
                except ScriptFailed:
                    raise
                except AdvisorError as error:  # the whole script may still be run
                    return self._all_refused(report, proposals, str(error))
                loop = self._loop(session, report, proposals, deadline)
                self._read_calls(session, loop, proposals)
                return loop
        except LoopInterrupted as stop:
            return stop.result

    def _read_calls(self, session: ProofSession, loop: LoopResult, proposals: Proposals) -> None:
        try:
            self._graph = session.call_graph(edits_of(loop.kept, proposals.calls))
        except AdvisorError:  # the text check then reports that the text is not proved
            self._graph = None

    def _text_check(self, report: Report) -> TextCheck:
        script = self._request.script
        request = CaptureRequest(Path("unused"), script.path, script.module, script.args, in_place=script.in_place)
        return TextCheck(request, report.analysis.calls, self._graph, self._budget.end, self._on_progress)

    def _collect_facts(self, session: ProofSession) -> None:
        self._runs += session.runs
        self._written = session.written_files
        self._notes += session.notes

    def _run_on_pipeline(self) -> FixResult:
        """Analyse the pipeline alone, in the same run that tries the fixes; the training never runs."""
        script = self._request.script
        name = (script.module or "module") if script.path is None else script.path.stem
        with (
            new_run_folder(script.out, name) as run_folder,
            temporary_folder("fix") as folder,
        ):
            deadline = self._budget.end
            step_ns = self._imagined_step()
            session = self._session(Path(folder), None, (), deadline, as_if_step_ns=step_ns)
            wait_after: float | None = None
            try:
                with ExitStack() as stack:
                    with self._phase("analysis"):
                        try:
                            stack.enter_context(session)
                            profile = session.profile(())
                        except OutOfTime:
                            raise self._too_slow("held at its first element and profiled") from None
                        for part in profile.iterdir():
                            shutil.move(part, run_folder / part.name)
                        calibrate_run(run_folder, deadline, self._on_progress)
                        report = analyze_run(run_folder, self._rules, self._settings)
                    proposals = self._proposals_of(report)
                    if not self._candidates(report, proposals):
                        loop = LoopResult()
                    else:
                        with self._phase("trials"):
                            loop = self._loop(session, report, proposals, deadline)
                            self._read_calls(session, loop, proposals)
                            wait_after = self._wait_at_the_end(session, loop, proposals) if step_ns else None
            except LoopInterrupted as stop:
                loop = stop.result
            self._collect_facts(session)
            check = self._text_check(report)
            if not loop.is_interrupted:
                with self._phase("check of the changed text"):
                    loop = with_proved_text(loop, proposals, check, self._notes.append)
            self._runs += check.runs
            self._notes.append(
                f"The training was not run: a wait of {format_ns(step_ns)}, which takes no core, replaced each step."
                if step_ns
                else "The training was not run: the report covers the pipeline alone, which may not be what limits the training."
            )
            waits = (report.analysis.verdict.input_wait_share, wait_after) if step_ns else (None, None)
            return self._conclude(report, proposals, loop, None, waits)

    def _imagined_step(self) -> int:
        """The length of an imagined step in ns; 0 if none is asked for."""
        as_if = self._request.as_if
        if as_if is None:
            return 0
        request = replace(self._request.script, deadline=self._budget.analysis_end)
        try:
            step_ns = step_ns_of(as_if, request, self._rules, self._settings, self._on_progress)
        except OutOfTime:
            raise self._too_slow("measured") from None
        self._runs += as_if.speedup is not None
        return step_ns

    def _wait_at_the_end(self, session: ProofSession, loop: LoopResult, proposals: Proposals) -> float | None:
        """The share of the imagined steps that is waiting with all kept changes; None if it is not measured."""
        if not loop.kept:
            return None
        try:
            report = analyze_run(session.profile(edits_of(loop.kept, proposals.calls)), self._rules, self._settings)
        except AdvisorError:
            return None
        return report.analysis.verdict.input_wait_share

    def _too_slow(self, phase: str) -> AdvisorError:
        script = self._request.script
        name = f"-m {script.module}" if script.path is None else str(script.path)
        budget = format_ns(self._request.budget_s * NS_PER_S)
        return AdvisorError(
            f"{name} was stopped and nothing was tried: it was not {phase} before --budget {budget} was used up. Allow more time."
        )

    def _session(
        self,
        folder: Path,
        consumed: Call | None,
        calls: tuple[Call, ...],
        deadline: float,
        lost: frozenset[str] = frozenset(),
        as_if_step_ns: int = 0,
    ) -> ProofSession:
        script = self._request.script
        request = CaptureRequest(
            folder / "run",
            script.path,
            script.module,
            script.args,
            show_output=script.show_output,
            in_place=script.in_place,
        )
        seconds = deadline - time.monotonic()
        return ProofSession(
            request, consumed, seconds, self._on_progress, calls, lost=lost, as_if_step_ns=as_if_step_ns
        )

    def _loop(self, session: ProofSession, report: Report, proposals: Proposals, deadline: float) -> LoopResult:
        return prove_fixes(
            session,
            report,
            {call.id: call for call in report.analysis.calls},
            partial(_of_pipeline, proposals),
            lambda path: analyze_run(with_state_of(report.analysis, path), self._rules, self._settings),
            deadline,
            self._on_progress,
            partial(is_enough, report.analysis) if not self._request.is_pipeline_only else lambda trial: False,
            proposals.is_asked,
            LEAST_TRIAL_S.value,
        )

    def _proposals_of(self, report: Report) -> Proposals:
        analysis = report.analysis
        recording = analysis.recording
        script = self._request.script.path or _file_of_module(report) or Path("module.py")
        return Proposals(
            {call.id: call for call in analysis.calls},
            project_root(script),
            frozenset(Safety(level) for level in self._settings.allow),
            is_seeded=recording is None or is_seeded(recording),
            only=frozenset(self._request.only),
            is_to_be_written=self._request.is_to_be_written,
            analysis=analysis,
        )

    def _candidates(self, report: Report, proposals: Proposals) -> list[Finding]:
        """Return the findings to try.

        Raises:
            AdvisorError: All of them change files that cannot be written.
        """
        self._on_progress(Progress(RESULT, text=report.analysis.verdict.sentence))
        candidates = proposals.propose(report, ())
        if candidates:
            titles = "; ".join(finding.title for finding in candidates)
            self._on_progress(Progress(RESULT, text=f"To be tried: {titles}."))
        if not candidates and proposals.unwritable:
            raise AdvisorError(
                f"{proposals.unwritable}, so no change was tried: --write could not write it. The analysis is in "
                f"{report.run_folder}. Without --write, changes are tried and shown."
            )
        return candidates

    def _all_refused(self, report: Report, proposals: Proposals, why: str) -> LoopResult:
        self._notes.append(why)
        refused = Trial(REFUSED, note=why, is_replayable=False)
        findings = _of_pipeline(proposals, report, ())
        return LoopResult(tuple(Attempt(finding, refused, is_kept=False) for finding in findings))

    def _conclude(
        self,
        report: Report,
        proposals: Proposals,
        loop: LoopResult,
        whole: EndToEnd | None,
        waits: tuple[float | None, float | None] = (None, None),
    ) -> FixResult:
        """The result.

        Args:
            report: The first analysis.
            proposals: Creates the patch.
            loop: What was tried and kept.
            whole: The measurement of the whole script; None if there is none.
            waits: Input wait of imagined steps, before and after.
        """
        patch = proposals.patch(loop.kept) if loop.kept else Patch()
        if isinstance(patch, CannotRewrite):
            self._notes.append(patch.reason)
            patch = Patch()
        is_applied = bool(patch.files) and is_proved(whole) and not loop.is_interrupted
        changed = next((path for path in patch.files if _changed_ns(path) >= self._began_ns), None)
        if changed is not None:
            self._notes.append(
                f"{changed} has changed since the script was started; the measurements refer to the earlier version."
            )
        self._notes += [
            f"{path} has uncommitted changes: commit them before --write, so that git shows this change separately."
            for path in uncommitted(patch.files)
        ]
        if self._request.only:  # the user has asked for what is tried, and for nothing else
            report = replace(report, permission="")
        about = ProofFacts(
            runs=self._runs,
            seconds=self._budget.spent_s,
            diff=patch.diff,
            is_applied=is_applied,
            calls={call.id: call for call in report.analysis.calls},
            left_out=proposals.left_out([attempt.finding for attempt in loop.attempts]),
            written_files=self._written,
            notes=tuple(self._notes),
            waits=waits,
            phases=tuple(self._phases),
        )
        proved = patch if is_applied else Patch()
        return FixResult(report_of(report, loop, whole, about), proved, changed, loop.is_interrupted)


def _of_pipeline(proposals: Proposals, report: Report, kept: Sequence[Finding]) -> list[Finding]:
    """What may be tried on the pipeline alone: changes of the training step are not."""
    return [finding for finding in proposals.propose(report, kept) if not finding.is_of_step]


def _changed_ns(path: Path) -> int:
    """Time of the last change in Unix ns, or now if the file is gone. Includes the ctime, as editors may preserve the mtime."""
    try:
        status = path.stat()
    except OSError:
        return time.time_ns()
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _startup_s(report: Report, began_ns: int) -> float:
    """Seconds from the script's start to its first step."""
    recording = report.analysis.recording
    series = main_series(recording) if recording is not None else None
    return max(0.0, (series.start_ns[0] - began_ns) / 1e9) if series is not None and series.start_ns else 0.0


def _file_of_module(report: Report) -> Path | None:
    """A file of the user, for a script run with `-m`."""
    return next((Path(call.site.file) for call in report.analysis.calls if call.site and call.library is None), None)
