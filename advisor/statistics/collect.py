"""Collects the sums for all tables, host by host.

In: profile files and, if the advisor captured the run, its recording.  Out: `Collected`.

Only sums, steps and a limited number of rows are kept of each host, so that many hosts need as much memory as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from advisor.model.activity import HostActivity, HostKind
from advisor.model.profile_statistics import AllocatorMemory, Breakdown, HostSteps, OutlierStep, StepTime
from advisor.model.recording import Recording
from advisor.profile.activity_columns import read_activity
from advisor.profile.profile_files import host_of
from advisor.statistics.allocator_memory import describe_memory, device_peak_share, ranked_by_peak
from advisor.statistics.breakdown import break_down, to_breakdown
from advisor.statistics.compilation import CompileSums
from advisor.statistics.device_totals import DeviceGroup, add_groups, group_of
from advisor.statistics.host_steps import Steps, find_steps
from advisor.statistics.input_analysis import enqueue_ps
from advisor.statistics.kernels import KernelSums
from advisor.statistics.ops import OpSums
from advisor.statistics.outliers import find_outliers
from advisor.statistics.step_sums import StepSums, sum_steps
from advisor.statistics.step_totals import StepTotals
from advisor.statistics.time_spans import Ints

MAX_STEPS = 1_000
"""Maximum number of steps kept per host, evenly spaced; sums include all steps."""
MAX_ALLOCATORS = 64
"""Maximum number of allocators kept of all hosts, those with the highest peaks; reports show fewer."""
MAX_OUTLIERS = 1_000
"""Maximum number of outliers kept of all hosts, the longest."""


@dataclass(slots=True, eq=False)
class Collected:
    """The data for the tables."""

    hosts: list[HostSteps] = field(default_factory=list)
    """The steps of hosts; of very many hosts, only some."""
    num_hosts: int = 0
    """Number of hosts with steps."""
    names: dict[str, str] = field(default_factory=dict)
    """File of a host -> name of the host. All data is keyed by file, because file names are unique."""
    totals: StepTotals = field(default_factory=StepTotals)
    ops: OpSums = field(default_factory=OpSums)
    kernels: KernelSums = field(default_factory=KernelSums)
    memory: list[AllocatorMemory] = field(default_factory=list)
    num_memory: int = 0
    """Number of allocators, of which `memory` holds at most `MAX_ALLOCATORS`."""
    memory_peak_share: float | None = None
    """Maximum share of memory in use among all device allocators."""
    devices: list[DeviceGroup] = field(default_factory=list)
    step_sums: StepSums = field(default_factory=StepSums)
    enqueued_ps: int = 0
    compilation: CompileSums = field(default_factory=CompileSums)
    outliers: list[OutlierStep] = field(default_factory=list)
    num_events: int = 0
    has_xla_ops: bool = False
    """Whether the host ran XLA ops; devices have their own flag."""

    def merge(self, other: Collected) -> None:
        """Add the data of other hosts."""
        self.hosts += other.hosts
        self.num_hosts += other.num_hosts
        self.names.update(other.names)
        self.totals.merge(other.totals)
        self.ops.merge(other.ops)
        self.kernels.merge(other.kernels)
        self.memory += other.memory
        self.num_memory += other.num_memory
        shares = [share for share in (self.memory_peak_share, other.memory_peak_share) if share is not None]
        self.memory_peak_share = max(shares, default=None)
        add_groups(self.devices, other.devices)
        self.step_sums = self.step_sums.plus(other.step_sums)
        self.enqueued_ps += other.enqueued_ps
        self.compilation.merge(other.compilation)
        self.outliers += other.outliers
        self.num_events += other.num_events
        self.has_xla_ops |= other.has_xla_ops
        self._limit()

    def _limit(self) -> None:
        """Drop what no report shows of many hosts."""
        if len(self.memory) > MAX_ALLOCATORS:
            self.memory = ranked_by_peak(self.memory)[:MAX_ALLOCATORS]
        if len(self.outliers) > MAX_OUTLIERS:
            self.outliers = sorted(self.outliers, key=lambda step: -step.duration_ns)[:MAX_OUTLIERS]

    def call_hosts_by_name(self) -> None:
        """Replace file names by host names, unless two hosts have the same name (processes of one machine)."""
        if len(set(self.names.values())) < len(self.names):
            self.names = {file: file for file in self.names}
        self.hosts = [replace(host, host=self.names[host.host]) for host in self.hosts]
        self.memory = [replace(memory, host=self.names[memory.host]) for memory in self.memory]
        self.outliers = [replace(outlier, host=self.names[outlier.host]) for outlier in self.outliers]


def collect(paths: Sequence[Path], recording: Recording | None) -> Collected:
    """Collect from profile files, one per host, in order; unreadable ones are skipped."""
    collected = Collected()
    for path in paths:
        activity = read_activity(path)
        if activity is not None:
            collected.merge(_of_host(activity, recording, host_of(path)))
        del activity
    return collected


def _of_host(activity: HostActivity, recording: Recording | None, host: str) -> Collected:
    collected = Collected()
    steps = find_steps(activity, recording)
    causes = break_down(activity, steps)
    collected.names[host] = activity.hostname
    num_memory = 0 if activity.memory is None else len(activity.memory.time_ps)
    collected.num_events += len(activity) + num_memory + sum(len(device) for device in activity.devices)
    if len(steps):
        collected.totals.add(steps.end_ps - steps.start_ps, causes)
        collected.hosts.append(_host_steps(host, steps, causes))
        collected.num_hosts = 1
        collected.outliers += find_outliers(host, activity, steps)
        collected.step_sums = sum_steps(activity, steps)
    collected.ops.add(activity)
    collected.kernels.add(activity.devices)
    collected.memory += describe_memory(host, activity.memory)
    collected.num_memory = len(collected.memory)
    collected.memory_peak_share = device_peak_share(collected.memory)
    add_groups(collected.devices, map(group_of, activity.devices))
    collected.enqueued_ps += enqueue_ps(activity)
    collected.compilation.add(activity)
    collected.has_xla_ops = bool((activity.kind == HostKind.XLA_OP).any())
    return collected


def _host_steps(host: str, steps: Steps, causes: Ints) -> HostSteps:
    length = steps.end_ps - steps.start_ps
    chosen = np.unique(np.linspace(0, len(steps) - 1, min(MAX_STEPS, len(steps))).astype(np.int64))
    return HostSteps(
        host=host,
        num_steps=len(steps),
        mean_ns=round(float(length.mean()) / 1000),
        mean=mean_breakdown(causes),
        steps=tuple(
            StepTime(
                number=int(steps.number[row]),
                start_ns=int(steps.start_ps[row]) // 1000,
                duration_ns=round(int(length[row]) / 1000),
                breakdown=to_breakdown(causes[row]),
            )
            for row in chosen.tolist()
        ),
        source=steps.source,
    )


def mean_breakdown(causes: Ints) -> Breakdown:
    """Return the mean of all rows of `break_down`."""
    return to_breakdown(np.rint(causes.mean(axis=0)).astype(np.int64)) if len(causes) else Breakdown()
