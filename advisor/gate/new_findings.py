"""Compares the findings of one or more runs with the entries of the baseline.

In: reports, entries.  Out: how many findings are new, which they are, and the entries that a baseline with all of them has.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

from advisor.gate.baseline import Key, counts_of, difference, entries_of, key_of, text_of_call
from advisor.model.check_result import BaselineEntry, CheckedFinding
from advisor.model.finding import Finding
from advisor.model.outcome import Report


@dataclass(frozen=True, slots=True)
class Found:
    """A finding with what identifies it in the baseline."""

    finding: Finding
    call: str
    key: Key


@dataclass(frozen=True, slots=True)
class NewFindings:
    """The findings that the baseline lacks."""

    num_new: int
    """The number that the runs have, aggregated for each rule and call."""
    per_run: tuple[int, ...]
    """The number in each run."""
    num_known: int
    """Findings of the runs that the baseline holds."""
    findings: tuple[CheckedFinding, ...]
    """The new ones, largest gain first."""


def findings_of(report: Report) -> tuple[Found, ...]:
    """Return the findings of a run in the order of the report."""
    findings: list[Found] = []
    for finding in report.findings:
        call = text_of_call(report.analysis, finding)
        findings.append(Found(finding, call, key_of(finding.rule, call)))
    return tuple(findings)


def most_of(runs: Sequence[Sequence[Found]]) -> Counter[Key]:
    """Return the largest number of findings of each key in a run: a finding has vanished if no run has it."""
    most: Counter[Key] = Counter()
    for run in runs:
        most |= _counts(run)
    return most


def new_findings(
    runs: Sequence[Sequence[Found]], entries: Sequence[BaselineEntry], aggregation: str = "median"
) -> NewFindings:
    """Compare the findings of the runs with the entries.

    Args:
        runs: The findings of each run.
        entries: The entries of the script.
        aggregation: Which of the runs' counts is used for each rule and call: the lowest (`optimistic`), the highest
            (`pessimistic`) or the median (of two runs the lower one, so that a finding of one run alone does not count).
    """
    known, most = counts_of(entries), most_of(runs)
    new: Counter[Key] = Counter()
    for key in most:
        counts = sorted(_counts(run)[key] for run in runs)
        place = {"optimistic": 0, "pessimistic": -1}.get(aggregation, (len(counts) - 1) // 2)
        new[key] = max(0, counts[place] - known[key])
    return NewFindings(
        num_new=sum(new.values()),
        per_run=tuple(sum((_counts(run) - known).values()) for run in runs),
        num_known=sum(min(count, known[key]) for key, count in most.items()),
        findings=tuple(finding for key, count in new.items() for finding in _checked(runs, key, count)),
    )


def grown(entries: Sequence[BaselineEntry], runs: Sequence[Sequence[Found]]) -> tuple[BaselineEntry, ...]:
    """Return the entries, extended so that they hold every finding of every run."""
    merged = {key_of(entry.rule, entry.call): entry for entry in entries}
    counts = counts_of(entries)
    for run in runs:
        for entry in difference(entries_of((one.finding.rule, one.call) for one in run), _entries(merged, counts)):
            key = key_of(entry.rule, entry.call)
            merged.setdefault(key, entry)
            counts[key] += entry.count
    return _entries(merged, counts)


@dataclass(frozen=True, slots=True)
class EditedCall:
    """A known finding whose call was edited: the runs have the rule on another call of the method, and the old one is gone."""

    rule: str
    before: str
    after: str


def edited_calls(entries: Sequence[BaselineEntry], runs: Sequence[Sequence[Found]]) -> tuple[EditedCall, ...]:
    """Pair findings that the entries lack with entries that have vanished, by rule and method.

    Each vanished entry explains as many findings as it counts, so a rule that has more findings on a method than before still has
    new ones.

    Args:
        entries: What the base revision has, and the baseline.
        runs: The findings of each run.
    """
    most = most_of(runs)
    spelled = {one.key: one.call for run in runs for one in run}
    vanished = [entry for entry in entries for _ in range(max(0, entry.count - most[key_of(entry.rule, entry.call)]))]
    pairs: list[EditedCall] = []
    for (rule, _), call in sorted(spelled.items()):
        key = key_of(rule, call)
        for _ in range(most[key] - counts_of(entries)[key]):
            old = next((one for one in vanished if (one.rule, _method(one.call)) == (rule, _method(call))), None)
            if old is not None and call:
                vanished.remove(old)
                pairs.append(EditedCall(rule, old.call, call))
    return tuple(pairs)


def with_edited(entries: Sequence[BaselineEntry], edited: Sequence[EditedCall]) -> tuple[BaselineEntry, ...]:
    """Return the entries, extended by those of the edited calls as they are now."""
    counts = counts_of(entries) + Counter(key_of(one.rule, one.after) for one in edited)
    merged = {key_of(entry.rule, entry.call): entry for entry in entries}
    for one in edited:
        merged.setdefault(key_of(one.rule, one.after), BaselineEntry(one.rule, one.after))
    return _entries(merged, counts)


def _method(call: str) -> str:
    return call.partition("(")[0].strip()


def _entries(spelled: dict[Key, BaselineEntry], counts: Counter[Key]) -> tuple[BaselineEntry, ...]:
    entries = [replace(entry, count=counts[key]) for key, entry in spelled.items()]
    return tuple(sorted(entries, key=lambda entry: (entry.rule, entry.call)))


def _checked(runs: Sequence[Sequence[Found]], key: Key, count: int) -> list[CheckedFinding]:
    """Return that many findings of a key: which of several equal ones is new is unknown, so those with the smallest gain."""
    if not count:
        return []
    fullest = max(runs, key=lambda run: _counts(run)[key])
    num_runs = sum(key in _counts(run) for run in runs)
    alike = [one for one in fullest if one.key == key][-count:]
    return [
        CheckedFinding(
            one.finding.rule, one.finding.title, one.call, one.finding.site, one.finding.prediction, num_runs
        )
        for one in alike
    ]


def _counts(findings: Sequence[Found]) -> Counter[Key]:
    return Counter(one.key for one in findings)
