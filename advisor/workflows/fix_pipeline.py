"""The phases of `advisor fix --pipeline-only` and `--as-if-step`: the training never runs.

In: a `FixRequest`.  Out: `FixResult`. One run of the script, held at its first element, is analysed and tries the fixes.

    held script -> profile of the pipeline alone -> analysis -> greedy loop -> check of the changed text -> report
"""

from __future__ import annotations

import shutil
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path

from advisor.model.errors import AdvisorError, OutOfTime
from advisor.model.outcome import Report
from advisor.model.run_folder import new_run_folder
from advisor.model.termination import is_interrupt
from advisor.model.units import format_ns
from advisor.model.untried import Why
from advisor.prove.search.loop_result import LoopResult, edits_of, interrupted, kept_of
from advisor.prove.search.proposals import Proposals
from advisor.prove.search.proved_text import with_proved_text
from advisor.prove.search.search_limits import SearchLimits, is_enough
from advisor.prove.session.proof_session import ProofSession
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.analyze import analyze_run
from advisor.workflows.as_if_step import Imagined, imagined
from advisor.workflows.calibrate import calibrate_run
from advisor.workflows.fix_phases import FixPhases
from advisor.workflows.fix_request import FixResult


class PipelineFixing(FixPhases):
    """One run of `fix` on the pipeline alone."""

    _wait_after: float | None = None
    """The share of the imagined steps that is waiting with all kept changes; None if it is not measured."""

    def run(self) -> FixResult:
        """Analyse the pipeline alone, in the same run that tries the fixes; the training never runs."""
        script = self._request.script
        name = (script.module or "module") if script.path is None else script.path.stem
        with (
            new_run_folder(script.out, name) as run_folder,
            temporary_folder("fix") as folder,
        ):
            deadline = self._budget.end
            step = self._imagined_step()
            step_ns = step.step_ns
            session = self._session(Path(folder), step.consumed, step.calls, deadline, as_if_step_ns=step_ns)
            report: Report | None = None
            proposals: Proposals | None = None
            try:
                with ExitStack() as stack:
                    with self._phase("analysis"):
                        try:
                            stack.enter_context(session)
                            self._count_runs(session)
                            profile = session.profile(())
                        except OutOfTime:
                            raise self._too_slow("held at its first element and profiled") from None
                        for part in profile.iterdir():
                            shutil.move(part, run_folder / part.name)
                        calibrate_run(run_folder, deadline, self._on_progress)
                        report = analyze_run(run_folder, self._rules, self._settings)
                    proposals = self._proposals_of(report)
                    if self._candidates(report, proposals):
                        with self._phase("trials"):
                            self._try_all(session, report, proposals, step_ns)
            except KeyboardInterrupt as error:
                if not is_interrupt(error) or report is None or proposals is None:
                    raise
                self._loop_result = kept_of(error, self._loop_result)
            self._collect_facts(session)
            self._check_text(report, proposals)
            self._notes.append(
                f"The training was not run: a wait of {format_ns(step_ns)}, which takes no core, replaced each step."
                if step_ns
                else "The training was not run: the report covers the pipeline alone, which may not be what limits the training."
            )
            waits = (report.analysis.verdict.input_wait_share, self._wait_after) if step_ns else (None, None)
            return self._conclude(report, proposals, self._loop_result, None, waits)

    def _try_all(self, session: ProofSession, report: Report, proposals: Proposals, step_ns: int) -> None:
        """Try the proposed fixes; `_loop_result` holds what is known at any time."""
        deadline = self._budget.end
        self._loop_result = self._try_fixes(session, report, proposals, deadline, self._limits(report))
        if self._loop_result.why is Why.PROCESS_ENDED:
            return
        self._loop_result = self._with_cheapest(session, self._loop_result, report, proposals, deadline)
        self._read_calls(session, self._loop_result, proposals)
        self._wait_after = self._wait_at_the_end(session, self._loop_result, proposals) if step_ns else None

    def _check_text(self, report: Report, proposals: Proposals) -> None:
        """Check the changed text; Ctrl-C keeps what was proved until then."""
        if self._loop_result.is_interrupted:
            return
        check = self._text_check(report)
        try:
            with self._phase("check of the changed text"):
                self._loop_result = with_proved_text(self._loop_result, proposals, check, self._notes.append)
        except KeyboardInterrupt as error:
            if not is_interrupt(error):
                raise
            self._loop_result = interrupted(self._loop_result, "before the changed text was checked")
        self._runs += check.runs

    def _limits(self, report: Report) -> SearchLimits:
        more_time = f"`{self._commands.longer()}` allows more."
        if self._request.is_pipeline_only:
            return SearchLimits(more_time=more_time)
        return SearchLimits(partial(is_enough, report.analysis), more_time=more_time)

    def _imagined_step(self) -> Imagined:
        """The imagined step; its length is 0 if none is asked for."""
        as_if = self._request.as_if
        if as_if is None:
            return Imagined(0)
        request = replace(self._request.script, deadline=self._budget.analysis_end)
        try:
            step = imagined(as_if, request, self._rules, self._settings, self._on_progress)
        except OutOfTime:
            raise self._too_slow("measured") from None
        self._runs += as_if.speedup is not None
        return step

    def _wait_at_the_end(self, session: ProofSession, loop: LoopResult, proposals: Proposals) -> float | None:
        """The share of the imagined steps that is waiting with all kept changes; None if it is not measured."""
        if not loop.kept:
            return None
        try:
            report = analyze_run(session.profile(edits_of(loop.kept, proposals.calls)), self._rules, self._settings)
        except AdvisorError:
            return None
        return report.analysis.verdict.input_wait_share
