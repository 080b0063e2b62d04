"""Says which command permits the fixes that `advisor fix` does not try by itself.

In: an `Analysis`, its findings, settings.  Out: one sentence with the exact command, or an empty text.
"""

from __future__ import annotations

import shlex
from collections.abc import Sequence

from advisor.engine.next_commands import argv_of
from advisor.model.finding import Finding, Safety
from advisor.model.pipeline import Analysis
from advisor.model.settings import Settings
from advisor.model.units import NS_PER_S, format_count, step_option
from advisor.rewrite.fix_plan import permission_for


def permission_sentence(analysis: Analysis, findings: Sequence[Finding], settings: Settings) -> str:
    """Return a sentence such as `2 fixes need your permission: advisor fix --allow rerandomized train.py`.

    Fixes that need `--only` are named by a command of their own, because it excludes all other fixes.

    Args:
        analysis: The analysis.
        findings: The findings of the report.
        settings: The permitted safety levels.

    Returns:
        The sentence; empty if no fix needs a permission, or if the run was not one of a script that can be run again.
    """
    recording, argv = analysis.recording, argv_of(analysis)
    if recording is None or not argv:
        return ""
    calls = {call.id: call for call in analysis.calls}
    allow = frozenset(Safety(level) for level in settings.allow)
    seeded = recording.is_reproducible
    groups: dict[bool, list[tuple[str, ...]]] = {}
    for finding in findings:
        options = permission_for(finding, calls, allow, seeded)
        if options:
            groups.setdefault("--only" in options, []).append(options)
    step_ns = recording.as_if_step_ns
    mode = () if step_ns is None else ("--as-if-step", step_option(step_ns / NS_PER_S))
    present = [option for level in settings.allow for option in ("--allow", level)]
    sentences = []
    for needed in (groups[key] for key in sorted(groups)):
        pairs = dict.fromkeys(
            pair for options in (present, *needed) for pair in zip(options[::2], options[1::2], strict=True)
        )
        command = shlex.join(["advisor", "fix", *mode, *(word for pair in pairs for word in pair), *argv])
        who = "1 fix needs" if len(needed) == 1 else f"{format_count(len(needed))} fixes need"
        sentences.append(f"{who} your permission: {command}")
    return "; ".join(sentences)
