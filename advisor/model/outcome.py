"""The result of a command, from which every report is generated.

`report/report_json.py` writes it with the names of the public schema.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from advisor.model.calls import Site
from advisor.model.finding import Finding, Prediction, Rejected, Safety
from advisor.model.outlook import Outlook
from advisor.model.pipeline import Analysis
from advisor.model.proof_result import Proof
from advisor.model.units import format_count, format_share
from advisor.model.window_timeline import HostView


@dataclass(frozen=True, slots=True)
class Interval:
    """A ratio or a value with its 95 % interval."""

    value: float
    low: float
    high: float


@dataclass(frozen=True, slots=True)
class Gain:
    """The speedup of one quantity by one change, as predicted and as measured. None means unknown or not measured."""

    predicted: Prediction | None = None
    measured: Interval | None = None


@dataclass(frozen=True, slots=True)
class LossDeviation:
    """How far a change moves the loss of the first batches.

    Keras reports the mean over the batches of the epoch so far, which is what is compared.
    """

    batches: int
    """Number of batches up to which the losses were compared."""
    relative: float
    """Largest difference between the medians of the runs with and without the change, relative to the latter."""
    between_runs: float | None
    """Largest difference of a run without the change from the median of these runs, in the same way; None for a single run."""

    @property
    def sentence(self) -> str:
        """How far the losses are apart."""
        if not math.isfinite(self.relative):
            return f"With the change, the loss of the first {format_count(self.batches)} batches is not always a finite number."
        between = ""
        if self.between_runs is not None:
            between = f"; runs of the unchanged script differ by up to {format_share(self.between_runs)}"
        first = f"The loss of the first {format_count(self.batches)} batches differs by up to"
        return f"{first} {format_share(self.relative)}{between}."


@dataclass(frozen=True, slots=True)
class LossPoint:
    """The loss after some batches: Keras' mean over the batches of the epoch so far, the median over the runs."""

    batches: int
    before: float
    """Without the change; not finite if the loss is not."""
    after: float


@dataclass(frozen=True, slots=True)
class FixOutcome:
    """The result of proving one fix."""

    rule: str
    site: Site | None
    predicted: Prediction | None
    """The prediction of the finding: for a step of the training if the fix was proposed for the whole script, for the pipeline
    alone if it was proposed for an already changed pipeline. `pipeline` and `step` tell them apart."""
    measured: Interval | None
    """On the pipeline alone, or on the whole script if `is_end_to_end`."""
    safety_claimed: Safety
    safety_seen: Safety | None
    verdict: str
    """`faster`, `same`, `slower`, `broken`."""
    is_applied: bool
    title: str = ""
    """The title of the finding."""
    note: str = ""
    """One sentence: why the fix was not judged, or what limits the result."""
    memory_before_bytes: int | None = None
    """Peak resident memory of the process without the fix."""
    memory_after_bytes: int | None = None
    is_undecided: bool = False
    """Whether the compared elements cannot refute the claimed safety, so that `safety_seen` proves nothing; `note` says why."""
    claimed_together: Safety | None = None
    """What the fix and those kept before it claim together, which are compared as one; None if that is unknown."""
    is_end_to_end: bool = False
    """Whether it was measured by running the whole script, because the dataset could not be rebuilt with this fix."""
    proved_on: str | None = None
    """Where the fix was measured to be faster: `training` (the whole script, with all kept fixes together) or `pipeline` (the
    input pipeline in isolation); None if `verdict` is not `faster`."""
    pipeline: Gain = Gain()
    """The speedup of the input pipeline in isolation."""
    step: Gain = Gain()
    """The speedup of a training step: predicted for this change alone, measured if the script ran with this change alone."""
    is_of_step: bool = False
    """Whether it changes the training step and not the data."""
    loss: LossDeviation | None = None
    """For a change of the training step; None if the loss is unknown."""


@dataclass(frozen=True, slots=True)
class Comparison:
    """Measurements before and after the change. Rates are in elements per second, shares from 0 to 1."""

    pipeline_before: float
    pipeline_after: float
    pipeline_speedup: Interval
    end_to_end: Interval | None = None
    wait_share_before: float | None = None
    wait_share_after: float | None = None


@dataclass(frozen=True, slots=True)
class RuleError:
    """A rule that raised an exception or whose fix violates its claim; reported as a row instead of a crash."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that a command found."""

    notebook: ClassVar[Callable[[Report], str] | None] = None
    """Renders a report as HTML for notebooks. Set by `advisor.report`, because the model must not import it."""

    analysis: Analysis
    findings: tuple[Finding, ...] = ()
    """Ranked by predicted gain, largest first."""
    hints: tuple[Finding, ...] = ()
    """Advice on the training step that nothing has proved yet."""
    notes: tuple[str, ...] = ()
    """Why plausible fixes are not proposed (`cache is not legal above augment: it draws random numbers`)."""
    rejected: tuple[Rejected, ...] = ()
    """Changes that rules considered and do not propose, and changes of the training step with which the script failed. Those of
    rules about the pipeline are listed only if input is the bottleneck."""
    fixes: tuple[FixOutcome, ...] = ()
    comparison: Comparison | None = None
    proof: Proof | None = None
    """How the fixes were proved; None if the command proves nothing."""
    rule_errors: tuple[RuleError, ...] = ()
    silenced: int = 0
    """Findings hidden by settings or `# advisor: ignore[...]`."""
    warnings: tuple[str, ...] = ()
    advisor_version: str = ""
    run_folder: str = ""
    timeline: tuple[HostView, ...] = ()
    """The activity of threads and devices in the window, per host; empty if it was not requested."""
    permission: str = ""
    """Which command permits the fixes that are not tried by themselves, in one sentence; empty if there are none."""
    outlook: Outlook | None = None
    """The limits of the main pipeline and the best set of changes; None if no steps were measured."""

    def _repr_html_(self) -> str | None:
        """The HTML for notebooks; None makes them show plain text."""
        show = type(self).notebook
        return None if show is None else show(self)
