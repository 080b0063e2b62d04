"""What the measured pipeline could do: the service demands of its parts, what limits it, and the best set of changes.

In: nothing.  Out: `Outlook`, made by `advisor.predict` from an `Analysis` and the findings of a report.

Times are nanoseconds for one element at the root (one step), as floats: they are means.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.model.finding import Prediction


@dataclass(frozen=True, slots=True)
class ServiceDemand:
    """What one element at the root costs at one iterator."""

    iterator_id: str
    visits: float
    """Elements it produces for each one at the root; 0: not counted in the window."""
    busy_ns: float
    """For which it holds a thread, without what that thread waits for a core."""
    cpu_ns: float
    """CPU time, with its part of what nobody's thread was seen to use (scheduling, memory): may be more than `busy_ns`."""
    python_ns: float
    """Inside ops that run Python."""
    servers: float
    """Threads that can do this work at once; 1: one element after the other; infinite: nothing is known of a limit."""
    stage: int
    """Iterators of one stage share its threads, so their times add up. 0: the consumer's own thread."""

    @property
    def waiting_ns(self) -> float:
        """A thread is held, no core is: sleeping, a server's answer, the lock, a wake-up."""
        return max(0.0, self.busy_ns - self.cpu_ns)

    @property
    def capacity_per_s(self) -> float:
        """Elements at the root per second that it could serve by itself; infinite where it costs nothing."""
        return self.servers * 1e9 / self.busy_ns if self.busy_ns > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Limit:
    """Why no step is shorter."""

    resource: str
    """`consumer` (with what it does in its own thread for input), `node`, `cpu`, `gil`, `disk`."""
    step_ns: float
    """The shortest step that it allows."""
    iterator_id: str | None = None
    """`node`: the costliest iterator of the stage."""


@dataclass(frozen=True, slots=True)
class CombinedPlan:
    """The best set of changes that are allowed, go together and fit in memory."""

    findings: tuple[int, ...]
    """Places in `Report.findings`."""
    prediction: Prediction
    memory_bytes: int
    """What they hold in addition."""
    limit: Limit
    """What limits the pipeline then."""
    limit_speedup: float
    """How much faster than now a step can at most be because of it."""
    service_workers: int | None
    """Where the host itself is that limit: machines like this one that would have to do the input work (with tf.data
    service), so that the consumer waits no longer. None: it is not, or nobody can tell."""
    sentence: str
    """All of it for people."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The main pipeline's."""

    step_ns: float
    consumer_ns: float
    """The consumer's own time, without what it waits for a core."""
    demands: tuple[ServiceDemand, ...]
    """In the order of `Pipeline.iterators`."""
    limits: tuple[Limit, ...]
    """As the pipeline is, the longest step first."""
    memory_room_bytes: int | None
    """What all changes together may take: a share of the free memory; None: not known."""
    plan: CombinedPlan | None = None
    """None: nothing that can be predicted is found."""
