"""Sums the activity of one host and its devices during the steps: idle time, copies, kernels, eager ops.

In: a host's activity and its steps.  Out: `StepSums`, which add up over hosts.
"""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np

from advisor.model.activity import DeviceActivity, DeviceKind, HostActivity, HostKind
from advisor.statistics.breakdown import Cause, device_causes
from advisor.statistics.host_steps import Steps
from advisor.statistics.time_spans import Ints, Union, join, unite

_NO_EAGER_STEP = ("EagerLocalExecute: IteratorGetNext", "EagerLocalExecute: _EagerConst")
_COMPUTING = (DeviceKind.KERNEL, DeviceKind.COLLECTIVE, DeviceKind.XLA_OP)


@dataclass(frozen=True, slots=True)
class StepSums:
    """Sums over the steps of one host or of several; times in ps."""

    device_steps: int = 0
    """Steps, counted once for each device that computed."""
    step: int = 0
    idle: int = 0
    """Time in which all devices were idle."""
    to_device: int = 0
    """Time in which a copy from the host ran on some device."""
    exposed_to_device: int = 0
    """Time in which such a copy ran and no device computed."""
    to_device_sum: int = 0
    """Time of all such copies of all devices; simultaneous copies count separately."""
    num_kernels: int = 0
    """Kernels that began in a step."""
    num_eager_ops: int = 0
    """Ops that Python ran individually in a step."""
    eager: int = 0
    """Time in which such an op ran."""

    def plus(self, other: StepSums) -> StepSums:
        """Return the sums over the steps of both."""
        return StepSums(*(getattr(self, own.name) + getattr(other, own.name) for own in fields(self)))


def sum_steps(activity: HostActivity, steps: Steps) -> StepSums:
    """Sum the steps of one host."""
    nothing = unite(np.zeros(0, np.int64), np.zeros(0, np.int64))
    busy = copies = computing = nothing
    to_device_sum = num_kernels = num_devices = 0
    order = np.argsort(steps.start_ps, kind="stable")
    window = unite(steps.start_ps[order], steps.end_ps[order])
    for device in activity.devices:
        if not len(device):
            continue
        num_devices += is_computing(device)
        causes, start = device_causes(device), device.start_ps
        end = start + device.duration_ps
        is_copy = causes == Cause.TO_DEVICE
        computes = (causes == Cause.COMPUTE_32) | (causes == Cause.COMPUTE_16)
        busy = join(busy, unite(start, end))
        copies = join(copies, unite(start[is_copy], end[is_copy]))
        computing = join(computing, unite(start[computes], end[computes]))
        to_device_sum += int(window.covered(start[is_copy], end[is_copy]).sum())
        kernels = start[(device.kind == DeviceKind.KERNEL) | (device.kind == DeviceKind.XLA_OP)]
        num_kernels += int(window.covered(kernels, kernels + 1).sum())
    either = join(copies, computing)
    eager_start, eager_end = _eager_ops(activity)
    return StepSums(
        device_steps=len(steps) * num_devices,
        step=window.length,
        idle=window.length - _inside(window, busy),
        to_device=_inside(window, copies),
        exposed_to_device=_inside(window, either) - _inside(window, computing),
        to_device_sum=to_device_sum,
        num_kernels=num_kernels,
        num_eager_ops=int(window.covered(eager_start, eager_start + 1).sum()),
        eager=_inside(window, unite(eager_start, eager_end)),
    )


def _eager_ops(activity: HostActivity) -> tuple[Ints, Ints]:
    """Starts and ends of ops that Python ran individually, without constants and ops that only fetch input."""
    is_counted = np.array([not name.startswith(_NO_EAGER_STEP) for name in activity.names] or [False], np.bool_)
    rows = np.flatnonzero((activity.kind == HostKind.EAGER_OP) & is_counted[activity.name])
    return activity.start_ps[rows], activity.start_ps[rows] + activity.duration_ps[rows]


def is_computing(device: DeviceActivity) -> bool:
    """Return whether a device ran more than copies."""
    return bool(np.isin(device.kind, np.array(_COMPUTING, np.uint8)).any())


def _inside(window: Union, part: Union) -> int:
    return int(part.covered(window.start, window.end).sum())
