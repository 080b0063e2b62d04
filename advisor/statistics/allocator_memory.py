"""Memory statistics per allocator: the peak, its time and users, and the memory over time.

In: the memory events of one host.  Out: `AllocatorMemory`s.

Memory that was allocated in the window and not freed before the peak is attributed to ops; the rest of the memory in use was
allocated earlier. XProf (`xplane_to_memory_profile.cc`) considers only the step of the peak and skips memory that was freed
outside of steps. If the maximum occurs several times, the last one counts, as in XProf.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable

import numpy as np

from advisor.model.activity import MemoryEvents
from advisor.model.profile_statistics import AllocatorMemory, MemoryPoint, MemoryStatistics, MemoryUser
from advisor.statistics.time_spans import Ints

MAX_POINTS = 200
"""Maximum number of points of a timeline. Of each section, the point with the most memory in use is kept, so no peak is lost."""
MAX_USERS = 500
_DEVICES = ("GPU", "TPU")

DATA_TYPES = {
    0: "unknown",
    1: "float",
    2: "double",
    3: "int32",
    4: "uint8",
    5: "int16",
    6: "int8",
    7: "string",
    8: "complex64",
    9: "int64",
    10: "bool",
    11: "qint8",
    12: "quint8",
    13: "qint32",
    14: "bfloat16",
    15: "qint16",
    16: "quint16",
    17: "uint16",
    18: "complex128",
    19: "half",
    20: "resource",
    21: "variant",
    22: "uint32",
    23: "uint64",
    24: "float8_e5m2",
    25: "float8_e4m3fn",
    29: "int4",
    30: "uint4",
}
"""`DataType` of `tensorflow/core/framework/types.proto`; reference types are 100 higher."""


def describe_memory(host: str, events: MemoryEvents | None) -> tuple[AllocatorMemory, ...]:
    """Describe every allocator of one host that was active in the window."""
    if events is None:
        return ()
    return tuple(
        _describe(host, name, events, np.flatnonzero(events.allocator == number))
        for number, name in enumerate(events.allocators)
    )


def memory_statistics(allocators: Iterable[AllocatorMemory]) -> MemoryStatistics | None:
    """Sort the allocators of all hosts: devices first, then by peak; None if there are none."""
    ranked = ranked_by_peak(allocators)
    return MemoryStatistics(tuple(ranked)) if ranked else None


def ranked_by_peak(allocators: Iterable[AllocatorMemory]) -> list[AllocatorMemory]:
    """Return the allocators, those of devices first, then by peak."""
    return sorted(
        allocators,
        key=lambda memory: (
            "host" in memory.allocator or "cpu" in memory.allocator.lower(),
            -memory.peak_bytes,
            memory.host,
        ),
    )


def device_peak_share(allocators: Iterable[AllocatorMemory]) -> float | None:
    """Return the maximum share of memory in use among device allocators, recognised by name (`GPU_0_bfc`); None without any."""
    shares = [
        allocator.peak_bytes / allocator.capacity_bytes
        for allocator in allocators
        if allocator.capacity_bytes and allocator.allocator.upper().startswith(_DEVICES)
    ]
    return max(shares, default=None)


def _describe(host: str, name: str, events: MemoryEvents, rows: Ints) -> AllocatorMemory:
    in_use = events.heap_bytes[rows] + events.stack_bytes[rows]
    peak = int(rows[len(in_use) - 1 - int(np.argmax(in_use[::-1]))])
    users, explained = _users(events, rows, peak)
    held = int(events.heap_bytes[peak])
    is_allocation = events.is_allocation[rows]
    return AllocatorMemory(
        host=host,
        allocator=name,
        num_allocations=int(is_allocation.sum()),
        num_deallocations=int(len(rows) - is_allocation.sum()),
        peak_bytes=int(in_use.max()),
        peak_time_ns=int(events.time_ps[peak]) // 1000,
        peak_heap_bytes=held,
        peak_stack_bytes=int(events.stack_bytes[peak]),
        peak_free_bytes=int(events.free_bytes[peak]),
        peak_fragmentation=_share(events.fragmentation[peak]),
        lifetime_peak_bytes=int(events.peak_bytes[rows].max()),
        capacity_bytes=held + int(events.stack_bytes[peak]) + int(events.free_bytes[peak]),
        timeline=_timeline(events, rows, in_use),
        users=tuple(users[:MAX_USERS]),
        unexplained_bytes=max(0, held - explained),
        left_out_users=max(0, len(users) - MAX_USERS),
    )


def _timeline(events: MemoryEvents, rows: Ints, in_use: Ints) -> tuple[MemoryPoint, ...]:
    edges = np.linspace(0, len(rows), min(MAX_POINTS, len(rows)) + 1).astype(np.int64)
    chosen = [int(rows[a + int(np.argmax(in_use[a:b]))]) for a, b in itertools.pairwise(edges.tolist())]
    return tuple(
        MemoryPoint(
            time_ns=int(events.time_ps[row]) // 1000,
            heap_bytes=int(events.heap_bytes[row]),
            stack_bytes=int(events.stack_bytes[row]),
            free_bytes=int(events.free_bytes[row]),
            fragmentation=_share(events.fragmentation[row]),
        )
        for row in chosen
    )


def _users(events: MemoryEvents, rows: Ints, peak: int) -> tuple[list[MemoryUser], int]:
    """Return the users of memory at the peak, largest first, and their total bytes."""
    rows = rows[rows <= peak]
    # an address is in use if its last event is an allocation; the stable sort by address keeps the order in time
    order = np.argsort(events.address[rows], kind="stable")
    address = events.address[rows][order]
    last = np.concatenate([address[1:] != address[:-1], [True]])
    held = rows[order[last]]
    held = held[events.is_allocation[held]]
    keys = np.stack([events.what[held].astype(np.int64), events.size_bytes[held], events.requested_bytes[held]])
    distinct, counts = np.unique(keys, axis=1, return_counts=True)
    users = []
    for (what, size, requested), count in zip(distinct.T.tolist(), counts.tolist(), strict=True):
        op, region, number, shape = events.owners[what]
        users.append(
            MemoryUser(
                op=op or "unknown",
                region=region,
                data_type=DATA_TYPES.get(number % 100, str(number)),
                shape=shape,
                occurrences=count,
                bytes=size * count,
                requested_bytes=requested * count,
            )
        )
    users.sort(key=lambda user: (-user.bytes, user.op, user.shape))
    return users, int(events.size_bytes[held].sum())


def _share(value: float) -> float | None:
    """Return the fragmentation; None if it is not a number (the allocator reports no free memory)."""
    return float(value) if np.isfinite(value) else None
