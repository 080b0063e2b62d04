"""What ran on the host's threads and on the devices, event by event: the columns that statistics are computed from.

In: nothing.  Out: `HostActivity` and `DeviceActivity`, made by `advisor.profile.activity_columns` and `advisor.profile.devices`.

Times are integer picoseconds, the file's own unit, from the profile's zero: sums of many short kernels stay exact. All columns of
a table have the same length and are sorted by thread or stream, then by start, longer first.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum

import numpy as np
import numpy.typing as npt

Picoseconds = npt.NDArray[np.int64]
Numbers = npt.NDArray[np.int32]
Codes = npt.NDArray[np.uint8]
Flags = npt.NDArray[np.bool_]

MAX_PS = 2**56
"""Times are kept between 0 and this (20 hours), so that those of a damaged file overflow no sum."""
NO_GROUP = -1
"""The event belongs to no step that the file knows of."""


class HostKind(IntEnum):
    """What an event on a host thread is, as far as statistics care."""

    OTHER = 0
    OP = 1
    """An op of a graph or of eager mode, `<node>:<type>`."""
    ITERATOR = 2
    """`Iterator::...` GetNext."""
    GET_NEXT = 3
    """`IteratorGetNext...::DoCompute`: the step asks for its input."""
    EXECUTOR = 4
    """`ExecutorState::Process`: an executor schedules a graph's ops."""
    COMPILE = 5
    """Tracing, graph optimisation, XLA compilation."""
    MARKER = 6
    """Encloses others and does nothing itself: step markers, eager dispatch, `FunctionRun`."""
    TRACED_CALL = 7
    """A call of a `tf.function` that traced it: encloses the tracing and the run."""
    COPY_TO_DEVICE = 8
    """The host's call that copies to a device."""
    STEP = 9
    """A step that the program marked; `group` is its number where the file knows no groups."""
    FUNCTION_CALL = 10
    """Any other call of a `tf.function`."""
    EAGER_OP = 11
    """Dispatch and run of one op outside any function, `EagerLocalExecute: <type>`."""
    XLA_OP = 12
    """An op of a program that XLA compiled for the CPU."""


class DeviceKind(IntEnum):
    """What an event on a device's stream is."""

    OTHER = 0
    KERNEL = 1
    TO_DEVICE = 2
    """A copy from the host."""
    TO_HOST = 3
    DEVICE_TO_DEVICE = 4
    """A copy inside the device or to another one."""
    COLLECTIVE = 5
    """NCCL and its like."""
    XLA_OP = 6
    """An op of a program compiled by XLA, on a device that shows ops and no kernels (TPU)."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryEvents:
    """Allocations and deallocations of all allocators, in order of time. Sizes in bytes."""

    time_ps: Picoseconds
    allocator: Numbers
    """Index into `allocators`."""
    is_allocation: Flags
    stack_bytes: npt.NDArray[np.int64]
    """`bytes_reserved`: held for the stack after this event."""
    heap_bytes: npt.NDArray[np.int64]
    """`bytes_allocated`: in use on the heap after this event."""
    free_bytes: npt.NDArray[np.int64]
    """`bytes_available` after this event."""
    peak_bytes: npt.NDArray[np.int64]
    """`peak_bytes_in_use`: the most that was ever in use, before the window too."""
    fragmentation: npt.NDArray[np.float64]
    size_bytes: npt.NDArray[np.int64]
    """What the allocator took for this request (`allocation_bytes`)."""
    requested_bytes: npt.NDArray[np.int64]
    address: npt.NDArray[np.uint64]
    what: Numbers
    """Index into `owners`."""
    allocators: tuple[str, ...] = ()
    owners: tuple[tuple[str, str, int, str], ...] = ()
    """(op, region type, number of the data type, shape) of allocations."""


@dataclass(frozen=True, slots=True, eq=False)
class HostActivity:
    """All events of the threads of one host."""

    hostname: str
    names: tuple[str, ...]
    threads: tuple[str, ...]
    start_ps: Picoseconds
    duration_ps: Picoseconds
    thread: Numbers
    """Index into `threads`."""
    name: Numbers
    """Index into `names`."""
    kind: Codes
    group: Numbers
    """The step that TensorFlow put it into (TF 2.3 to 2.5 write it; NO_GROUP elsewhere)."""
    is_eager: Flags
    is_launch: Flags
    """Carries a correlation id: a call of the device's driver."""
    memory: MemoryEvents | None = None
    devices: tuple[DeviceActivity, ...] = ()
    start_unix_ns: int | None = None

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceActivity:
    """All events of one device, without the lines that TensorFlow derived from them."""

    name: str
    """`/device:GPU:0`."""
    facts: dict[str, str | int | float | bool]
    """The plane's own: `clock_rate` (kHz), `core_count`, `memory_bandwidth` (bytes/s), `memory_size`, `compute_cap_major`, ..."""
    names: tuple[str, ...]
    streams: tuple[str, ...]
    start_ps: Picoseconds
    duration_ps: Picoseconds
    stream: Numbers
    name_of: Numbers
    """Index into `names`."""
    kind: Codes
    op: Numbers
    """Index into `ops`; -1: no op known."""
    group: Numbers
    is_eager: Flags
    details: Numbers
    """Index into `kernel_details`; -1: none."""
    is_half: Flags
    """Computes with 16-bit floats, as far as names and shapes tell."""
    ops: tuple[tuple[str, str], ...] = ()
    """(name, type) of TensorFlow ops, or of XLA's where no other is known."""
    kernel_details: tuple[str, ...] = ()
    """As they stand in the file: `regs:25 shm:0 grid:1,1,1 block:1024,1,1`."""
    steps: tuple[tuple[int, int, int], ...] = ()
    """(group, start, end in ps) of the steps that TensorFlow derived, where the file has them."""
    programs: tuple[tuple[str, int, int], ...] = ()
    """(name, start, end in ps) of the runs of programs compiled by XLA, where the file has them (TPU)."""
    has_xla_ops: bool = False

    def __len__(self) -> int:
        return len(self.start_ps)
