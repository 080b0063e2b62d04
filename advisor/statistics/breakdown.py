"""Breaks the time of each step down by cause; every moment counts once, for the most important activity at that time.

In: a host's activity and its steps.  Out: time per step and cause, grouped into the profiler guide's categories.

The order of causes is XProf's (`event_span.h`) with one change: a copy to the device takes precedence over waiting and launching
on the host, because the device is busy then. XProf recognises such copies by names that TensorFlow no longer writes, and
therefore counts them as computing.
"""

from __future__ import annotations

from collections.abc import Iterator
from enum import IntEnum

import numpy as np
import numpy.typing as npt

from advisor.model.activity import DeviceActivity, DeviceKind, HostActivity, HostKind
from advisor.model.profile_statistics import Breakdown
from advisor.statistics.host_steps import Steps, on_workers, waits_for_input
from advisor.statistics.time_spans import Ints, Union, join, unite


class Cause(IntEnum):
    """The causes to which a moment of a step can be attributed; of simultaneous ones, the greatest counts."""

    UNKNOWN = 0
    HOST_COMPUTE = 1
    COMPILE = 2
    LAUNCH = 3
    COLLECTIVE = 4
    WAIT_INPUT = 5
    TO_DEVICE = 6
    DEVICE_TO_DEVICE = 7
    TO_HOST = 8
    COMPUTE_32 = 9
    COMPUTE_16 = 10


CATEGORIES = {
    "compile_ns": (Cause.COMPILE,),
    "input_ns": (Cause.WAIT_INPUT, Cause.TO_DEVICE),
    "output_ns": (Cause.TO_HOST,),
    "kernel_launch_ns": (Cause.LAUNCH,),
    "host_compute_ns": (Cause.HOST_COMPUTE,),
    "device_communication_ns": (Cause.DEVICE_TO_DEVICE, Cause.COLLECTIVE),
    "device_compute_ns": (Cause.COMPUTE_32, Cause.COMPUTE_16),
    "other_ns": (Cause.UNKNOWN,),
}
"""Field of `Breakdown` -> its causes."""

_XLA_CAUSES = {
    "infeed": Cause.TO_DEVICE,
    "outfeed": Cause.TO_HOST,
    "all-reduce": Cause.COLLECTIVE,
    "all-gather": Cause.COLLECTIVE,
    "all-to-all": Cause.COLLECTIVE,
    "reduce-scatter": Cause.COLLECTIVE,
    "collective-permute": Cause.COLLECTIVE,
}
_DEVICE_CAUSES = {
    DeviceKind.OTHER: Cause.COMPUTE_32,  # memset and the like
    DeviceKind.KERNEL: Cause.COMPUTE_32,
    DeviceKind.TO_DEVICE: Cause.TO_DEVICE,
    DeviceKind.TO_HOST: Cause.TO_HOST,
    DeviceKind.DEVICE_TO_DEVICE: Cause.DEVICE_TO_DEVICE,
    DeviceKind.COLLECTIVE: Cause.COLLECTIVE,
    DeviceKind.XLA_OP: Cause.COMPUTE_32,
}
_HOST_CAUSES = {
    HostKind.OTHER: Cause.HOST_COMPUTE,
    HostKind.OP: Cause.HOST_COMPUTE,
    HostKind.EAGER_OP: Cause.HOST_COMPUTE,
    HostKind.XLA_OP: Cause.HOST_COMPUTE,
    HostKind.GET_NEXT: Cause.WAIT_INPUT,
    HostKind.EXECUTOR: Cause.HOST_COMPUTE,
    HostKind.COMPILE: Cause.COMPILE,
    HostKind.COPY_TO_DEVICE: Cause.TO_DEVICE,
}


def device_causes(device: DeviceActivity) -> npt.NDArray[np.int64]:
    """Return the cause of each device event."""
    by_kind = np.array([_DEVICE_CAUSES[kind] for kind in DeviceKind], np.int64)
    causes = by_kind[device.kind]
    causes[(causes == Cause.COMPUTE_32) & device.is_half] = Cause.COMPUTE_16
    if (device.kind == DeviceKind.XLA_OP).any():
        of_op = np.array([_xla_cause(kind) for _, kind in device.ops] or [Cause.COMPUTE_32], np.int64)
        is_xla = (device.kind == DeviceKind.XLA_OP) & (device.op >= 0)
        causes[is_xla] = of_op[device.op[is_xla]]
    return causes


def host_causes(activity: HostActivity, has_device: bool) -> npt.NDArray[np.int64]:
    """Return the cause of each host event; -1 for events that only enclose others or belong to the input pipeline."""
    by_kind = np.full(len(HostKind), -1, np.int64)
    for kind, cause in _HOST_CAUSES.items():
        by_kind[kind] = cause
    causes = by_kind[activity.kind]
    if has_device:
        launches = activity.is_launch | (activity.kind == HostKind.EXECUTOR)
        causes[launches & (causes >= 0) & (causes != Cause.WAIT_INPUT)] = Cause.LAUNCH
    worker = on_workers(activity)
    causes[worker] = -1
    is_wait = np.array([name.startswith("IteratorGetNext") for name in activity.names] or [False], np.bool_)
    causes[(is_wait[activity.name] & ~worker) | waits_for_input(activity)] = Cause.WAIT_INPUT
    return causes


def _xla_cause(op_type: str) -> Cause:
    for prefix, cause in _XLA_CAUSES.items():
        if op_type.startswith(prefix):
            return cause
    return Cause.COMPUTE_32


def break_down(activity: HostActivity, steps: Steps) -> Ints:
    """Return the time in ps per step and `Cause`: one row per step, which adds up to the duration of the step."""
    result = np.zeros((len(steps), len(Cause)), np.int64)
    if not len(steps):
        return result
    placed = _Placement(steps)
    covered, above = Union(np.zeros(0, np.int64), np.zeros(0, np.int64)), np.zeros(len(steps), np.int64)
    events = list(_events(activity))
    for cause in sorted(Cause, reverse=True)[:-1]:
        for causes, group, start, end in events:
            chosen = causes == cause
            if chosen.any():
                covered = join(covered, placed.place(group[chosen], start[chosen], end[chosen]))
        until = covered.covered(placed.start, placed.end)
        result[:, cause] = until - above
        above = until
    result[:, Cause.UNKNOWN] = steps.end_ps - steps.start_ps - above
    return result


def _events(activity: HostActivity) -> Iterator[tuple[Ints, npt.NDArray[np.int32], Ints, Ints]]:
    """Yield (causes, groups, starts, ends) of the devices and of the host."""
    has_device = any(len(device) for device in activity.devices)
    for device in activity.devices:
        yield device_causes(device), device.group, device.start_ps, device.start_ps + device.duration_ps
    start = activity.start_ps
    yield host_causes(activity, has_device), activity.group, start, start + activity.duration_ps


class _Placement:
    """Steps laid out next to each other, so that steps that overlap in time do not share events."""

    def __init__(self, steps: Steps) -> None:
        self._steps = steps
        length = steps.end_ps - steps.start_ps
        if steps.is_grouped:
            self.start = np.concatenate([[0], np.cumsum(length + 1)[:-1]]).astype(np.int64)
        else:
            self.start = steps.start_ps
        self.end = self.start + length
        self._order = np.argsort(steps.number, kind="stable")

    def place(self, group: npt.NDArray[np.int32], start: Ints, end: Ints) -> Union:
        """Return the union of events inside their steps."""
        steps = self._steps
        if not steps.is_grouped:
            return unite(start, end)
        numbers = steps.number[self._order]
        row = np.minimum(np.searchsorted(numbers, group), len(numbers) - 1)
        known = numbers[row] == group
        row = self._order[row[known]]
        first = np.clip(start[known], steps.start_ps[row], steps.end_ps[row])
        last = np.clip(end[known], steps.start_ps[row], steps.end_ps[row])
        shift = self.start[row] - steps.start_ps[row]
        return unite(first + shift, last + shift)


def to_breakdown(time_ps: Ints) -> Breakdown:
    """Convert one row of `break_down` (or a mean of rows) to the guide's categories."""
    ns = {name: round(sum(int(time_ps[cause]) for cause in causes) / 1000) for name, causes in CATEGORIES.items()}
    return Breakdown(**ns, to_device_ns=round(int(time_ps[Cause.TO_DEVICE]) / 1000))
