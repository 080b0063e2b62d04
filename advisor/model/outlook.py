"""The potential of the measured pipeline: the service demands of its iterators, its limits, and the best set of changes.

`Outlook` is made by `advisor.predict` from an `Analysis` and the findings of a report.

Times are mean nanoseconds per element at the root (one step).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from advisor.model.finding import Prediction, RunGain
from advisor.model.horizon import Horizon


@dataclass(frozen=True, slots=True)
class ServiceDemand:
    """The cost of one element at the root, at one iterator."""

    iterator_id: str
    visits: float
    """Elements that it produces per element at the root; 0 if not counted in the window."""
    busy_ns: float
    """Time during which it occupies a thread, without that thread's wait for a core."""
    cpu_ns: float
    """CPU time, including its share of the CPU time outside the iterators' threads (scheduling, memory); may exceed `busy_ns`."""
    python_ns: float
    """Time inside ops that run Python."""
    servers: float
    """Threads that can do this work in parallel; 1 if elements are processed one at a time, infinite if no limit is known."""
    stage: int
    """Iterators of one stage share its threads, so their times add up. Stage 0 is the consumer's thread."""

    @property
    def waiting_ns(self) -> float:
        """Time during which it occupies a thread but no core: sleep, a server's response, the GIL, a wake-up."""
        return max(0.0, self.busy_ns - self.cpu_ns)

    @property
    def capacity_per_s(self) -> float:
        """Maximum elements per second at the root if only this iterator limited it; infinite if it costs nothing."""
        return self.servers * 1e9 / self.busy_ns if self.busy_ns > 0 else math.inf


@dataclass(frozen=True, slots=True)
class Limit:
    """A lower bound of the step time and the resource that causes it."""

    resource: str
    """`consumer` (including the input work in its own thread), `node`, `cpu`, `gil`, `disk`."""
    step_ns: float
    """The shortest possible step."""
    iterator_id: str | None = None
    """For `node`: the most expensive iterator of the stage."""


@dataclass(frozen=True, slots=True)
class CombinedPlan:
    """The best set of changes that are allowed, compatible with each other, and fit in memory."""

    findings: tuple[int, ...]
    """Indices into `Report.findings`."""
    prediction: Prediction
    memory_bytes: int
    """Additional memory of the changes."""
    limit: Limit
    """The limit of the pipeline after the changes."""
    limit_speedup: float
    """Maximum speedup that this limit allows, relative to the present step."""
    service_workers: int | None
    """If the host is that limit: the number of machines like this one that would have to do the input work (with tf.data service)
    so that the consumer no longer waits. None if the host is not the limit, or if the number is unknown."""
    sentence: str
    """The plan as text for the report."""
    over_run: RunGain | None = None
    """The effect on a whole run."""


@dataclass(frozen=True, slots=True)
class Headroom:
    """How fast the pipeline could go if the training did not hold it back.

    Times are those of a step: of one element at the root, or of several with Keras' `steps_per_execution`.
    """

    element_ns: float
    """With a consumer that takes no time and no core, the shortest step without a wait: predicted, or read for a second."""
    low_ns: float
    high_ns: float
    """Its range."""
    step_ns: float
    """The present step."""
    limit: Limit
    """What would limit the pipeline then."""
    sentence: str
    """The headroom as text for the report."""
    measured_ns: float | None = None
    """Mean time of the pipeline alone, measured with `--headroom`; None if it was not measured."""
    read_ns: int | None = None
    """How long the pipeline was read without training after the window, for `element_ns`; None if that is predicted."""

    @property
    def step_speedup(self) -> float:
        """How much faster the training could become before it waits for input; below 1 if it is on the brink."""
        return self.step_ns / (self.element_ns if self.measured_ns is None else self.measured_ns)

    @property
    def surest_speedup(self) -> float:
        """The same at the slow end of the predicted range, unless it was measured."""
        return self.step_ns / (self.high_ns if self.measured_ns is None else self.measured_ns)


@dataclass(frozen=True, slots=True)
class SharedCores:
    """What the pipeline's CPU time costs a training that computes on the same cores and hardly waits for input."""

    cpu_ns: float
    """CPU time of the pipeline per step, measured while it was read without training."""
    share: float
    """The same, as a share of the CPU time that the process uses per step."""
    speedup: float
    """How much faster a step could be without any input work, wait included: an estimate, not a bound."""
    sentence: str
    """The same as text for the report."""


@dataclass(frozen=True, slots=True)
class Outlook:
    """The potential of the main pipeline."""

    step_ns: float
    consumer_ns: float
    """The consumer's own time, without its wait for a core."""
    demands: tuple[ServiceDemand, ...]
    """In the order of `Pipeline.iterators`."""
    limits: tuple[Limit, ...]
    """Limits of the present pipeline, longest step first."""
    memory_room_bytes: int | None
    """Memory available to all changes together, a share of the free memory; None if unknown."""
    plan: CombinedPlan | None = None
    """None if no finding has a prediction."""
    horizon: Horizon | None = None
    """How often a run passes over the data."""
    headroom: Headroom | None = None
    """None if the training waits for input and it was not measured."""
    shared_cores: SharedCores | None = None
    """None if the training waits for input or computes elsewhere, if its pipeline was not read without training, or if it
    takes too little of the cores."""
