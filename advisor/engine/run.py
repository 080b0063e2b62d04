"""Evaluate all rules and rank their findings.

In: an `Analysis`, loaded rules, settings. Out: a `Report` with findings (largest predicted gain first), notes, a row
for each failed rule, and the number of findings silenced by the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.engine.ask import ask
from advisor.engine.loader import LoadedRule
from advisor.engine.rule_process import ask_apart
from advisor.model.finding import Edit, Finding, Safety
from advisor.model.outcome import Report, RuleError
from advisor.model.outlook import Outlook
from advisor.model.pipeline import Analysis
from advisor.model.recording import Site
from advisor.model.regular_files import read_regular
from advisor.model.settings import Settings, not_loaded_sentence
from advisor.model.version import __version__
from advisor.predict.best_plan import outlook
from advisor.predict.timing import with_timing
from advisor.rewrite.fix_plan import is_seeded, make_plan

_IGNORE = re.compile(r"#\s*advisor:\s*ignore(?:\[([^\]]*)\])?")
"""`# advisor: ignore[serial-map, scalar-map]`; without the list, all rules are ignored."""


def run_rules(analysis: Analysis, rules: Sequence[LoadedRule], settings: Settings) -> Report:
    """Evaluate the rules. A rule that raises an exception becomes a row of the report.

    Args:
        analysis: The analysis of a run.
        rules: The loaded rules.
        settings: Ignored rules, allowed safety levels, and the time limit of a rule.
    """
    findings: list[Finding] = []
    notes: list[str] = []
    errors: list[RuleError] = []
    for loaded in rules:
        if loaded.rule.needs_input_bound and not analysis.verdict.is_input_bound:
            continue
        answer = ask_apart(loaded, analysis, settings.rule_seconds) if loaded.is_apart else ask(loaded, analysis)
        findings += [_with_timing(analysis, replace(finding, rule=loaded.id)) for finding in answer.findings]
        notes += answer.notes
        errors += [RuleError(loaded.id, error) for error in answer.errors]
    thresholds = {loaded.id: loaded.rule.min_speedup for loaded in rules}
    worthwhile = [f for f in findings if f.prediction is None or f.prediction.value >= thresholds[f.rule]]
    ranked = _merge(sorted(worthwhile, key=_rank))
    lines = _SourceLines()
    reported = [f for f in ranked if f.rule not in settings.ignore and not lines.is_silenced(f)]
    with_diffs = tuple(_with_diff(f, analysis) for f in reported)
    return Report(
        analysis=analysis,
        findings=with_diffs,
        outlook=_outlook(analysis, with_diffs, settings),
        notes=tuple(dict.fromkeys(notes)),
        rule_errors=tuple(errors),
        silenced=len(ranked) - len(reported),
        warnings=(*analysis.warnings, *_not_loaded(settings)),
        advisor_version=__version__,
    )


def _not_loaded(settings: Settings) -> tuple[str, ...]:
    """A warning if rules were not loaded because code from a folder that is only read must not run."""
    sentence = not_loaded_sentence(settings)
    return (sentence,) if sentence else ()


def _outlook(analysis: Analysis, findings: Sequence[Finding], settings: Settings) -> Outlook | None:
    """The bottleneck of the main pipeline, and the best of the sets of fixes that `advisor fix` would try."""
    if analysis.main is None:
        return None
    calls = {call.id: call for call in analysis.calls}
    seeded = analysis.recording is None or is_seeded(analysis.recording)
    plan = make_plan(findings, calls, frozenset(Safety(level) for level in settings.allow), seeded)
    return outlook(analysis, analysis.main, findings, plan.findings)


def _rank(finding: Finding) -> tuple[float, bool, bool, str, int]:
    """Sort key: largest predicted gain first.

    Ties: the pipeline before the training step, fixes before advice, then by position in the source.
    """
    gain = finding.prediction.value if finding.prediction else 0.0
    site = finding.site
    is_of_step = finding.call_id is None and finding.iterator_id is None
    return -gain, is_of_step, finding.fix is None, site.file if site else "", site.line if site else 0


def _merge(ranked: Iterable[Finding]) -> list[Finding]:
    """Drop duplicates: findings with the same edits, or of the same rule at the same place."""
    kept: list[Finding] = []
    edits: set[tuple[Edit, ...]] = set()
    places: set[tuple[str, str, Site | str | None]] = set()
    for finding in ranked:
        place = (finding.rule, finding.title, finding.site or finding.call_id or finding.iterator_id)
        if place in places or (finding.fix is not None and finding.fix.edits in edits):
            continue
        kept.append(finding)
        places.add(place)
        if finding.fix is not None:
            edits.add(finding.fix.edits)
    return kept


def _with_timing(analysis: Analysis, finding: Finding) -> Finding:
    """The finding, its fix not tried unasked where it depends on when the pipeline runs; this is judged for every rule."""
    fix = finding.fix
    return finding if fix is None else replace(finding, fix=with_timing(analysis, fix))


def _with_diff(finding: Finding, analysis: Analysis) -> Finding:
    if finding.fix is None or finding.diff is not None:
        return finding
    from advisor.rewrite.patch import diff_for

    calls = {call.id: call for call in analysis.calls}
    for root in _roots(analysis):
        diff = diff_for(finding.fix, calls, root)
        if diff is not None:
            return replace(finding, diff=diff)
    return finding


def _roots(analysis: Analysis) -> tuple[Path, ...]:
    """Folders with the user's code: the working directory of the script and the folder of its file."""
    roots = [Path.cwd()]
    if analysis.recording is not None:
        if analysis.recording.cwd:
            roots.insert(0, Path(analysis.recording.cwd))
        roots += [(roots[0] / word).parent for word in analysis.recording.argv[:1] if word.endswith(".py")]
    return tuple(dict.fromkeys(root.resolve() for root in roots))


class _SourceLines:
    """The user's source lines; each file is read once."""

    def __init__(self) -> None:
        self._files: dict[str, list[str]] = {}

    def is_silenced(self, finding: Finding) -> bool:
        """Whether a line of the finding's call contains `# advisor: ignore[<rule>]`."""
        if finding.site is None:
            return False
        for line in self._lines(finding.site.file)[finding.site.line - 1 : finding.site.end_line]:
            for rules in _IGNORE.findall(line):
                if not rules or finding.rule in (name.strip() for name in rules.split(",")):
                    return True
        return False

    def _lines(self, file: str) -> list[str]:
        if file not in self._files:
            try:
                self._files[file] = read_regular(Path(file)).decode("utf-8", errors="replace").splitlines()
            except OSError:  # analysed on another machine, or the file was moved
                self._files[file] = []
        return self._files[file]
