"""The hosts of a run with several hosts: one summary each, and the stragglers.

`HostSummary` and `HostComparison` are made by `advisor.hosts`. Times are in nanoseconds, shares range from 0 to 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated

from advisor.model.json_types import Amount, Count, Share, one_of


@dataclass(frozen=True, slots=True)
class HostSummary:
    """One host, described by its slowest pipeline: the one whose consumer waited most."""

    hostname: str
    path: str
    """The profile file."""
    num_pipelines: Count = 0
    pipeline_id: str | None = None
    """The slowest pipeline; None if no pipeline was consumed on this host. Of very many hosts, the report has only the pipelines
    of the most input-bound ones."""
    steps: Count = 0
    step_median_ns: int | None = None
    """None if the profile contains no whole step."""
    input_wait_share: Share | None = None
    wait_per_step_ns: Count | None = None
    """Mean wait for input per step."""
    elements_per_s: Amount | None = None
    bottleneck: str | None = None
    """Type of the iterator with the largest share of the wait (`ParallelMapV2`)."""
    bottleneck_share: Amount | None = None
    is_straggler: bool = False
    excess_wait_ns: Count = 0
    """Stragglers: additional wait per step compared to the median host."""
    is_data_service_worker: bool = False
    """Whether its pipeline produces elements for consumers on other hosts."""


TRAINER, CLIENT, WORKERS, STORAGE = "trainer", "client", "workers", "storage"


@dataclass(frozen=True, slots=True)
class ServiceBottleneck:
    """What limits a training that reads from a tf.data service."""

    side: Annotated[str, one_of(TRAINER, CLIENT, WORKERS, STORAGE)]
    """`trainer`: the model, or what it does with the elements itself. `client`: its connection to the workers. `workers`: their
    pipeline. `storage`: the files that they read."""
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostComparison:
    """All hosts of a run."""

    do_step_together: bool | None = None
    """Whether the steps of all hosts take the same time, as in synchronous training; None if there are too few steps to tell."""
    stragglers: tuple[str, ...] = ()
    """One sentence for each host that delays the others."""
    differences: tuple[str, ...] = ()
    """Differences between the hosts, in sentences."""
    services: tuple[str, ...] = ()
    """Which tf.data service workers produce the elements of which consumer, in sentences."""
    service_bottleneck: ServiceBottleneck | None = None
    """What limits the consumer that waits most; None without a service whose trainer and workers were both profiled."""
    num_detailed: Count = 0
    """Number of hosts whose pipelines are in the report: all of them, or of very many hosts the most input-bound ones."""
    hosts: tuple[HostSummary, ...]
    """The most input-bound first."""
