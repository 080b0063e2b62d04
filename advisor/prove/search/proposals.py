"""Selects the fixes of a report to try next, on top of those already kept.

In: reports, the kept fixes.  Out: findings, best prediction first, whose fixes are allowed, are compatible with the kept ones and
can be written into the user's source; and the fixes left out, with reasons.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.host.calibration.proof import EARLY_SAVING, MIN_GAIN
from advisor.model.calls import Call, Site
from advisor.model.edits import Edit
from advisor.model.finding import Finding, Safety
from advisor.model.horizon import KNOWN
from advisor.model.outcome import Report
from advisor.model.pipeline import Analysis
from advisor.model.untried import Why
from advisor.predict.run_gain import with_run_gains
from advisor.prove.search.loop_result import edits_of
from advisor.rewrite.apply.writable import first_obstacle
from advisor.rewrite.fix_plan import LeftOut, Plan, is_asked, is_vectorizing, make_plan
from advisor.rewrite.patch import CannotRewrite, Patch, patch_for


class Proposals:
    """Selects fixes for one proof and records those left out."""

    def __init__(
        self,
        calls: Mapping[str, Call],
        root: Path | None,
        allow: Collection[Safety] = frozenset(),
        is_seeded: bool = True,
        only: Collection[str] = frozenset(),
        is_to_be_written: bool = False,
        analysis: Analysis | None = None,
    ) -> None:
        """Create the selection.

        Args:
            calls: Calls of the first run, to whose ids all edits refer.
            root: The project's folder; None if no source is to be changed.
            allow: As in `make_plan`.
            is_seeded: As in `make_plan`.
            only: As in `make_plan`.
            is_to_be_written: Leave out fixes that change unwritable files.
            analysis: The analysis of the script's run. It knows how often the script passes over its data, unlike those of the
                pipeline in isolation.
        """
        self._analysis = analysis
        self._is_to_be_written = is_to_be_written
        self.unwritable = ""
        """Why a file that a fix changes cannot be written, as the beginning of a sentence; empty if all can be."""
        self._calls, self._root = calls, root
        self._allow, self._is_seeded, self._only = allow, is_seeded, only
        self._left_out: dict[tuple[str, str, Site | None], LeftOut] = {}

    @property
    def calls(self) -> Mapping[str, Call]:
        """Calls of the first run by id."""
        return self._calls

    def left_out(self, tried: Sequence[Finding] = ()) -> tuple[str, ...]:
        """Return one sentence for each fix that could not be tried.

        Args:
            tried: Findings to exclude: a fix left out next to some kept fixes may have been tried next to others.
        """
        reasons = (f"{left_out.finding.title}: {left_out.reason}" for left_out in self.not_tried(tried))
        return tuple(dict.fromkeys(reasons))

    def not_tried(self, tried: Sequence[Finding] = ()) -> tuple[LeftOut, ...]:
        """Return the fixes that could not be tried, with reasons.

        Args:
            tried: As for `left_out`.
        """
        names = {finding.identity for finding in tried}
        return tuple(left_out for name, left_out in self._left_out.items() if name not in names)

    def propose(self, report: Report, kept: Sequence[Finding]) -> list[Finding]:
        """Return the findings of `report` whose fixes may be tried on top of `kept`, in the order in which to try them.

        The best prediction comes first. If the report's plan combines caches with changes that help from the first element, those
        of them that save about as much come before the caches: on top of a cache, no benchmark of later epochs could show what
        they gain in the first one.
        """
        done = {finding.fix.changes for finding in kept if finding.fix is not None}
        known = (*report.findings, *report.hints)
        new = [finding for finding in known if finding.fix is None or finding.fix.changes not in done]
        if self._analysis is not None:
            new = self._gaining(with_run_gains(self._analysis, new))
        plan = self._plan(new)
        for left_out in plan.left_out:
            if left_out.finding.fix is not None and (not self._only or left_out.finding.rule in self._only):
                self._leave_out(left_out)
        chosen = []
        for finding in plan.findings:
            obstacle = self._obstacle(finding, kept)
            if obstacle is None:
                chosen.append(finding)
            else:
                self._leave_out(obstacle)
        early = _worth_trying_first(report, chosen)
        return sorted(chosen, key=lambda finding: finding.fix is None or finding.fix.edits not in early)

    def _gaining(self, findings: Sequence[Finding]) -> list[Finding]:
        """Leave out what gains nothing in the known number of epochs, such as a cache in a run that reads its data once.

        A report on the script itself has no such findings, but one on the pipeline in isolation does not know the epochs.
        """
        gaining = []
        for finding in findings:
            run = finding.over_run
            is_counted = finding.is_delayed and run is not None and run.basis == KNOWN
            if is_counted and finding.gain < 1 + MIN_GAIN.value and not self.is_asked(finding):
                self._leave_out(LeftOut(finding, run.sentence if run is not None else "", Why.SMALL_GAIN))
            else:
                gaining.append(finding)
        return gaining

    def propose_for_pipeline(self, report: Report, kept: Sequence[Finding]) -> list[Finding]:
        """As `propose`, without changes of the training step, which cannot be tried on the pipeline alone."""
        return [finding for finding in self.propose(report, kept) if not finding.is_of_step]

    def without_passes(self) -> Proposals:
        """Return the same selection for findings whose gains are not those of a run with several passes."""
        other = copy.copy(self)
        other._analysis = None
        return other

    def is_asked(self, finding: Finding) -> bool:
        """Whether the user asked for this fix by its rule's name, so that it is applied though something is undecided."""
        return is_asked(finding, self._only)

    def patch(self, findings: Sequence[Finding]) -> Patch | CannotRewrite:
        """Return the combined change of the user's files, or why it cannot be made."""
        edits = edits_of(findings, self._calls)
        step_edits = [edit for finding in findings if finding.fix is not None for edit in finding.fix.step_edits]
        return Patch() if self._root is None else patch_for(edits, self._calls, self._root, step_edits=step_edits)

    def _plan(self, findings: Sequence[Finding]) -> Plan:
        return make_plan(
            [self._with_allowed_rounding(finding) for finding in findings],
            self._calls,
            self._allow,
            self._is_seeded,
            self._only,
        )

    def _with_allowed_rounding(self, finding: Finding) -> Finding:
        """The finding; where the user allows other arithmetic, its vectorised function may round otherwise."""
        fix = finding.fix
        if fix is None or fix.safety is not Safety.EXACT or not is_vectorizing(fix):
            return finding
        if Safety.NUMERICS not in self._allow or not (fix.is_auto or self.is_asked(finding)):
            return finding
        return replace(finding, fix=replace(fix, safety=Safety.NUMERICS))

    def _obstacle(self, finding: Finding, kept: Sequence[Finding]) -> LeftOut | None:
        try:
            patch = self.patch([*kept, finding])
        except ValueError:
            reason = "It conflicts with a change that is kept."
            return LeftOut(finding, reason, Why.CONFLICT, ("--only", finding.rule))
        if isinstance(patch, CannotRewrite):
            return LeftOut(finding, patch.reason, Why.CANNOT_REWRITE)
        obstacle = first_obstacle(patch.files) if self._is_to_be_written else ""
        self.unwritable = self.unwritable or obstacle
        return LeftOut(finding, f"{obstacle}.", Why.UNWRITABLE) if obstacle else None

    def _leave_out(self, left_out: LeftOut) -> None:
        self._left_out.setdefault(left_out.finding.identity, left_out)


def _worth_trying_first(report: Report, proposed: Sequence[Finding]) -> set[tuple[Edit, ...]]:
    """The edits of the plan's changes that are not delayed, if others are, and if the epochs of the run were counted.

    Changes that save little are left out: a trial takes a minute, which a small budget needs for the cache.
    """
    plan = report.outlook.plan if report.outlook is not None else None
    if plan is None or plan.over_run is None or plan.over_run.passes is None:
        return set()
    members = {fix.edits for fix in (report.findings[place].fix for place in plan.findings) if fix is not None}
    planned = {finding.fix.edits: finding for finding in proposed if finding.fix and finding.fix.edits in members}
    most = max((_saved_share(finding) for finding in planned.values() if finding.is_delayed), default=math.inf)
    return {
        edits
        for edits, finding in planned.items()
        if not finding.is_delayed and _saved_share(finding) >= EARLY_SAVING.value * most
    }


def _saved_share(finding: Finding) -> float:
    """The predicted share of the time that the change saves."""
    return 1 - 1 / finding.gain if finding.gain else 0.0
