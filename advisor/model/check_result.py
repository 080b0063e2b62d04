"""The result of `advisor check`: what was measured against each budget, and the findings that the baseline lacks.

`Check` is made by `advisor.workflows.check`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.budgets import Budget
from advisor.model.calls import Site
from advisor.model.finding import Prediction
from advisor.model.outcome import Interval
from advisor.model.paired_test import PairedTest

PASSED, FAILED, NOT_MEASURED, UNCLEAR, SKIPPED = "passed", "failed", "not measured", "unclear", "skipped"
"""Results of a budget. `unclear`: base and head were compared, but the runs do not tell on which side of the limit the ratio is.
`skipped`: a ratio without `--against`."""


@dataclass(frozen=True, slots=True)
class BudgetOutcome:
    """One limit of a budget and what was measured."""

    budget: Budget
    limit: float
    unit: str
    """`share`, `ns`, `bytes`, `findings`, or `ratio` for a limit relative to the base revision."""
    result: str
    """`passed`, `failed`, `not measured`, `unclear`, `skipped`."""
    severity: str
    """What the result means for the check: `ok`, `warn`, `error`."""
    sentence: str
    value: float | None = None
    """The aggregated value; for a ratio, head divided by base. None if not measured."""
    interval: Interval | None = None
    """The ratio with its 95 % interval; None for other units."""
    values: tuple[float, ...] = ()
    """The values of the single runs, in order; empty for a ratio."""
    loop: str = ""
    """The loop whose steps are compared, if it is not the training loop; see `LoopRatio.name`."""


@dataclass(frozen=True, slots=True)
class BaselineEntry:
    """Findings that are known: one rule on calls of one text."""

    rule: str
    call: str
    """The call as written, on one line; empty for findings without a call."""
    count: int = 1
    """Number of such findings."""


@dataclass(frozen=True, slots=True)
class CheckedFinding:
    """A finding of the runs."""

    rule: str
    title: str
    call: str
    """As in `BaselineEntry`."""
    site: Site | None
    prediction: Prediction | None
    runs: int
    """Number of runs in which it was found."""


@dataclass(frozen=True, slots=True)
class BaselineUse:
    """How the baseline was used and changed."""

    path: str
    is_present: bool
    """Whether the file existed."""
    known: int = 0
    """Findings of the runs that it holds."""
    added: tuple[BaselineEntry, ...] = ()
    removed: tuple[BaselineEntry, ...] = ()
    """Entries that are no longer found, with the number by which each count falls."""
    is_written: bool = False
    note: str = ""
    """Why entries that are no longer found were kept, in one sentence; empty otherwise."""


@dataclass(frozen=True, slots=True)
class LoopRatio:
    """Another loop than the training loop, such as that of the validation, in both revisions."""

    name: str
    """Its place in the working tree and its kind: `train.py:30 (for)`."""
    step_ratio: Interval
    """Step time of the head divided by that of the base."""


@dataclass(frozen=True, slots=True)
class BaseComparison:
    """The runs of the base revision, alternating with those of the working tree."""

    revision: str
    """As the user named it."""
    commit: str
    files: tuple[str, ...] = ()
    """Files whose text differed, relative to the top of the repository."""
    turns: int = 0
    """Pairs of runs."""
    base_step_ns: float | None = None
    """Mean step time; the median over the runs. None if not measured."""
    head_step_ns: float | None = None
    step_ratio: Interval | None = None
    """Step time of the head divided by that of the base."""
    memory_ratio: Interval | None = None
    """The same for peak memory."""
    loops: tuple[LoopRatio, ...] = ()
    """Other loops with steps in the window of every run."""
    note: str = ""
    """Why there is no comparison, or why it did not end, in one sentence; empty otherwise."""
    test: PairedTest | None = None
    """How the pairs of runs behind `step_ratio` have ended; None if there are none."""
    is_same_text: bool = False
    """Whether no Python file differs, so that nothing was run."""


@dataclass(frozen=True, slots=True)
class Check:
    """Everything that `advisor check` found."""

    target: str
    outcomes: tuple[BudgetOutcome, ...]
    new_findings: tuple[CheckedFinding, ...] = ()
    """Findings that the baseline lacks."""
    baseline: BaselineUse | None = None
    """None if findings have no budget and the baseline was not to be updated."""
    base: BaseComparison | None = None
    """None without `--against`."""
    run_folders: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def is_passed(self) -> bool:
        """Whether no budget with the level `error` is exceeded."""
        return all(outcome.severity != "error" for outcome in self.outcomes)
