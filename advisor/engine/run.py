"""Evaluate all rules and rank their findings.

In: an `Analysis`, loaded rules, settings. Out: a `Report` with findings (largest predicted gain first), hints, notes, a
row for each failed rule, and the number of findings silenced by the user.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import replace
from pathlib import Path

from advisor.engine.ask import ask
from advisor.engine.next_commands import with_commands
from advisor.engine.permissions import permission_sentence
from advisor.engine.rule_file import LoadedRule
from advisor.engine.rule_process import ask_apart
from advisor.model.calls import Site
from advisor.model.edits import Edit, StepEdit
from advisor.model.finding import Evidence, Finding, Rejected, Safety
from advisor.model.horizon import KNOWN
from advisor.model.outcome import Report, RuleError
from advisor.model.outlook import Outlook
from advisor.model.pipeline import Analysis
from advisor.model.regular_files import read_regular
from advisor.model.settings import Settings, not_loaded_sentence
from advisor.model.units import format_epochs, format_range
from advisor.model.version import __version__
from advisor.predict.best_plan import outlook
from advisor.predict.run_gain import with_run_gains
from advisor.predict.timing import with_timing
from advisor.rewrite.fix_plan import make_plan

UNCERTAIN_SPEEDUP = 1.2
"""A change that may gain so much is tried where nothing else can be, even if it most likely gains nothing."""
MOST_UNCERTAIN = 2
"""So many are tried at most, because each trial takes about half a minute and most likely gains nothing."""
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
    rejected: list[Rejected] = []
    errors: list[RuleError] = []
    thresholds = {loaded.id: loaded.rule.min_speedup for loaded in rules}
    fallbacks = {loaded.id for loaded in rules if loaded.rule.is_fallback}
    about_wait = {loaded.id for loaded in rules if loaded.rule.needs_input_bound and not loaded.rule.is_fallback}
    advise_on_step = {loaded.id for loaded in rules if loaded.rule.is_hint}
    lines = SourceLines()

    def is_worthwhile(finding: Finding) -> bool:
        # A fallback is asked when nothing else is known, so that its answer is never too small.
        return finding.rule in fallbacks or _is_worthwhile(finding, thresholds[finding.rule])

    def is_reported(finding: Finding) -> bool:
        return finding.rule not in settings.ignore and not lines.is_silenced(finding)

    def is_hint(finding: Finding) -> bool:
        return finding.rule in advise_on_step or finding.is_of_step

    def is_about_input(finding: Finding) -> bool:
        # One that the user silenced, or that is a hint, would leave the reader without a next step.
        if not is_worthwhile(finding) or not is_reported(finding) or is_hint(finding):
            return False
        # Other rules also report what only costs memory or is wrong, without a predicted gain.
        is_of_call = bool(finding.call_id or finding.iterator_id)
        return finding.rule in about_wait or (is_of_call and finding.prediction is not None)

    for loaded in sorted(rules, key=lambda loaded: loaded.rule.is_fallback):
        rule = loaded.rule
        if rule.needs_input_bound and not analysis.verdict.is_input_bound:
            continue
        if rule.is_fallback and any(map(is_about_input, findings)):
            continue
        answer = ask_apart(loaded, analysis, settings.rule_seconds) if loaded.is_apart else ask(loaded, analysis)
        answered = [_with_timing(analysis, replace(finding, rule=loaded.id)) for finding in answer.findings]
        findings += with_run_gains(analysis, answered)
        notes += answer.notes
        rejected += [replace(entry, rule=loaded.id) for entry in answer.rejected]
        errors += [RuleError(loaded.id, error) for error in answer.errors]
    worthwhile = [finding for finding in findings if is_worthwhile(finding)]
    if analysis.verdict.is_input_bound and not any(_is_tried_unasked(finding) for finding in worthwhile):
        hopeful = {loaded.id for loaded in rules if loaded.rule.is_tried_if_uncertain}
        worthwhile += _uncertain(f for f in findings if f.rule in hopeful and f not in worthwhile)
    if not analysis.verdict.is_tentative:
        # `_without_found` drops the uncertain ones that were added above.
        rejected += [_too_small(finding) for finding in findings if not is_worthwhile(finding)]
    ranked = _merge(sorted(worthwhile, key=_rank))
    reported = [finding for finding in ranked if is_reported(finding)]
    with_diffs = with_commands(analysis, [_with_diff(f, analysis) for f in reported], settings)
    hints = tuple(finding for finding in with_diffs if is_hint(finding))
    with_diffs = tuple(finding for finding in with_diffs if finding not in hints)
    is_tentative = analysis.verdict.is_tentative
    if is_tentative:  # the figures of one or two steps rank the findings, but predict nothing
        with_diffs = tuple(replace(finding, prediction=None, over_run=None) for finding in with_diffs)
    return Report(
        analysis=analysis,
        findings=with_diffs,
        hints=hints,
        outlook=None if is_tentative else _outlook(analysis, with_diffs, settings),
        rejected=tuple(
            entry
            for entry in _without_found(rejected, ranked, settings)
            if analysis.verdict.is_input_bound or entry.rule in advise_on_step
        ),
        permission=permission_sentence(analysis, with_diffs, settings),
        notes=tuple(dict.fromkeys(notes)),
        rule_errors=tuple(errors),
        silenced=len(ranked) - len(reported),
        warnings=(*analysis.warnings, *_not_loaded(settings)),
        advisor_version=__version__,
    )


def _possible(finding: Finding) -> float:
    """The upper bound of the predicted gain: of a step, and of the whole run if its passes are known."""
    run = finding.over_run
    predictions = [finding.prediction, run.prediction if run is not None and run.basis == KNOWN else None]
    return min((prediction.high for prediction in predictions if prediction is not None), default=1.0)


def _is_tried_unasked(finding: Finding) -> bool:
    """Whether `advisor fix` tries its change without being asked to."""
    fix = finding.fix
    return fix is not None and fix.is_auto and fix.is_provable and not fix.assumptions


def _uncertain(findings: Iterable[Finding]) -> list[Finding]:
    """The changes with the largest possible gains, although no gain is the most likely: only a trial tells."""
    hopeful = [
        finding
        for finding in findings
        if _possible(finding) >= UNCERTAIN_SPEEDUP and _is_tried_unasked(finding) and not finding.is_of_step
    ]
    hopeful.sort(key=_possible, reverse=True)
    return [
        replace(
            finding, because=f"{finding.because} Whether it gains anything cannot be predicted: only a trial tells."
        )
        for finding in hopeful[:MOST_UNCERTAIN]
    ]


def _too_small(finding: Finding) -> Rejected:
    """A change whose predicted gain is below the threshold of its rule."""
    gain, over, run = finding.prediction, "", finding.over_run
    assert gain is not None
    if finding.is_delayed and run is not None and run.prediction is not None and run.passes is not None:
        gain, over = run.prediction, f" over {format_epochs(run.passes)}"
    reason = f"the predicted gain is too small to be proved, {format_range(gain.value, gain.low, gain.high)}{over}"
    return Rejected(
        finding.rule, finding.title, reason, (Evidence("predicted_speedup", gain.value, "ratio"),), finding.site
    )


def _without_found(
    rejected: Iterable[Rejected], findings: Iterable[Finding], settings: Settings
) -> tuple[Rejected, ...]:
    """The rejected changes, each once, without those that a finding proposes and those of ignored rules."""
    proposed = {(finding.rule, finding.title) for finding in findings}
    entries = {(entry.rule, entry.change): entry for entry in rejected if entry.rule not in settings.ignore}
    return tuple(entry for key, entry in entries.items() if key not in proposed)


def _not_loaded(settings: Settings) -> tuple[str, ...]:
    """A warning if rules were not loaded because code from a folder that is only read must not run."""
    sentence = not_loaded_sentence(settings)
    return (sentence,) if sentence else ()


def _outlook(analysis: Analysis, findings: Sequence[Finding], settings: Settings) -> Outlook | None:
    """The bottleneck of the main pipeline, and the best of the sets of fixes that `advisor fix` would try."""
    if analysis.main is None:
        return None
    calls = {call.id: call for call in analysis.calls}
    seeded = analysis.recording is None or analysis.recording.is_reproducible
    plan = make_plan(findings, calls, frozenset(Safety(level) for level in settings.allow), seeded)
    return outlook(analysis, analysis.main, findings, plan.findings)


def _is_worthwhile(finding: Finding, min_speedup: float) -> bool:
    """Whether the predicted gain of a step is large enough, and that of the whole run if its passes are known."""
    if finding.prediction is None:
        return True
    run = finding.over_run
    is_counted = run is not None and run.basis == KNOWN
    return finding.prediction.value >= min_speedup and (not is_counted or finding.gain >= min_speedup)


def _rank(finding: Finding) -> tuple[float, bool, bool, bool, str, int]:
    """Sort key: the change that saves most time over the run first; if its passes are not counted, over a later pass.

    Ties: what helps from the first element, the pipeline before the training step, fixes before advice, then by position in
    the source.
    """
    site = finding.site
    is_of_step = finding.call_id is None and finding.iterator_id is None
    return (
        -finding.gain,
        finding.is_delayed,
        is_of_step,
        finding.fix is None,
        site.file if site else "",
        site.line if site else 0,
    )


def _merge(ranked: Iterable[Finding]) -> list[Finding]:
    """Drop duplicates: findings with the same edits, or of the same rule at the same place."""
    kept: list[Finding] = []
    changes: set[tuple[Edit | StepEdit, ...]] = set()
    places: set[tuple[str, str, Site | str | None]] = set()
    for finding in ranked:
        place = (finding.rule, finding.title, finding.site or finding.call_id or finding.iterator_id)
        if place in places or (finding.fix is not None and finding.fix.changes in changes):
            continue
        kept.append(finding)
        places.add(place)
        if finding.fix is not None:
            changes.add(finding.fix.changes)
    return kept


def _with_timing(analysis: Analysis, finding: Finding) -> Finding:
    """The finding, its fix not tried unasked where it depends on when the pipeline runs; this is judged for every rule."""
    fix, other = finding.fix, finding.otherwise
    return replace(
        finding,
        fix=None if fix is None else with_timing(analysis, fix),
        otherwise=None if other is None else _with_timing(analysis, other),
    )


def _with_diff(finding: Finding, analysis: Analysis) -> Finding:
    if finding.fix is None or finding.diff is not None:
        return finding
    from advisor.rewrite.patch import diff_for, why_not

    calls = {call.id: call for call in analysis.calls}
    roots = _roots(analysis)
    for root in roots:
        diff = diff_for(finding.fix, calls, root)
        if diff is not None:
            # The diff shows it better, except in a hint, which has one line.
            return replace(finding, diff=diff, code=finding.code if finding.fix.is_of_step else "")
    if finding.otherwise is None:
        return finding
    other = _with_diff(replace(finding.otherwise, rule=finding.rule, over_run=finding.over_run), analysis)
    if other.diff is None:
        return finding
    reason = why_not(finding.fix, calls, roots[0]) or ""
    return replace(other, because=f"{other.because} {reason}".strip())


def _roots(analysis: Analysis) -> tuple[Path, ...]:
    """Folders with the user's code: the working directory of the script and the folder of its file."""
    roots = [Path.cwd()]
    if analysis.recording is not None:
        if analysis.recording.cwd:
            roots.insert(0, Path(analysis.recording.cwd))
        roots += [(roots[0] / word).parent for word in analysis.recording.argv[:1] if word.endswith(".py")]
    return tuple(dict.fromkeys(root.resolve() for root in roots))


class SourceLines:
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
