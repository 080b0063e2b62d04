"""The result of a command: one object that every report is made from.

In: nothing.  Out: `Report`, `Comparison`, `FixOutcome`. `report/report_json.py` writes them in the names of the public
contract.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.finding import Finding, Prediction, Safety
from advisor.model.outlook import Outlook
from advisor.model.pipeline import Analysis
from advisor.model.proof import Proof
from advisor.model.recording import Site
from advisor.model.window_timeline import HostView


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio or a value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """What proving a fix showed."""

    rule: str
    site: Site | None
    predicted: Prediction | None
    measured: Interval | None
    safety_claimed: Safety
    safety_seen: Safety | None
    verdict: str
    """`faster`, `same`, `slower`, `broken`."""
    is_applied: bool
    title: str = ""
    """The finding's."""
    note: str = ""
    """One sentence: why it was not judged or what limits the statement."""
    memory_before_bytes: int | None = None
    """Peak resident memory of the process without the fix."""
    memory_after_bytes: int | None = None
    is_undecided: bool = False
    """The elements seen could not have refuted the claim, so `safety_seen` is no proof; `note` says why."""
    is_end_to_end: bool = False
    """Measured by running the whole script, because the dataset could not be rebuilt with this fix."""
    proved_on: str | None = None
    """Where the fix was measured to be faster: `training` (the whole script; of several kept fixes, all together) or `pipeline`
    (the input pipeline alone); None: `verdict` is not `faster`.
    """


@dataclass(frozen=True, slots=True)
class Comparison:
    """Before and after. Rates in elements per second, shares 0 to 1."""

    pipeline_before: float
    pipeline_after: float
    pipeline_speedup: Interval
    end_to_end: Interval | None = None
    wait_share_before: float | None = None
    wait_share_after: float | None = None


@dataclass(frozen=True, slots=True)
class RuleError:
    """A rule that raised, or whose fix does not do what it claims: a row in the report, never a crash."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a command found."""

    notebook: ClassVar[Callable[[Report], str] | None] = None
    """How a notebook shows a report: filled in by `advisor.report`, as the model knows no report."""

    analysis: Analysis
    findings: tuple[Finding, ...] = ()
    """Ranked: the largest predicted gain first."""
    notes: tuple[str, ...] = ()
    """Why tempting fixes are not proposed (`cache is not legal above augment: it draws random numbers`)."""
    fixes: tuple[FixOutcome, ...] = ()
    comparison: Comparison | None = None
    proof: Proof | None = None
    """How the fixes were proved; None: nothing was to be proved."""
    rule_errors: tuple[RuleError, ...] = ()
    silenced: int = 0
    """Findings hidden by settings or `# advisor: ignore[...]`."""
    warnings: tuple[str, ...] = ()
    advisor_version: str = ""
    run_folder: str = ""
    timeline: tuple[HostView, ...] = ()
    """What threads and devices did in the window, host by host; empty where nobody asked for it."""
    outlook: Outlook | None = None
    """What limits the main pipeline and the best set of changes; None: no steps were measured."""

    def _repr_html_(self) -> str | None:
        """What notebooks ask for; None: they show plain text."""
        show = type(self).notebook
        return None if show is None else show(self)
