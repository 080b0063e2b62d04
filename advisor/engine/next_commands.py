"""The commands that come next for a finding: one that judges its diff, and one that tries its fix.

In: an `Analysis`, findings with their diffs, settings.  Out: the findings with both commands, where the run can be repeated.
"""

from __future__ import annotations

import shlex
from collections.abc import Iterable
from dataclasses import replace

from advisor.model.finding import Finding, Safety
from advisor.model.pipeline import Analysis
from advisor.model.settings import Settings
from advisor.rewrite.fix_plan import options_for


def argv_of(analysis: Analysis) -> tuple[str, ...]:
    """Return the script with its arguments, as words for a command line; empty if the run was not one that can be repeated."""
    recording = analysis.recording
    if recording is None or recording.target != " ".join(recording.argv):
        return ()
    return recording.argv


def with_commands(analysis: Analysis, findings: Iterable[Finding], settings: Settings) -> tuple[Finding, ...]:
    """Return the findings with the commands to go on with.

    Args:
        analysis: The analysis.
        findings: The findings, with their diffs.
        settings: The permitted safety levels; the commands permit them, too.
    """
    argv = argv_of(analysis)
    calls = {call.id: call for call in analysis.calls}
    allow = frozenset(Safety(level) for level in settings.allow)
    present = [word for level in settings.allow for word in ("--allow", level)]
    seeded = analysis.recording is None or analysis.recording.is_reproducible

    def prove_command(finding: Finding) -> str:
        return shlex.join(["advisor", "prove", "--patch", "-", *present, *argv]) if argv and finding.diff else ""

    def fix_command(finding: Finding) -> str:
        options = options_for(finding, calls, allow, seeded)
        if not argv or options is None:
            return ""
        only = () if "--only" in options else ("--only", finding.rule)
        return shlex.join(["advisor", "fix", *present, *options, *only, *argv])

    return tuple(
        replace(finding, prove_command=prove_command(finding), fix_command=fix_command(finding)) for finding in findings
    )
