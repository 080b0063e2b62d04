"""The baseline: findings that are known and do not fail the check, in a file that is committed.

In: `advisor-baseline.json` and the findings of the runs.  Out: which findings are new, and the file's next content.

A finding is identified by the script, its rule and the text of its call, without spaces and trailing commas: code that moves or
is wrapped keeps its entries. Equal findings are counted. The file shrinks when a finding vanishes, and grows only if asked to.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta

from advisor.model.calls import Call
from advisor.model.check_result import BaselineEntry
from advisor.model.errors import AdvisorError
from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.model.regular_files import read_regular
from advisor.model.text import printable

BASELINE_NAME = "advisor-baseline.json"
GENERATOR = "advisor check"
_SPACE = re.compile(r"\s+")
_TRAILING_COMMA = re.compile(r",(?=[)\]}])")

Key = tuple[str, str]
"""(rule, text of the call without spaces)"""


@dataclass(frozen=True, slots=True)
class Baseline:
    """The known findings of all scripts."""

    scripts: Mapping[str, tuple[BaselineEntry, ...]] = field(default_factory=dict)
    """Script (a path relative to the file, or `-m module`) -> its entries."""

    def entries(self, script: str) -> tuple[BaselineEntry, ...]:
        """Return the entries of a script."""
        return self.scripts.get(script, ())

    def with_entries(self, script: str, entries: Iterable[BaselineEntry]) -> Baseline:
        """Return a baseline in which the script has these entries; those of other scripts stay."""
        scripts = {**self.scripts, script: tuple(entries)}
        return Baseline({name: kept for name, kept in scripts.items() if kept})


def key_of(rule: str, call: str) -> Key:
    """Return what identifies a finding: two spellings of a call that differ in layout only are equal."""
    return rule, _TRAILING_COMMA.sub("", _SPACE.sub("", call))


def text_of_call(analysis: Analysis, finding: Finding) -> str:
    """Return the call that a finding is about, as written, on one line; empty if it is about none."""
    call = next((call for call in analysis.calls if call.id == finding.call_id), None)
    if call is None and finding.iterator_id is not None:
        iterators = (iterator for pipeline in analysis.pipelines for iterator in pipeline.iterators)
        call = next((it.main_call for it in iterators if it.id == finding.iterator_id), None)
    return "" if call is None else _written(call)


def _written(call: Call) -> str:
    if call.library is not None:
        return printable(f"{call.method} in {call.library}")
    return printable(" ".join(call.text.split()) or f".{call.method}(...)")


def counts_of(entries: Iterable[BaselineEntry]) -> Counter[Key]:
    """Return how many findings of each key the entries stand for."""
    counts: Counter[Key] = Counter()
    for entry in entries:
        counts[key_of(entry.rule, entry.call)] += entry.count
    return counts


def entries_of(findings: Iterable[tuple[str, str]]) -> tuple[BaselineEntry, ...]:
    """Return the entries for findings, given as (rule, call), in the order of the file."""
    merged: dict[Key, BaselineEntry] = {}
    for rule, call in sorted(findings):
        key = key_of(rule, call)
        known = merged.get(key)
        merged[key] = BaselineEntry(rule, call) if known is None else replace(known, count=known.count + 1)
    return _sorted(merged.values())


def shrink(
    entries: Sequence[BaselineEntry],
    present: Mapping[Key, int],
    may_go: Callable[[BaselineEntry], bool] = lambda entry: True,
) -> tuple[BaselineEntry, ...]:
    """Return the entries without findings that have vanished; no entry is new, and no count rises.

    Args:
        entries: The entries of a script.
        present: Number of findings of each key.
        may_go: Whether the runs could have found what an entry stands for; otherwise it stays.
    """
    left = Counter(present)
    kept: list[BaselineEntry] = []
    for entry in entries:
        key = key_of(entry.rule, entry.call)
        count = min(entry.count, left[key]) if may_go(entry) else entry.count
        left[key] -= min(count, left[key])
        if count:
            kept.append(replace(entry, count=count))
    return _sorted(kept)


def difference(more: Sequence[BaselineEntry], less: Sequence[BaselineEntry]) -> tuple[BaselineEntry, ...]:
    """Return the entries of `more` that `less` lacks, with the number by which each count is larger."""
    left = counts_of(less)
    missing: list[BaselineEntry] = []
    for entry in more:
        key = key_of(entry.rule, entry.call)
        covered = min(entry.count, left[key])
        left[key] -= covered
        if entry.count > covered:
            missing.append(replace(entry, count=entry.count - covered))
    return _sorted(missing)


class _StoredEntry(msgspec.Struct, forbid_unknown_fields=True):
    rule: Annotated[str, Meta(min_length=1)]
    call: str
    count: Annotated[int, Meta(ge=1)] = 1


class _File(msgspec.Struct, forbid_unknown_fields=True):
    generator: Literal["advisor check"]
    schema_version: Literal[1]
    scripts: dict[str, list[_StoredEntry]]


def read_baseline(path: Path) -> Baseline | None:
    """Read the file; None if there is none.

    Raises:
        AdvisorError: The file cannot be read or is not a baseline, for example after a merge with conflicts.
    """
    try:
        data = read_regular(path)
    except FileNotFoundError:
        return None
    except OSError as error:
        raise AdvisorError(f"The baseline {path} cannot be read: {error.strerror or error}.") from None
    try:
        stored = msgspec.json.decode(data, type=_File)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise AdvisorError(
            f"The baseline {path} is damaged or of another version ({error}): restore it from version control, or remove it and "
            "run `advisor check --update-baseline`."
        ) from None
    return Baseline(
        {
            script: tuple(BaselineEntry(entry.rule, entry.call, entry.count) for entry in entries)
            for script, entries in stored.scripts.items()
        }
    )


def baseline_to_bytes(baseline: Baseline) -> bytes:
    """Return the file: sorted, one line per entry, so that its diffs and merges are those of the findings."""
    blocks: list[str] = []
    for script, entries in sorted(baseline.scripts.items()):
        lines = ",\n".join(f"      {_json(_stored(entry))}" for entry in _sorted(entries))
        if lines:
            blocks.append(f"    {_json(script)}: [\n{lines}\n    ]")
    scripts = "{\n" + ",\n".join(blocks) + "\n  }" if blocks else "{}"
    text = f'{{\n  "generator": {_json(GENERATOR)},\n  "schema_version": 1,\n  "scripts": {scripts}\n}}\n'
    return text.encode("utf-8", "backslashreplace")


def _stored(entry: BaselineEntry) -> dict[str, object]:
    return {"rule": entry.rule, "call": entry.call, "count": entry.count}


def _json(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


def _sorted(entries: Iterable[BaselineEntry]) -> tuple[BaselineEntry, ...]:
    return tuple(sorted(entries, key=lambda entry: (entry.rule, entry.call, entry.count)))
