"""Collects the sums for all tables, host by host.

In: profile files and, if the advisor captured the run, its recording.  Out: `Collected`.

Only sums, steps and a limited number of rows are kept of each host, so that many hosts need as much memory as one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

import numpy as np

from advisor.model.activity import DeviceActivity, DeviceKind, HostActivity, HostKind
from advisor.model.profile_statistics import AllocatorMemory, Breakdown, HostSteps, OutlierStep, StepTime
from advisor.model.recording import Recording
from advisor.profile.activity_columns import read_activity
from advisor.profile.profile_files import host_of
from advisor.statistics.allocator_memory import describe_memory
from advisor.statistics.breakdown import Cause, break_down, to_breakdown
from advisor.statistics.compilation import CompileSums
from advisor.statistics.host_steps import Steps, find_steps
from advisor.statistics.input_analysis import enqueue_ps
from advisor.statistics.kernels import KernelSums
from advisor.statistics.ops import OpSums
from advisor.statistics.outliers import find_outliers
from advisor.statistics.step_sums import StepSums, is_computing, sum_steps
from advisor.statistics.time_spans import Ints

MAX_STEPS = 1_000
"""Maximum number of steps kept per host, evenly spaced; sums include all steps."""


@dataclass(frozen=True, slots=True)
class DeviceSeen:
    """A device plane without its events."""

    host: str
    name: str
    facts: dict[str, str | int | float | bool]
    num_events: int
    is_computing: bool
    """Whether it ran more than copies."""
    has_xla_ops: bool
    num_collectives: int


@dataclass(slots=True, eq=False)
class Collected:
    """The data for the tables."""

    hosts: list[HostSteps] = field(default_factory=list)
    names: dict[str, str] = field(default_factory=dict)
    """File of a host -> name of the host. All data is keyed by file, because file names are unique."""
    step_ps: list[Ints] = field(default_factory=list)
    cause_ps: list[Ints] = field(default_factory=list)
    """Time in ps per host: one row per step, one column per `Cause`."""
    ops: OpSums = field(default_factory=OpSums)
    kernels: KernelSums = field(default_factory=KernelSums)
    memory: list[AllocatorMemory] = field(default_factory=list)
    devices: list[DeviceSeen] = field(default_factory=list)
    step_sums: list[StepSums] = field(default_factory=list)
    enqueued_ps: int = 0
    compilation: CompileSums = field(default_factory=CompileSums)
    outliers: list[OutlierStep] = field(default_factory=list)
    num_events: int = 0
    has_xla_ops: bool = False
    """Whether the host ran XLA ops; devices have their own flag."""

    def merge(self, other: Collected) -> None:
        """Add the data of other hosts."""
        self.hosts += other.hosts
        self.names.update(other.names)
        self.step_ps += other.step_ps
        self.cause_ps += other.cause_ps
        self.ops.merge(other.ops)
        self.kernels.merge(other.kernels)
        self.memory += other.memory
        self.devices += other.devices
        self.step_sums += other.step_sums
        self.enqueued_ps += other.enqueued_ps
        self.compilation.merge(other.compilation)
        self.outliers += other.outliers
        self.num_events += other.num_events
        self.has_xla_ops |= other.has_xla_ops

    def call_hosts_by_name(self) -> None:
        """Replace file names by host names, unless two hosts have the same name (processes of one machine)."""
        if len(set(self.names.values())) < len(self.names):
            self.names = {file: file for file in self.names}
        self.hosts = [replace(host, host=self.names[host.host]) for host in self.hosts]
        self.memory = [replace(memory, host=self.names[memory.host]) for memory in self.memory]
        self.outliers = [replace(outlier, host=self.names[outlier.host]) for outlier in self.outliers]

    @property
    def all_step_ps(self) -> Ints:
        """Return the durations of the steps of all hosts."""
        return np.concatenate(self.step_ps) if self.step_ps else np.zeros(0, np.int64)

    @property
    def all_cause_ps(self) -> Ints:
        """Return the time by cause of the steps of all hosts."""
        return np.concatenate(self.cause_ps) if self.cause_ps else np.zeros((0, len(Cause)), np.int64)


def collect(paths: Sequence[Path], recording: Recording | None) -> Collected:
    """Collect from profile files, one per host, in order; unreadable ones are skipped."""
    collected = Collected()
    for path in paths:
        activity = read_activity(path)
        if activity is not None:
            _add(collected, activity, recording, host_of(path))
        del activity
    return collected


def _add(collected: Collected, activity: HostActivity, recording: Recording | None, host: str) -> None:
    steps = find_steps(activity, recording)
    causes = break_down(activity, steps)
    collected.names[host] = activity.hostname
    num_memory = 0 if activity.memory is None else len(activity.memory.time_ps)
    collected.num_events += len(activity) + num_memory + sum(len(device) for device in activity.devices)
    if len(steps):
        collected.step_ps.append(steps.end_ps - steps.start_ps)
        collected.cause_ps.append(causes)
        collected.hosts.append(_host_steps(host, steps, causes))
        collected.outliers += find_outliers(host, activity, steps)
        collected.step_sums.append(sum_steps(activity, steps))
    collected.ops.add(activity)
    collected.kernels.add(activity.devices)
    collected.memory += describe_memory(host, activity.memory)
    collected.devices += [_seen(host, device) for device in activity.devices]
    collected.enqueued_ps += enqueue_ps(activity)
    collected.compilation.add(activity)
    collected.has_xla_ops |= bool((activity.kind == HostKind.XLA_OP).any())


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


def _seen(host: str, device: DeviceActivity) -> DeviceSeen:
    return DeviceSeen(
        host=host,
        name=device.name,
        facts=device.facts,
        num_events=len(device),
        is_computing=is_computing(device),
        has_xla_ops=device.has_xla_ops,
        num_collectives=int((device.kind == DeviceKind.COLLECTIVE).sum()),
    )
