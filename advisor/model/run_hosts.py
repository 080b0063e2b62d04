"""What is known of each host where a run has several: the table of the report, and who holds the others up.

In: nothing.  Out: `HostSummary`, `HostComparison`, made by `advisor.hosts`. Times are nanoseconds, shares 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostSummary:
    """One host, as its slowest pipeline shows it: the one whose consumer waited most."""

    hostname: str
    path: str
    """Its profile file."""
    num_pipelines: int = 0
    pipeline_id: str | None = None
    """The slowest pipeline; None: none was consumed on this host."""
    steps: int = 0
    step_median_ns: int | None = None
    """None: no whole step in the profile."""
    input_wait_share: float | None = None
    wait_per_step_ns: int | None = None
    """Mean time a step waits for input."""
    elements_per_s: float | None = None
    bottleneck: str | None = None
    """Type of the iterator with the largest share of the wait (`ParallelMapV2`)."""
    bottleneck_share: float | None = None
    is_straggler: bool = False
    excess_wait_ns: int = 0
    """Stragglers: how much longer a step waits here than on the median host."""
    is_data_service_worker: bool = False
    """Its pipeline makes elements for consumers on other hosts."""


@dataclass(frozen=True, slots=True)
class HostComparison:
    """All hosts of a run, the most input-bound first."""

    hosts: tuple[HostSummary, ...]
    stragglers: tuple[str, ...] = ()
    """One sentence for each host that holds the others up."""
    differences: tuple[str, ...] = ()
    """What is not the same on all hosts, in sentences."""
    services: tuple[str, ...] = ()
    """Which tf.data service workers make the elements of which consumer, in sentences."""
    do_step_together: bool | None = None
    """Whether all hosts' steps take the same time, as where each step ends with an exchange; None: too few to tell."""
