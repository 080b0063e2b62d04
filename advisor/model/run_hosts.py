"""The hosts of a run with several hosts: one summary each, and the stragglers.

`HostSummary` and `HostComparison` are made by `advisor.hosts`. Times are in nanoseconds, shares range from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class HostSummary:
    """One host, described by its slowest pipeline: the one whose consumer waited most."""

    hostname: str
    path: str
    """The profile file."""
    num_pipelines: int = 0
    pipeline_id: str | None = None
    """The slowest pipeline; None if no pipeline was consumed on this host."""
    steps: int = 0
    step_median_ns: int | None = None
    """None if the profile contains no whole step."""
    input_wait_share: float | None = None
    wait_per_step_ns: int | None = None
    """Mean wait for input per step."""
    elements_per_s: float | None = None
    bottleneck: str | None = None
    """Type of the iterator with the largest share of the wait (`ParallelMapV2`)."""
    bottleneck_share: float | None = None
    is_straggler: bool = False
    excess_wait_ns: int = 0
    """Stragglers: additional wait per step compared to the median host."""
    is_data_service_worker: bool = False
    """Whether its pipeline produces elements for consumers on other hosts."""


@dataclass(frozen=True, slots=True)
class HostComparison:
    """All hosts of a run, the most input-bound first."""

    hosts: tuple[HostSummary, ...]
    stragglers: tuple[str, ...] = ()
    """One sentence for each host that delays the others."""
    differences: tuple[str, ...] = ()
    """Differences between the hosts, in sentences."""
    services: tuple[str, ...] = ()
    """Which tf.data service workers produce the elements of which consumer, in sentences."""
    do_step_together: bool | None = None
    """Whether the steps of all hosts take the same time, as in synchronous training; None if there are too few steps to tell."""
