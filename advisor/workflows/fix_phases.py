"""What both ways of `advisor fix` share: sessions, proposals, the loop over the fixes, and the result.

In: a `FixRequest`.  Out: the base class of `advisor.workflows.fix` (the whole script) and `advisor.workflows.fix_pipeline` (the
pipeline alone).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.request import RESULT, CaptureRequest, Progress
from advisor.host.calibration.proof import LEAST_TRIAL_S
from advisor.host.file_clock import file_time_ns
from advisor.model.call_graph import CallGraph
from advisor.model.calls import Call
from advisor.model.edits import Edit
from advisor.model.errors import AdvisorError, NotWritable, OutOfTime
from advisor.model.finding import Finding, Safety
from advisor.model.outcome import Report
from advisor.model.units import NS_PER_S, format_ns
from advisor.model.untried import Why
from advisor.prove.budget import Budget
from advisor.prove.measure.end_to_end_result import EndToEnd
from advisor.prove.measure.script_windows import ScriptWindow
from advisor.prove.outcomes import ProofFacts, is_proved, report_of
from advisor.prove.phase_times import PhaseTimes
from advisor.prove.search.first_pass import FirstPass
from advisor.prove.search.fixed_numbers import with_cheapest
from advisor.prove.search.greedy_loop import prove_fixes
from advisor.prove.search.loop_result import LoopResult, edits_of
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.remaining_pauses import EpochEnds
from advisor.prove.search.search_limits import SearchLimits
from advisor.prove.session.carried_state import with_state_of
from advisor.prove.session.held_process import HeldProcess
from advisor.prove.session.proof_session import ProofSession
from advisor.prove.texts.text_check import TextCheck
from advisor.prove.trial.trial_result import REFUSED
from advisor.rewrite.apply.writable import uncommitted
from advisor.rewrite.patch import CannotRewrite, Patch
from advisor.rewrite.project import project_root
from advisor.workflows.analyze import analyze_run
from advisor.workflows.fix_request import FixRequest, FixResult

if TYPE_CHECKING:
    from advisor.engine import LoadedRule
    from advisor.model.settings import Settings

OnProgress = Callable[[Progress], None]


class FixPhases:
    """One run of `advisor fix`; subclasses know the order of its phases."""

    def __init__(
        self, request: FixRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: OnProgress
    ) -> None:
        self._request, self._rules, self._settings, self._on_progress = request, rules, settings, on_progress
        self._commands = request.commands
        self._loop_result = LoopResult()
        """What was tried and kept until now."""
        self._proposed: list[Finding] = []
        self._whole: EndToEnd | None = None
        """What the whole script has shown until now."""
        self._budget = Budget(request.budget_s, time.monotonic(), trials_s=request.trials_s, usual_s=request.usual_s)
        self._began_ns = file_time_ns()
        self._runs = self._runs_of_session = 0
        self._notes: list[str] = []
        self._written: tuple[str, ...] = ()
        self._graph: CallGraph | None = None
        self._times = PhaseTimes(lambda: self._runs)
        self._phase = self._times.measure

    def _proposals_of(self, report: Report) -> Proposals:
        analysis = report.analysis
        recording = analysis.recording
        script = self._request.script.path or _file_of_module(report) or Path("module.py")
        return Proposals(
            {call.id: call for call in analysis.calls},
            project_root(script),
            frozenset(Safety(level) for level in self._settings.allow),
            is_seeded=recording is None or recording.is_reproducible,
            only=frozenset(self._request.only),
            is_to_be_written=self._request.is_to_be_written,
            analysis=analysis,
        )

    def _candidates(self, report: Report, proposals: Proposals) -> list[Finding]:
        """Return the findings to try.

        Raises:
            NotWritable: All of them change files that cannot be written.
        """
        self._on_progress(Progress(RESULT, text=report.analysis.verdict.sentence))
        candidates = self._proposed = proposals.propose(report, ())
        if candidates:
            titles = "; ".join(finding.title for finding in candidates)
            self._on_progress(Progress(RESULT, text=f"To be tried: {titles}."))
        if not candidates and proposals.unwritable:
            raise NotWritable(
                f"{proposals.unwritable}, so no change was tried: --write could not write it. The analysis is in "
                f"{report.run_folder}. Without --write, changes are tried and shown."
            )
        return candidates

    def _session(
        self,
        folder: Path,
        consumed: Call | None,
        calls: tuple[Call, ...],
        deadline: float,
        lost: frozenset[str] = frozenset(),
        as_if_step_ns: int = 0,
        analysed: HeldProcess | None = None,
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
            request, consumed, seconds, self._on_progress, calls,
            lost=lost, as_if_step_ns=as_if_step_ns, analysed=analysed,
        )  # fmt: skip

    def _try_fixes(
        self,
        session: ProofSession,
        report: Report,
        proposals: Proposals,
        deadline: float,
        limits: SearchLimits,
        epoch_ends: EpochEnds | None = None,
    ) -> LoopResult:
        return prove_fixes(
            session,
            report,
            {call.id: call for call in report.analysis.calls},
            proposals.propose_for_pipeline,
            lambda path: analyze_run(with_state_of(report.analysis, path), self._rules, self._settings),
            deadline,
            self._on_progress,
            limits,
            proposals.is_asked,
            LEAST_TRIAL_S.value,
            first_pass=FirstPass(proposals, report.analysis),
            epoch_ends=epoch_ends,
        )

    def _with_cheapest(
        self, session: ProofSession, loop: LoopResult, report: Report, proposals: Proposals, deadline: float
    ) -> LoopResult:
        """Compare AUTOTUNE with numbers, if it is known how fast the training takes the elements."""
        verdict, recording = report.analysis.verdict, report.analysis.recording
        if verdict.steps is None or verdict.input_wait_share is None or recording is None or recording.host is None:
            return loop
        if recording.is_pipeline_alone:
            return loop
        step_ns = verdict.steps.mean_ns * (1 - verdict.input_wait_share)
        cores = recording.host.cores
        return with_cheapest(session, loop, proposals.calls, step_ns, cores, deadline, self._on_progress)

    def _read_calls(self, session: ProofSession, loop: LoopResult, proposals: Proposals) -> None:
        try:
            self._graph = session.call_graph(edits_of(loop.kept, proposals.calls))
        except AdvisorError:  # the text check then reports that the text is not proved
            self._graph = None

    def _text_check(
        self, report: Report, window_of: Callable[[Sequence[Edit]], ScriptWindow | None] | None = None
    ) -> TextCheck:
        script = self._request.script
        request = CaptureRequest(Path("unused"), script.path, script.module, script.args, in_place=script.in_place)
        return TextCheck(
            request,
            report.analysis.calls,
            self._graph,
            self._budget.end,
            self._on_progress,
            window_of or (lambda edits: None),
        )

    def _count_runs(self, session: ProofSession) -> None:
        self._runs += session.runs - self._runs_of_session
        self._runs_of_session = session.runs

    def _collect_facts(self, session: ProofSession) -> None:
        self._count_runs(session)
        self._written = session.written_files
        self._notes += session.notes

    def _too_slow(self, phase: str) -> OutOfTime:
        script = self._request.script
        name = f"-m {script.module}" if script.path is None else str(script.path)
        budget = format_ns(self._request.budget_s * NS_PER_S)
        return OutOfTime(
            f"{name} was stopped and nothing was tried: it was not {phase} before --budget {budget} was used up. Allow more time."
        )

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
        self._request.on_concluding()  # from here on, Ctrl-C must not lose what minutes have shown
        tried = [attempt.finding for attempt in loop.attempts]
        if loop.is_interrupted and not loop.untried:
            untried = [finding for finding in self._proposed if finding.as_proposed not in _as_proposed(tried)]
            loop = replace(loop, untried=tuple(untried))
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
            left_out=proposals.left_out(tried),
            commands=self._commands,
            not_tried=proposals.not_tried(tried),
            written_files=self._written,
            notes=tuple(self._notes),
            waits=waits,
            phases=self._times.phases,
        )
        proved = patch if is_applied else Patch()
        is_dead = loop.why is Why.PROCESS_ENDED and all(attempt.trial.verdict == REFUSED for attempt in loop.attempts)
        problem = loop.stopped_because if is_dead and whole is None else ""
        return FixResult(report_of(report, loop, whole, about), proved, changed, loop.is_interrupted, problem)


def _as_proposed(findings: Sequence[Finding]) -> list[Finding]:
    return [finding.as_proposed for finding in findings]


def _changed_ns(path: Path) -> int:
    """Time of the last change in Unix ns, or now if the file is gone. Includes the ctime, as editors may preserve the mtime."""
    try:
        status = path.stat()
    except OSError:
        return file_time_ns()
    return max(status.st_mtime_ns, status.st_ctime_ns)


def _file_of_module(report: Report) -> Path | None:
    """A file of the user, for a script run with `-m`."""
    return next((Path(call.site.file) for call in report.analysis.calls if call.site and call.library is None), None)
