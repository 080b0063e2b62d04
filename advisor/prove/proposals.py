"""Which fixes of a report are worth trying now, on top of those that are kept.

In: reports, the fixes that are kept.  Out: findings, best prediction first, whose fixes are allowed, go together with the kept
ones and can be written into the user's source; and what was left out, with the reason.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

from advisor.model.finding import Finding, Safety
from advisor.model.outcome import Report
from advisor.model.recording import Call, Site
from advisor.prove.greedy_loop import edits_of
from advisor.rewrite.apply.writable import first_obstacle
from advisor.rewrite.fix_plan import Plan, is_asked, make_plan
from advisor.rewrite.patch import CannotRewrite, Patch, patch_for


class Proposals:
    """One per proof: it remembers what it left out."""

    def __init__(
        self,
        calls: Mapping[str, Call],
        root: Path | None,
        allow: Collection[Safety] = frozenset(),
        is_seeded: bool = True,
        only: Collection[str] = frozenset(),
        is_to_be_written: bool = False,
    ) -> None:
        """`calls`: of the first run, whose ids all edits use. `root`: the project's folder; None: nothing is to be written.

        `is_to_be_written`: what cannot be written is not proposed. The others are those of `make_plan`.
        """
        self._is_to_be_written = is_to_be_written
        self.unwritable = ""
        """Why a file that a fix would change cannot be written, as the beginning of a sentence; empty: none was found."""
        self._calls, self._root = calls, root
        self._allow, self._is_seeded, self._only = allow, is_seeded, only
        self._left_out: dict[tuple[str, str, Site | None], str] = {}

    @property
    def calls(self) -> Mapping[str, Call]:
        """Those of the first run."""
        return self._calls

    def left_out(self, tried: Sequence[Finding] = ()) -> tuple[str, ...]:
        """One sentence for each fix that could not be tried.

        Those of `tried` are not among them: what was left out beside some fixes may have been tried beside others, and a rule may
        propose again what is already kept.
        """
        names = {_name_of(finding) for finding in tried}
        reasons = {name: reason for name, reason in self._left_out.items() if name not in names}
        return tuple(dict.fromkeys(f"{title}: {reason}" for (title, _, _), reason in reasons.items()))

    def propose(self, report: Report, kept: Sequence[Finding]) -> list[Finding]:
        """The fixes of `report` that may be tried on top of `kept`."""
        done = {finding.fix.edits for finding in kept if finding.fix is not None}
        fresh = [finding for finding in report.findings if finding.fix is None or finding.fix.edits not in done]
        plan = self._plan(fresh)
        for each in plan.left_out:
            if each.finding.fix is not None and (not self._only or each.finding.rule in self._only):
                self._leave_out(each.finding, each.reason)
        chosen = []
        for finding in plan.findings:
            reason = self._obstacle([*kept, finding])
            if reason is None:
                chosen.append(finding)
            else:
                self._leave_out(finding, reason)
        return chosen

    def is_asked(self, finding: Finding) -> bool:
        """Whether the user asked for this fix by its rule's name, so that it is applied though something is undecided."""
        return is_asked(finding, self._only)

    def patch(self, findings: Sequence[Finding]) -> Patch | CannotRewrite:
        """The change of the user's files that all these fixes make together."""
        edits = edits_of(findings, self._calls)
        return Patch() if self._root is None else patch_for(edits, self._calls, self._root)

    def _plan(self, findings: Sequence[Finding]) -> Plan:
        return make_plan(findings, self._calls, self._allow, self._is_seeded, self._only)

    def _obstacle(self, findings: Sequence[Finding]) -> str | None:
        try:
            patch = self.patch(findings)
        except ValueError:
            return "It does not go together with what is kept."
        if isinstance(patch, CannotRewrite):
            return patch.reason
        obstacle = first_obstacle(patch.files) if self._is_to_be_written else ""
        self.unwritable = self.unwritable or obstacle
        return f"{obstacle}." if obstacle else None

    def _leave_out(self, finding: Finding, reason: str) -> None:
        self._left_out.setdefault(_name_of(finding), reason)


def _name_of(finding: Finding) -> tuple[str, str, Site | None]:
    return finding.title, finding.rule, finding.site
