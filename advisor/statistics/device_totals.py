"""Counts the devices of all hosts by kind.

In: the device planes of each host.  Out: `DeviceGroup`s: devices with the same properties are one group, so that thousands of
equal devices take as much memory as one.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace

from advisor.model.activity import DeviceActivity, DeviceKind
from advisor.statistics.step_sums import is_computing

_DEVICE_TYPE = re.compile(r"/device:([A-Z]+)")
_FACTS = (
    "compute_cap_major",
    "compute_cap_minor",
    "device_vendor",
    "device_type_string",
    "memory_size",
    "core_count",
)
"""The properties that are reported."""

Facts = dict[str, str | int | float | bool]


@dataclass(frozen=True, slots=True)
class DeviceGroup:
    """Devices with the same properties, without their events."""

    kind: str
    """`GPU`, `TPU`, ...; empty if the name of the plane does not say."""
    facts: Facts
    is_computing: bool
    """Whether they ran more than copies."""
    has_xla_ops: bool
    number: int = 1
    num_events: int = 0
    num_collectives: int = 0

    def is_like(self, other: DeviceGroup) -> bool:
        """Return whether both have the same properties."""
        return (self.kind, self.facts, self.is_computing, self.has_xla_ops) == (
            other.kind,
            other.facts,
            other.is_computing,
            other.has_xla_ops,
        )


def group_of(device: DeviceActivity) -> DeviceGroup:
    """Return the group of one device."""
    match = _DEVICE_TYPE.search(device.name)
    return DeviceGroup(
        kind=match[1] if match else "",
        facts={name: device.facts[name] for name in _FACTS if name in device.facts},
        is_computing=is_computing(device),
        has_xla_ops=device.has_xla_ops,
        num_events=len(device),
        num_collectives=int((device.kind == DeviceKind.COLLECTIVE).sum()),
    )


def add_groups(groups: list[DeviceGroup], others: Iterable[DeviceGroup]) -> None:
    """Add devices to the groups; the order is that of the first device of each group."""
    for other in others:
        for place, group in enumerate(groups):
            if group.is_like(other):
                groups[place] = replace(
                    group,
                    number=group.number + other.number,
                    num_events=group.num_events + other.num_events,
                    num_collectives=group.num_collectives + other.num_collectives,
                )
                break
        else:
            groups.append(other)


def number_of(groups: Iterable[DeviceGroup]) -> int:
    """Return the number of devices."""
    return sum(group.number for group in groups)
