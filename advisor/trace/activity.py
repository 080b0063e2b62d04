"""What ran on the threads of a host, as columns: for statistics, beside the iterators that `reader` boils a profile down to.

In: a `.xplane.pb` file.  Out: `HostActivity`, its devices included.

It is read apart from the trace, since only reports need it and since it keeps nearly every event. Names are judged once per name,
and events are decoded a slice at a time, as in `events`. Events of Python frames and of thread pools are dropped.
"""

from __future__ import annotations

import re
from array import array
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from advisor.errors import AdvisorError
from advisor.model.activity import NO_GROUP, HostActivity, HostKind
from advisor.trace.content import read_profile
from advisor.trace.devices import DEVICE_PLANE, decode_device, sane_times
from advisor.trace.events import SLICE, Labels
from advisor.trace.files import host_of
from advisor.trace.long_names import is_iterator_name
from advisor.trace.memory import ALLOCATION, DEALLOCATION, MemoryTable
from advisor.trace.op_names import is_op_name
from advisor.trace.plain_text import text
from advisor.trace.reader import HOST_PLANE, clock_of
from advisor.trace.xspace import MAX_PS, XSpaceDecodeError, parse_raw_events, parse_xspace

_DROPPED = re.compile(r"\$.*|ThreadpoolListener::.*", re.DOTALL)
"""Python frames and the bookkeeping of thread pools: many, and no work of their own."""
_GET_NEXT = re.compile(r"(MultiDevice)?IteratorGetNext\w*::DoCompute|GetNextFromShard\d*")
_COMPILE = re.compile(
    r"tf\.function-graph_building|\w*Compil(er|ationCache)::.+|(Grappler|MetaOptimizer).*|XlaCompile.*"
)
_EXECUTOR = re.compile(r"ExecutorState::Process|ExecutorDoneCallback")
_MARKER = re.compile(
    r"Eager(Execute|LocalExecute|KernelExecute).*|FunctionRun.*|(train|test|TraceContext)[^/:]*"
    r"|KernelAndDevice(Func|Op)::Run|TFE_Py_\w+|(SessionRun|RunGraph|RunGraphDone)"
)
_EAGER_OP = re.compile(r"EagerLocalExecute: (?!__)\w+")
"""Ops; functions have names like `__inference_train_step_12`."""
_COPY = re.compile(r"(cu|hip)?Memcpy(H2D|HtoD).*", re.IGNORECASE)
_BY_NAME: Mapping[HostKind, re.Pattern[str]] = {
    HostKind.GET_NEXT: _GET_NEXT,
    HostKind.COMPILE: _COMPILE,
    HostKind.EXECUTOR: _EXECUTOR,
    HostKind.EAGER_OP: _EAGER_OP,
    HostKind.MARKER: _MARKER,
    HostKind.COPY_TO_DEVICE: _COPY,
}
_MEMORY = -2
_DROP = -1
_EAGER, _LAUNCH = 1, 2
"""Bits of an event's flags."""
_STATS = {"group_id": 1, "is_eager": 2, "correlation_id": 3, "hlo_op": 4, "step_num": 5, "tf_function_call": 6}
"""What `_read_stats` does with each stat."""


def read_activity(path: Path) -> HostActivity | None:
    """The activity of the host whose profile is the file at `path`; None where it cannot be read (`read_host` says why)."""
    try:
        return decode_activity(parse_xspace(read_profile(path)), host_of(path))
    except (AdvisorError, XSpaceDecodeError, MemoryError):
        return None


def decode_activity(space: Any, hostname: str) -> HostActivity:  # noqa: ANN401
    """The columns of one profile; `hostname` is used where the file names no host."""
    zero_ns, start_unix_ns = clock_of(space)
    host = _HostDecoder()
    devices = []
    for plane in space.planes:
        if plane.name == HOST_PLANE:
            host.decode(plane, zero_ns)
        elif plane.name.startswith(DEVICE_PLANE):
            devices.append(decode_device(plane, zero_ns))
    name = text(space.hostnames[0]) if space.hostnames else hostname
    return host.activity(name, tuple(devices), start_unix_ns)


class _HostDecoder:
    """Decodes `/host:CPU` planes into one set of columns."""

    def __init__(self) -> None:
        self._names = Labels()
        self._memory = MemoryTable()
        self._threads: list[str] = []
        self._parts: list[tuple[np.ndarray[Any, Any], ...]] = []

    def decode(self, plane: Any, zero_ns: int) -> None:  # noqa: ANN401
        stat_numbers = {text(stat.name): number for number, stat in plane.stat_metadata.items()}
        judged = {number: _judge(text(metadata.name)) for number, metadata in plane.event_metadata.items()}
        labels = {
            number: self._names.number(text(plane.event_metadata[number].name))
            for number, kind in judged.items()
            if kind >= 0
        }
        memory = self._memory.decoder(plane)
        for line in plane.lines:
            columns = _Columns(stat_numbers, judged, labels)
            zero_ps = (line.timestamp_ns - zero_ns) * 1000
            for first in range(0, len(line.events), SLICE):
                columns.add(parse_raw_events(line.events[first : first + SLICE]), zero_ps, memory)
            self._parts.append(columns.sorted(len(self._threads), zero_ps))
            self._threads.append(text(line.name) or text(line.display_name))

    def activity(self, hostname: str, devices: tuple[Any, ...], start_unix_ns: int | None) -> HostActivity:
        parts = self._parts or [_Columns({}, {}, {}).sorted(0, 0)]
        start, duration, thread, name, kind, group, flags = (
            np.concatenate(column) for column in zip(*parts, strict=True)
        )
        return HostActivity(
            hostname=hostname,
            names=self._names.texts(),
            threads=tuple(self._threads),
            start_ps=start,
            duration_ps=duration,
            thread=thread,
            name=name,
            kind=kind,
            group=group,
            is_eager=(flags & _EAGER).astype(np.bool_),
            is_launch=(flags & _LAUNCH).astype(np.bool_),
            memory=self._memory.events(),
            devices=devices,
            start_unix_ns=start_unix_ns,
        )


class _Columns:
    """Growing columns of one thread."""

    def __init__(self, stat_numbers: Mapping[str, int], judged: Mapping[int, int], labels: Mapping[int, int]) -> None:
        self._judged, self._labels = judged, labels
        self._stats = {stat_numbers[name]: code for name, code in _STATS.items() if name in stat_numbers}
        self._stat_names = {number: name for name, number in stat_numbers.items()}
        self._offset, self._duration = array("q"), array("q")
        self._name, self._group = array("i"), array("i")
        self._kind, self._flags = array("B"), array("B")

    def add(self, events: Any, zero_ps: int, memory: Any) -> None:  # noqa: ANN401
        """Append a slice of decoded events; memory events go to `memory`."""
        judged, labels, reads_stats = self._judged, self._labels, bool(self._stats)
        # bound once: this loop runs for every event of the profile
        columns = (self._offset, self._duration, self._name, self._kind, self._group, self._flags)
        offsets, durations, names, kinds, groups, all_flags = (column.append for column in columns)
        for event in events:
            number = event.metadata_id
            offset, duration = event.offset_ps, event.duration_ps
            if not (0 <= duration <= MAX_PS and -MAX_PS <= offset <= MAX_PS):
                continue
            kind = judged.get(number, _DROP)
            if kind < 0:
                if kind == _MEMORY:
                    memory(event, zero_ps)
                continue
            group, flags = NO_GROUP, 0
            if reads_stats:
                kind, group, flags = self._read_stats(event.stats, kind)
            if not duration and event.num_occurrences:
                continue  # a sum over many events: it has no place in time
            offsets(offset)
            durations(duration)
            names(labels[number])
            kinds(kind)
            groups(group)
            all_flags(flags)

    def _read_stats(self, stats: Any, kind: int) -> tuple[int, int, int]:  # noqa: ANN401
        """(kind, group, flags) of an event, from its stats."""
        group, step, flags, is_xla = NO_GROUP, NO_GROUP, 0, False
        wanted = self._stats
        for stat in stats:
            match wanted.get(stat.metadata_id, 0):
                case 0:
                    continue
                case 1:
                    group = _small(stat.int64_value or stat.uint64_value)
                case 2:
                    flags |= _EAGER if (stat.int64_value or stat.uint64_value) else 0
                case 3:
                    flags |= _LAUNCH
                case 4:
                    is_xla = True
                case 5:
                    kind, step = int(HostKind.STEP), _small(stat.int64_value or stat.uint64_value)
                case 6:
                    value = self._stat_names.get(stat.ref_value, "") or text(stat.str_value)
                    kind = int(HostKind.TRACED_CALL if value.startswith("traced") else HostKind.FUNCTION_CALL)
        if is_xla and kind == HostKind.OTHER and not flags & _LAUNCH:  # launches of a GPU's kernels name their op too
            kind = int(HostKind.XLA_OP)
        return kind, step if group == NO_GROUP else group, flags

    def sorted(self, thread: int, zero_ps: int) -> tuple[np.ndarray[Any, Any], ...]:
        """The columns, sorted by start, longer first: start, duration, thread, name, kind, group, flags."""
        start, duration = sane_times(self._offset, self._duration, zero_ps)
        order = np.lexsort((-duration, start))
        return (
            start[order],
            duration[order],
            np.full(len(order), thread, np.int32),
            np.frombuffer(self._name, np.int32)[order],
            np.frombuffer(self._kind, np.uint8)[order],
            np.frombuffer(self._group, np.int32)[order],
            np.frombuffer(self._flags, np.uint8)[order],
        )


def _judge(name: str) -> int:
    """The kind of all events of that name; `_MEMORY`, or `_DROP` for those of no use."""
    if is_iterator_name(name):
        return int(HostKind.ITERATOR)
    if name in (ALLOCATION, DEALLOCATION):
        return _MEMORY
    if not name or _DROPPED.fullmatch(name):
        return _DROP
    for kind, pattern in _BY_NAME.items():
        if pattern.fullmatch(name):
            return int(kind)
    return int(HostKind.OP if is_op_name(name) else HostKind.OTHER)


def _small(value: int) -> int:
    """A group's number, or NO_GROUP where it fits no int32 (a damaged file)."""
    return value if 0 <= value < 2**31 else NO_GROUP
