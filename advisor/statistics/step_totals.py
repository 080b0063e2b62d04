"""Adds up the steps of all hosts: their number, durations and causes.

In: the steps of each host.  Out: `StepTotals`, whose size does not depend on the number of steps or hosts.

Sums are integers, so that the result does not depend on the order in which hosts are added.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from advisor.model.profile_statistics import Breakdown
from advisor.statistics.breakdown import Cause, to_breakdown
from advisor.statistics.time_spans import Ints


@dataclass(slots=True)
class Spread:
    """Number, sum, minimum and maximum of durations in ps."""

    count: int = 0
    total: int = 0
    shortest: int = 0
    longest: int = 0

    def add(self, other: Spread) -> None:
        """Add other durations."""
        if not other.count:
            return
        self.shortest = min(self.shortest, other.shortest) if self.count else other.shortest
        self.longest = max(self.longest, other.longest)
        self.count += other.count
        self.total += other.total

    @property
    def mean(self) -> float:
        """Return the mean; 0 without durations."""
        return self.total / self.count if self.count else 0.0


def _spread(values: Ints) -> Spread:
    return Spread(len(values), int(values.sum()), int(values.min()), int(values.max())) if len(values) else Spread()


@dataclass(slots=True)
class StepTotals:
    """The steps of all hosts."""

    steps: Spread = field(default_factory=Spread)
    waited: Spread = field(default_factory=Spread)
    """Time per step that was spent waiting for input or copying to a device."""
    causes: list[int] = field(default_factory=lambda: [0] * len(Cause))
    """Time in ps by `Cause`."""

    def add(self, step_ps: Ints, cause_ps: Ints) -> None:
        """Add the steps of a host.

        Args:
            step_ps: Shape (n,): durations.
            cause_ps: Shape (n, causes): their time by `Cause`.
        """
        self.steps.add(_spread(step_ps))
        self.waited.add(_spread(cause_ps[:, Cause.WAIT_INPUT] + cause_ps[:, Cause.TO_DEVICE]))
        self.causes = [a + int(b) for a, b in zip(self.causes, cause_ps.sum(axis=0).tolist(), strict=True)]

    def merge(self, other: StepTotals) -> None:
        """Add the steps of other hosts."""
        self.steps.add(other.steps)
        self.waited.add(other.waited)
        self.causes = [a + b for a, b in zip(self.causes, other.causes, strict=True)]

    @property
    def mean_breakdown(self) -> Breakdown:
        """Return the mean of all steps."""
        if not self.steps.count:
            return Breakdown()
        mean = np.array(self.causes, np.float64) / self.steps.count
        return to_breakdown(np.rint(mean).astype(np.int64))

    def share(self, cause: Cause) -> float:
        """Return the share of a cause in the time of all steps; there must be a step."""
        return self.causes[cause] / self.steps.total
