"""Reads the memory events of the host plane: allocations and deallocations of every allocator.

In: `MemoryAllocation` and `MemoryDeallocation` events.  Out: `MemoryEvents`, in order of time.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from advisor.model.activity import MAX_PS, MemoryEvents
from advisor.profile.safe_names import text

ALLOCATION, DEALLOCATION = "MemoryAllocation", "MemoryDeallocation"
_INTEGERS = (
    "bytes_reserved",
    "bytes_allocated",
    "bytes_available",
    "peak_bytes_in_use",
    "allocation_bytes",
    "requested_bytes",
    "addr",
    "data_type",
    "device_ordinal",
)
_TEXTS = ("allocator_name", "tf_op", "region_type", "shape")
_SIZES = _INTEGERS[:6]
_UINT64 = 0xFFFF_FFFF_FFFF_FFFF
_NO_OWNER = ("", "", 0, "")


class MemoryTable:
    """Collects memory events of all threads."""

    def __init__(self) -> None:
        self._allocators: dict[str, int] = {}
        self._owners: dict[tuple[str, str, int, str], int] = {}
        self._time, self._fragmentation = array("q"), array("d")
        self._sizes = tuple(array("q") for _ in _SIZES)
        self._address = array("Q")
        self._allocator, self._owner = array("i"), array("i")
        self._is_allocation = array("B")

    def decoder(self, plane: Any) -> Callable[[Any, int], None]:  # noqa: ANN401
        """Return a callback for the memory events of `plane`, which takes the event and the start of its line in ps."""
        names = {number: text(stat.name) for number, stat in plane.stat_metadata.items()}
        numbers = {name: number for number, name in names.items()}
        integers = {numbers[name]: place for place, name in enumerate(_INTEGERS) if name in numbers}
        texts = {numbers[name]: place for place, name in enumerate(_TEXTS) if name in numbers}
        fragmentation_stat = numbers.get("fragmentation")
        allocations = {number for number, meta in plane.event_metadata.items() if text(meta.name) == ALLOCATION}

        def add(event: Any, zero_ps: int) -> None:  # noqa: ANN401
            values, words = [0] * len(_INTEGERS), [""] * len(_TEXTS)
            fragmentation = 0.0
            for stat in event.stats:
                number = stat.metadata_id
                if number in integers:
                    values[integers[number]] = stat.int64_value or stat.uint64_value
                elif number in texts:
                    reference = stat.ref_value
                    words[texts[number]] = names.get(reference, "") if reference else text(stat.str_value)
                elif number == fragmentation_stat:
                    fragmentation = stat.double_value
            self._time.append(min(max(zero_ps + event.offset_ps, 0), MAX_PS))
            self._fragmentation.append(fragmentation)
            self._append(event.metadata_id in allocations, values, words)

        return add

    def _append(self, is_allocation: bool, values: list[int], words: list[str]) -> None:
        *sizes, address, data_type, ordinal = values
        for column, size in zip(self._sizes, sizes, strict=True):
            column.append(_fitting(size))
        self._address.append(address & _UINT64)
        self._is_allocation.append(is_allocation)
        allocator, op, region, shape = words
        allocator = allocator or str(ordinal)
        self._allocator.append(self._allocators.setdefault(allocator, len(self._allocators)))
        owner = (op, region, _fitting(data_type), shape) if is_allocation else _NO_OWNER
        self._owner.append(self._owners.setdefault(owner, len(self._owners)))

    def events(self) -> MemoryEvents | None:
        """Return all events in chronological order; None if there are none."""
        if not self._time:
            return None
        time = np.frombuffer(self._time, np.int64)
        order = np.argsort(time, kind="stable")
        sizes = (np.frombuffer(column, np.int64)[order] for column in self._sizes)
        stack, heap, free, peak, size, requested = sizes
        return MemoryEvents(
            time_ps=time[order],
            allocator=np.frombuffer(self._allocator, np.int32)[order],
            is_allocation=np.frombuffer(self._is_allocation, np.uint8)[order].astype(np.bool_),
            stack_bytes=stack,
            heap_bytes=heap,
            free_bytes=free,
            peak_bytes=peak,
            fragmentation=np.frombuffer(self._fragmentation, np.float64)[order],
            size_bytes=size,
            requested_bytes=requested,
            address=np.frombuffer(self._address, np.uint64)[order],
            what=np.frombuffer(self._owner, np.int32)[order],
            allocators=tuple(self._allocators),
            owners=tuple(self._owners),
        )


def _fitting(value: int) -> int:
    """Return `value`, or 0 if it is not a size (in a damaged file)."""
    return value if 0 <= value < 2**56 else 0
