"""The events of host threads and devices as columns, from which the statistics are computed.

`HostActivity` and `DeviceActivity` are made by `advisor.profile.activity_columns` and `advisor.profile.devices`.

Times are integer picoseconds from the profile's zero, the unit of the file, so that sums of many short kernels stay exact. All
columns of a table have the same length and are sorted by thread or stream, then by start, longer events first.
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
"""Times are limited to 0 to this (20 hours), so that the times of a damaged file do not overflow a sum."""
NO_GROUP = -1
"""Group of events that belong to no step in the file."""


class HostKind(IntEnum):
    """The kind of an event on a host thread, as far as the statistics are concerned."""

    OTHER = 0
    OP = 1
    """An op of a graph or of eager mode, `<node>:<type>`."""
    ITERATOR = 2
    """`Iterator::...` GetNext."""
    GET_NEXT = 3
    """`IteratorGetNext...::DoCompute`: the step requests its input."""
    EXECUTOR = 4
    """`ExecutorState::Process`: an executor schedules the ops of a graph."""
    COMPILE = 5
    """Tracing, graph optimisation, XLA compilation."""
    MARKER = 6
    """Encloses other events without work of its own: step markers, eager dispatch, `FunctionRun`."""
    TRACED_CALL = 7
    """A call of a `tf.function` that traced the function; encloses the tracing and the run."""
    COPY_TO_DEVICE = 8
    """The call on the host that copies to a device."""
    STEP = 9
    """A step marked by the program; `group` is its number if the file has no groups."""
    FUNCTION_CALL = 10
    """Any other call of a `tf.function`."""
    EAGER_OP = 11
    """Dispatch and execution of one op outside a function, `EagerLocalExecute: <type>`."""
    XLA_OP = 12
    """An op of a program that XLA compiled for the CPU."""


class DeviceKind(IntEnum):
    """The kind of an event on a device stream."""

    OTHER = 0
    KERNEL = 1
    TO_DEVICE = 2
    """A copy from the host."""
    TO_HOST = 3
    DEVICE_TO_DEVICE = 4
    """A copy within the device or to another device."""
    COLLECTIVE = 5
    """NCCL and similar libraries."""
    XLA_OP = 6
    """An op of a program compiled by XLA, on a device that records ops instead of kernels (TPU)."""


@dataclass(frozen=True, slots=True, eq=False)
class MemoryEvents:
    """Allocations and deallocations of all allocators, in chronological order. Sizes are in bytes."""

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
    """`peak_bytes_in_use`: the maximum in use so far, including before the window."""
    fragmentation: npt.NDArray[np.float64]
    size_bytes: npt.NDArray[np.int64]
    """The size that the allocator reserved for this request (`allocation_bytes`)."""
    requested_bytes: npt.NDArray[np.int64]
    address: npt.NDArray[np.uint64]
    what: Numbers
    """Index into `owners`."""
    allocators: tuple[str, ...] = ()
    owners: tuple[tuple[str, str, int, str], ...] = ()
    """(op, region type, data type number, shape) of each allocation."""


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
    """The step that TensorFlow assigned the event to (written by TF 2.3 to 2.5; NO_GROUP otherwise)."""
    is_eager: Flags
    is_launch: Flags
    """Whether the event has a correlation id: a call of the device driver."""
    memory: MemoryEvents | None = None
    devices: tuple[DeviceActivity, ...] = ()
    start_unix_ns: int | None = None

    def __len__(self) -> int:
        return len(self.start_ps)


@dataclass(frozen=True, slots=True, eq=False)
class DeviceActivity:
    """All events of one device, without the lines that TensorFlow derives from them."""

    name: str
    """`/device:GPU:0`."""
    facts: dict[str, str | int | float | bool]
    """The stats of the plane: `clock_rate` (kHz), `core_count`, `memory_bandwidth` (bytes/s), `compute_cap_major`, ..."""
    names: tuple[str, ...]
    streams: tuple[str, ...]
    start_ps: Picoseconds
    duration_ps: Picoseconds
    stream: Numbers
    name_of: Numbers
    """Index into `names`."""
    kind: Codes
    op: Numbers
    """Index into `ops`; -1 if the op is unknown."""
    group: Numbers
    is_eager: Flags
    details: Numbers
    """Index into `kernel_details`; -1 if there are none."""
    is_half: Flags
    """Whether the kernel computes with 16-bit floats, according to names and shapes."""
    ops: tuple[tuple[str, str], ...] = ()
    """(name, type) of TensorFlow ops, or of XLA ops if no TensorFlow op is known."""
    kernel_details: tuple[str, ...] = ()
    """As written in the file: `regs:25 shm:0 grid:1,1,1 block:1024,1,1`."""
    steps: tuple[tuple[int, int, int], ...] = ()
    """(group, start, end in ps) of the steps that TensorFlow derived, if the file has them."""
    programs: tuple[tuple[str, int, int], ...] = ()
    """(name, start, end in ps) of the runs of programs compiled by XLA, if the file has them (TPU)."""
    has_xla_ops: bool = False

    def __len__(self) -> int:
        return len(self.start_ps)
