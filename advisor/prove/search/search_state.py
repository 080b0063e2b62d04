"""What the search for changes knows while it runs: what was tried and kept, and why it ends.

In: trials of a proof session.  Out: `State` and `Stop`, for the greedy loop.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from advisor.host.calibration.proof import MIN_GAIN
from advisor.model.calls import Call
from advisor.model.edits import Edit, StepEdit
from advisor.model.finding import Finding, Safety
from advisor.model.outcome import Report
from advisor.model.untried import Why
from advisor.prove.search.loop_result import Attempt, edits_of
from advisor.prove.search.search_limits import SearchLimits
from advisor.prove.trial.trial_result import Trial


class Session(Protocol):
    """The part of `advisor.prove.session.proof_session.ProofSession` that the loop uses."""

    def try_fix(
        self,
        current: tuple[Edit, ...],
        candidate: tuple[Edit, ...],
        claimed: Safety,
        predicted_memory_bytes: int | None = None,
        is_first_pass: bool = False,
    ) -> Trial:
        """Measure the pipeline with `current` against that with `current + candidate`, and compare the latter with the original.

        Args:
            current: The edits kept so far.
            candidate: The edits to try.
            claimed: The safety level that all edits together claim.
            predicted_memory_bytes: Predicted additional memory of the candidate; None if it is unknown.
            is_first_pass: Time both without their caches in memory, as in the pass that fills these.
        """
        ...

    def profile(self, edits: tuple[Edit, ...], is_first_pass: bool = False) -> Path:
        """Profile the edited pipeline alone and return its run folder.

        Args:
            edits: The edits.
            is_first_pass: Without its caches in memory, as in the pass that fills them.
        """
        ...

    def total(self, edits: tuple[Edit, ...], claimed: Safety) -> Trial:
        """Measure and compare the original pipeline against all edits."""
        ...


@dataclass(frozen=True, slots=True)
class Stop:
    """Why the search has ended; an empty sentence if everything was tried."""

    sentence: str = ""
    why: Why | None = None


NO_MORE = (Why.TRIALS_OUT_OF_TIME, Why.PROCESS_ENDED, Why.TOO_MANY)
"""Why a search has ended, if no other one may follow it."""


@dataclass(slots=True)
class State:
    """What was tried and kept until now, and what the search asks."""

    calls: Mapping[str, Call]
    is_asked: Callable[[Finding], bool]
    clock: Callable[[], float]
    longest_trial_s: float
    limits: SearchLimits
    kept: list[Finding] = field(default_factory=list)
    attempts: list[Attempt] = field(default_factory=list)
    tried: set[tuple[Edit | StepEdit, ...]] = field(default_factory=set)
    proposed: Sequence[Finding] = ()
    """The latest proposals."""
    latest: Trial | None = None
    """The trial of the latest kept fix."""
    untuning: Sequence[Finding] = ()
    """Changes that turn AUTOTUNE off, proposed for the unchanged script."""
    changed: Report | None = None
    """The analysis of the pipeline with the kept fixes; None if there is none of exactly these."""
    is_first_pass: bool = False
    """Whether the changes that are tried now speed up the first pass, which fills the caches."""

    def is_worth(self, finding: Finding) -> bool:
        """Whether the fix is to be tried on top of those already kept."""
        if self.latest is None or self.is_asked(finding):
            return True
        gain = self.limits.gain_left(self.latest, finding)
        return gain is None or gain >= 1 + MIN_GAIN.value

    @property
    def edits(self) -> tuple[Edit, ...]:
        """The edits of the kept fixes."""
        return edits_of(self.kept, self.calls)

    @property
    def expected_s(self) -> float:
        """Seconds for another trial and, if it becomes necessary, for measuring all changes together."""
        return self.longest_trial_s * (2 if self.kept and self.limits.needs_total(self.edits) else 1)
