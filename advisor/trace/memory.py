"""Memory events of the host plane: what every allocator gave and took back.

In: `MemoryAllocation` and `MemoryDeallocation` events.  Out: `MemoryEvents`, in order of time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from advisor.model.activity import MemoryEvents
from advisor.trace.plain_text import text

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
_INTEGERS = (
    "bytes_reserved",
    "bytes_allocated",
    "bytes_available",
    "peak_bytes_in_use",
    "allocation_bytes",
    "requested_bytes",
)
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF
_NO_OWNER = ("", "", 0, "")


class MemoryTable:
    """Collects memory events of all threads."""

    def __init__(self) -> None:
        self._allocators: dict[str, int] = {}
        self._owners: dict[tuple[str, str, int, str], int] = {}
        self._time, self._fragmentation = array("q"), array("d")
        self._integers = {name: array("q") for name in _INTEGERS}
        self._address = array("Q")
        self._allocator, self._owner = array("i"), array("i")
        self._is_allocation = array("B")

    def decoder(self, plane: Any) -> Callable[[Any, int], None]:  # noqa: ANN401
        """What to call with each memory event of `plane` and its line's start in ps."""
        stat_names = {number: text(stat.name) for number, stat in plane.stat_metadata.items()}
        allocations = {number for number, meta in plane.event_metadata.items() if text(meta.name) == ALLOCATION}

        def add(event: Any, zero_ps: int) -> None:  # noqa: ANN401
            self._add(event, event.metadata_id in allocations, zero_ps + event.offset_ps, stat_names)

        return add

    def _add(self, event: Any, is_allocation: bool, time_ps: int, stat_names: dict[int, str]) -> None:  # noqa: ANN401
        values: dict[str, int] = {}
        texts: dict[str, str] = {}
        fragmentation = 0.0
        for stat in event.stats:
            name = stat_names.get(stat.metadata_id, "")
            match stat.WhichOneof("value"):
                case "int64_value":
                    values[name] = stat.int64_value
                case "uint64_value":
                    values[name] = stat.uint64_value
                case "double_value":
                    fragmentation = stat.double_value
                case "str_value":
                    texts[name] = text(stat.str_value)
                case "ref_value":
                    texts[name] = stat_names.get(stat.ref_value, "")
        self._time.append(time_ps)
        self._is_allocation.append(is_allocation)
        self._fragmentation.append(fragmentation)
        for name, column in self._integers.items():
            column.append(_fitting(values.get(name, 0)))
        self._address.append(values.get("addr", 0) & _UINT64)
        allocator = texts.get("allocator_name") or str(values.get("device_ordinal", values.get("index_on_host", "")))
        self._allocator.append(self._allocators.setdefault(allocator, len(self._allocators)))
        owner = _NO_OWNER
        if is_allocation:
            op, region, shape = texts.get("tf_op", ""), texts.get("region_type", ""), texts.get("shape", "")
            owner = (op, region, _fitting(values.get("data_type", 0)), shape)
        self._owner.append(self._owners.setdefault(owner, len(self._owners)))

    def events(self) -> MemoryEvents | None:
        """All events, in order of time; None if there are none."""
        if not self._time:
            return None
        time = np.frombuffer(self._time, np.int64)
        order = np.argsort(time, kind="stable")
        integers = {name: np.frombuffer(column, np.int64)[order] for name, column in self._integers.items()}
        return MemoryEvents(
            time_ps=time[order],
            allocator=np.frombuffer(self._allocator, np.int32)[order],
            is_allocation=np.frombuffer(self._is_allocation, np.uint8)[order].astype(np.bool_),
            stack_bytes=integers["bytes_reserved"],
            heap_bytes=integers["bytes_allocated"],
            free_bytes=integers["bytes_available"],
            peak_bytes=integers["peak_bytes_in_use"],
            fragmentation=np.frombuffer(self._fragmentation, np.float64)[order],
            size_bytes=integers["allocation_bytes"],
            requested_bytes=integers["requested_bytes"],
            address=np.frombuffer(self._address, np.uint64)[order],
            what=np.frombuffer(self._owner, np.int32)[order],
            allocators=tuple(self._allocators),
            owners=tuple(self._owners),
        )


def _fitting(value: int) -> int:
    """`value`, or 0 where it is no size (a damaged file)."""
    return value if 0 <= value < 2**62 else 0
