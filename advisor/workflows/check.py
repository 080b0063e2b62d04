"""The phases of `advisor check`: measure, compare with the base revision, apply the budgets, update the baseline.

In: a `CheckRequest`.  Out: `Check`, and advisor-baseline.json, which shrinks when findings vanish.

    settings, baseline and git first (errors in them cost no run) -> analyze the runs -> base and head alternately
    -> with a base, new findings are confirmed -> budgets
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.gate.base_revision import read_base
from advisor.gate.baseline import BASELINE_NAME, Baseline, baseline_to_bytes, difference, read_baseline, shrink
from advisor.gate.evaluate import Measured, evaluate
from advisor.gate.new_findings import (
    EditedCall,
    Found,
    NewFindings,
    edited_calls,
    findings_of,
    grown,
    most_of,
    new_findings,
    with_edited,
)
from advisor.model.budgets import DEFAULT_RATIO, FINDINGS, STEP_TIME, Budget, budgets_of, runs_of
from advisor.model.check_result import BaselineEntry, BaselineUse, Check
from advisor.model.errors import AdvisorError
from advisor.model.outputs import check_output, write_output
from advisor.model.own_files import FileKind
from advisor.model.text import message_of, printable
from advisor.rewrite.project import project_root
from advisor.workflows.analyze import Request, analyze
from advisor.workflows.base_runs import compare_with_base
from advisor.workflows.confirm_findings import look_again

if TYPE_CHECKING:
    from advisor.capture.request import Progress
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.settings import Settings

_NOT_CI = ("", "0", "false", "no")
"""Values of the environment variable CI that do not mean a CI job."""


@dataclass(frozen=True, slots=True)
class CheckRequest:
    """What to check, and how."""

    request: Request
    """The script, or the first of the saved runs."""
    more_runs: tuple[Path, ...] = ()
    """Further saved runs of the same script, aggregated with the first."""
    runs: int | None = None
    """How often to run the script; None: as the settings say."""
    against: str | None = None
    """The base revision; None: no comparison."""
    baseline: Path | None = None
    """The baseline; None: advisor-baseline.json in the script's folder or the nearest one above, else in that of the project."""
    is_updating: bool = False
    """Record all findings of these runs as known."""

    @property
    def script(self) -> str:
        """The script's path or the module's name."""
        return self.request.module or str(self.request.path)


@dataclass(frozen=True, slots=True)
class Checked:
    """The result of a check, and the reports behind it."""

    check: Check
    reports: tuple[Report, ...]


def announcement(asked: CheckRequest, settings: Settings) -> str:
    """Say how often the script will run, to be shown before the first run."""
    from advisor.model.sequential_test import MAX_PAIRS, MIN_PAIRS
    from advisor.model.units import format_many

    runs = asked.runs or runs_of(settings.budgets, asked.script)
    then = ""
    if asked.against is not None:
        then = f", then {MIN_PAIRS} to {MAX_PAIRS} times alternating with the text of {asked.against}, unless no file differs"
        then += ". If findings are new, both run once more"
    return (
        f"The script will be run {format_many(runs, 'time')}{then}. Each run is stopped after its window. Files that it "
        "writes are discarded, except with --in-place."
    )


def check(
    asked: CheckRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: Callable[[Progress], None]
) -> Checked:
    """Measure a script, or read saved runs of it, and apply its budgets.

    Args:
        asked: What to check.
        rules: The rules to ask.
        settings: The settings, as returned by `advisor.workflows.analyze.load`.
        on_progress: Called with progress messages.

    Raises:
        AdvisorError: The target cannot be analysed, the baseline is damaged, or the revision does not exist.
        ScriptFailed: The script failed before anything was measured.
    """
    path = _baseline_path(asked)
    read_baseline(path)  # a damaged one is reported before anything runs
    check_output("--baseline", path, FileKind.BASELINE)
    texts = None if asked.against is None else read_base(asked.against, _folder_of(asked.request), asked.request.path)
    reports = _analyze_all(asked, rules, settings, on_progress)
    budgets = budgets_of(settings.budgets, _script_of(asked, reports[0]))
    base = None
    if texts is not None:
        budgets = _with_ratio(budgets)
        limit = next((b.ratio_limit for b in budgets if b.quantity == STEP_TIME and b.ratio_limit is not None), 1.0)
        base = compare_with_base(asked.request, texts, reports[0], limit, settings, on_progress)
    runs = [findings_of(report) for report in reports]
    budget = next((budget for budget in budgets if budget.quantity == FINDINGS), None)
    entries: tuple[BaselineEntry, ...] = ()
    use: BaselineUse | None = None
    if budget is not None or asked.is_updating:
        entries, use = _use_baseline(asked, path, runs, reports)
    aggregation = "median" if budget is None else budget.aggregation
    new = new_findings(runs, entries, aggregation)
    notes = _notes(reports)
    if budget is not None and new.num_new and texts is not None and not texts.is_same_text:
        again = look_again(asked.request, texts, rules, settings, on_progress)
        known = entries if again.base is None else grown(entries, [findings_of(again.base)])
        seen = runs if again.head is None else [*runs, findings_of(again.head)]
        repeated = new_findings(seen, known, aggregation)
        edited = edited_calls(known, seen)
        confirmed = new_findings(seen, with_edited(known, edited), aggregation)
        notes += [*again.notes, *_not_confirmed(new, repeated, texts.revision), *_edited(edited, repeated)]
        new = confirmed
    # most rules find nothing without steps, and that must not pass
    is_counted = bool(new.num_new) or all(map(_has_steps, reports))
    measured = Measured(reports, new.per_run if is_counted else None, new.num_new, base)
    result = Check(
        target=reports[0].analysis.target,
        outcomes=evaluate(budgets, measured),
        new_findings=() if budget is None else new.findings,
        baseline=None if use is None else replace(use, known=new.num_known),
        base=base,
        run_folders=tuple(report.run_folder for report in reports if report.run_folder),
        notes=tuple(dict.fromkeys(notes)),
    )
    return Checked(result, reports)


def is_in_ci() -> bool:
    """Return whether this process belongs to a CI job."""
    return os.environ.get("CI", "").strip().lower() not in _NOT_CI


def _analyze_all(
    asked: CheckRequest, rules: Sequence[LoadedRule], settings: Settings, on_progress: Callable[[Progress], None]
) -> tuple[Report, ...]:
    requests = [asked.request, *(replace(asked.request, path=path, out=None) for path in asked.more_runs)]
    if not asked.request.is_saved_run:
        runs = asked.runs or runs_of(settings.budgets, asked.script)
        requests += [replace(asked.request, out=None)] * (runs - 1)
    return tuple(analyze(request, rules, settings, on_progress) for request in requests)


def _with_ratio(budgets: tuple[Budget, ...]) -> tuple[Budget, ...]:
    """Return budgets of which one has a ratio: --against would compare nothing otherwise."""
    if any(budget.ratio_limit is not None for budget in budgets):
        return budgets
    return (*budgets, Budget(STEP_TIME, "error", ratio_limit=DEFAULT_RATIO))


def _has_steps(report: Report) -> bool:
    return report.analysis.verdict.steps is not None or report.analysis.verdict.input_wait_share is not None


def _notes(reports: Sequence[Report]) -> list[str]:
    """Return what limits the check: rules that failed, and runs of different scripts."""
    notes = [f"The rule {error.rule} failed: {error.message}" for report in reports for error in report.rule_errors]
    targets = list(dict.fromkeys(report.analysis.target for report in reports))
    if len(targets) > 1:
        notes.append(f"The runs are not of the same script: {', '.join(targets)}.")
    return notes


def _not_confirmed(new: NewFindings, confirmed: NewFindings, revision: str) -> list[str]:
    """Say which findings that the baseline lacks do not count."""
    dropped = Counter((finding.rule, finding.call) for finding in new.findings)
    dropped -= Counter((finding.rule, finding.call) for finding in confirmed.findings)
    return [
        f"{rule}{f' at {call}' if call else ''} is not in the baseline, but does not count: {revision} has it too, or a second "
        "run did not have it."
        for rule, call in dropped
    ]


def _edited(calls: Sequence[EditedCall], new: NewFindings) -> list[str]:
    """Say which of the findings that would be new are known under another text of their call."""
    would_be_new = {(finding.rule, finding.call) for finding in new.findings}
    return [
        f"{one.rule} at {one.after} is not in the baseline, but does not count: it was known at {one.before}, which is gone. "
        "`advisor check --update-baseline` records the new text."
        for one in calls
        if (one.rule, one.after) in would_be_new
    ]


def _use_baseline(
    asked: CheckRequest, path: Path, runs: Sequence[Sequence[Found]], reports: Sequence[Report]
) -> tuple[tuple[BaselineEntry, ...], BaselineUse]:
    """Return the entries of the script that count, after writing what remains of them, or all findings if asked to."""
    stored = read_baseline(path)  # again: another check may have changed it while the script ran
    baseline = stored or Baseline()
    script = _name_in_baseline(asked, reports[0], path.parent)
    before = baseline.entries(script)
    failed = {error.rule for report in reports for error in report.rule_errors}
    is_conclusive = all(map(_has_steps, reports))
    kept = shrink(before, most_of(runs), lambda entry: is_conclusive and entry.rule not in failed)
    after, note = kept, ""
    if asked.is_updating:
        after = grown(kept, runs)
    elif kept != before and is_in_ci():
        after = before
        note = (
            f"This is a CI job, so {path} was left as it is: run `advisor check` elsewhere and commit the smaller file."
        )
    elif before and not is_conclusive:
        note = f"No steps were observed, so no entry was removed from {path}: findings may be missing for that reason alone."
    use = BaselineUse(
        str(path), stored is not None, added=difference(after, before), removed=difference(before, kept), note=note
    )
    if after == before and (stored is not None or not asked.is_updating):
        return after, use
    content = baseline_to_bytes(baseline.with_entries(script, after))
    try:
        write_output("--baseline", path, FileKind.BASELINE, content)
    except AdvisorError as error:
        if asked.is_updating:
            raise
        return before, replace(use, note=f"{message_of(error)}, so it was left as it is.")  # no reason to fail a check
    return after, replace(use, is_written=True)


def _baseline_path(asked: CheckRequest) -> Path:
    if asked.baseline is not None:
        return asked.baseline
    folder = _folder_of(asked.request).resolve()
    top = project_root(folder / "script.py")
    for place in (folder, *folder.parents):
        if place == top or (place / BASELINE_NAME).exists():
            return place / BASELINE_NAME
    return top / BASELINE_NAME


def _folder_of(request: Request) -> Path:
    """Return the script's folder; for a module or a saved run, the current one."""
    return Path.cwd() if request.path is None or request.is_saved_run else request.path.parent


def _script_of(asked: CheckRequest, report: Report) -> str:
    """Return the script's path or the module's name; for a saved run, as it was started."""
    recording = report.analysis.recording
    argv = recording.argv if recording is not None and asked.request.is_saved_run else ()
    if not argv:
        return asked.script
    return argv[1] if argv[0] == "-m" and len(argv) > 1 else argv[0]


def _name_in_baseline(asked: CheckRequest, report: Report, folder: Path) -> str:
    """Return the script's path relative to the baseline, or `-m module`."""
    script, recording = _script_of(asked, report), report.analysis.recording
    if asked.request.module is not None or (recording is not None and recording.argv[:1] == ("-m",)):
        return printable(f"-m {script}")
    start = Path(recording.cwd) if recording is not None and asked.request.is_saved_run else Path.cwd()
    try:
        name = (start / script).resolve().relative_to(folder.resolve())
    except (OSError, ValueError):  # recorded elsewhere
        name = Path(script)
    return printable(name.as_posix())
