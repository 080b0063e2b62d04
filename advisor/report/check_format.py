"""check.json, the output of `advisor check --json`, version 1."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from advisor.model.json_types import Amount, Count, Positive, one_of
from advisor.report.json_format import Object
from advisor.report.pipeline_format import Site
from advisor.report.proof_format import PairedTest, Ratio


class RatioInterval(Object, frozen=True):
    """A measured ratio, head divided by base (above 1 is worse), with its 95 % interval."""

    value: float | None
    low: float | None
    high: float | None


class Budget(Object, frozen=True):
    """One limit and what was measured."""

    quantity: Annotated[str, one_of("input_wait", "step_time", "memory", "findings")]
    unit: Annotated[str, one_of("share", "ns", "bytes", "findings", "ratio")]
    """`ratio`: the limit is relative to the base revision."""
    level: Annotated[str, one_of("warn", "error")]
    limit: Amount
    result: Annotated[str, one_of("passed", "failed", "not measured", "unclear", "skipped")]
    """`unclear`: the interval of the ratio includes the limit, or there is no ratio. `skipped`: a ratio without `--against`."""
    severity: Annotated[str, one_of("ok", "warn", "error")]
    """What the result means for the check; one `error` fails it."""
    value: Amount | None
    """Aggregated over the runs; null if not measured."""
    interval: RatioInterval | None
    """Null unless the limit is a ratio."""
    values: Sequence[Amount]
    """The values of the single runs; empty for a ratio."""
    loop: str
    """The place and kind of the loop that is compared, if it is not the training loop; empty otherwise."""
    aggregation: Annotated[str, one_of("median", "optimistic", "pessimistic")]
    sentence: str


class NewFinding(Object, frozen=True):
    """A finding that the baseline lacks."""

    rule: str
    title: str
    call: str
    """The call as written; empty for findings without a call."""
    site: Site | None
    predicted_speedup: Ratio | None
    runs: Positive
    """Number of runs in which it was found."""


class BaselineEntry(Object, frozen=True):
    """Findings of one rule on calls of one text."""

    rule: str
    call: str
    count: Positive


class Baseline(Object, frozen=True):
    """How the baseline was used and changed."""

    path: str
    is_present: bool
    """Whether the file existed."""
    known: Count
    """Findings of the runs that it holds."""
    added: Sequence[BaselineEntry]
    removed: Sequence[BaselineEntry]
    """Entries that are no longer found; `note` says if they were kept nevertheless."""
    is_written: bool
    note: str
    """Why the file was not made smaller; empty otherwise."""


class LoopRatio(Object, frozen=True):
    """Another loop than the training loop, such as that of the validation."""

    name: str
    """Its place in the working tree and its kind."""
    step_ratio: RatioInterval


class Base(Object, frozen=True):
    """The base revision, whose runs alternated with those of the working tree."""

    revision: str
    commit: str
    files: Sequence[str]
    """Python files whose text differs, relative to the top of the repository."""
    is_same_text: bool
    """Whether no Python file differs, so that nothing was run."""
    turns: Count
    """Pairs of runs."""
    base_step_ms: Amount | None
    """Mean step time; the median over the runs."""
    head_step_ms: Amount | None
    step_ratio: RatioInterval | None
    """Step time of the working tree divided by that of the base; null if they could not be compared."""
    memory_ratio: RatioInterval | None
    loops: Sequence[LoopRatio]
    """Other loops with steps in the window of every run."""
    note: str
    """Why there is no comparison, or why it did not end; empty otherwise."""
    test: PairedTest | None
    """How the pairs of runs have ended, with the ratio head / base; null if there are none."""


class Check(Object, frozen=True):
    """Budgets, the findings that the baseline lacks, and the comparison with a base revision."""

    schema_version: Literal[1]
    advisor_version: str
    result: Annotated[str, one_of("passed", "failed")]
    target: str
    budgets: Sequence[Budget]
    new_findings: Sequence[NewFinding]
    baseline: Baseline | None
    """Null if findings have no budget."""
    base: Base | None
    """Null without `--against`."""
    run_folders: Sequence[str]
    """One per run; the first holds the report of the findings."""
    notes: Sequence[str]
