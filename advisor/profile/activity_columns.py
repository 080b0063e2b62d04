"""Reads the activity of a host as columns for the statistics, in addition to the `Trace` from `reader`.

In: a `.xplane.pb` file.  Out: `HostActivity`, including its devices.

It is read separately from the trace because only reports need it and because it contains nearly every event. Names are classified
once per name, and events are decoded in slices, as in `events`. Events of Python frames and of thread pools are dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from advisor.model.activity import NO_GROUP, Flags, HostActivity, HostKind, Numbers
from advisor.model.errors import AdvisorError
from advisor.profile.devices import DEVICE_PLANE, decode_device, sane_times
from advisor.profile.events import SLICE
from advisor.profile.file_content import read_profile
from advisor.profile.labels import Labels
from advisor.profile.long_names import is_iterator_name
from advisor.profile.memory_events import ALLOCATION, DEALLOCATION, MemoryTable
from advisor.profile.op_names import is_op_name
from advisor.profile.profile_files import host_of
from advisor.profile.reader import HOST_PLANE, clock_of
from advisor.profile.safe_names import text
from advisor.profile.wire import Batch, EventColumns, Ints, UInts, batches, decode_events
from advisor.profile.xspace import MAX_PS, XSpaceDecodeError, parse_event, parse_xspace

_DROPPED = re.compile(r"\$.*|ThreadpoolListener::.*", re.DOTALL)
"""Python frames and the bookkeeping of thread pools: numerous, and without work of their own."""
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
"""Matches ops; functions have names like `__inference_train_step_12`."""
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
_GROUP_ID, _IS_EAGER, _CORRELATION_ID, _HLO_OP, _STEP_NUM, _FUNCTION_CALL = range(6)
_STATS = {
    "group_id": _GROUP_ID,
    "is_eager": _IS_EAGER,
    "correlation_id": _CORRELATION_ID,
    "hlo_op": _HLO_OP,
    "step_num": _STEP_NUM,
    "tf_function_call": _FUNCTION_CALL,
}
"""The stats that are read for every event."""
_Part = tuple[Any, ...]
"""Offset and duration in ps, name, kind, group, flags."""
_NO_COLUMNS: list[Any] = [np.zeros(0, dtype) for dtype in (np.int64, np.int64, np.int32, np.uint8, np.int32, np.uint8)]
_NONE = np.zeros(0, np.int64)


def read_activity(path: Path) -> HostActivity | None:
    """Return the activity of the host in a profile file; None if it cannot be read (`read_host` reports why)."""
    try:
        return decode_activity(parse_xspace(read_profile(path)), host_of(path))
    except (AdvisorError, XSpaceDecodeError, MemoryError):
        return None


def decode_activity(space: Any, hostname: str) -> HostActivity:  # noqa: ANN401
    """Return the columns of one profile; `hostname` is used if the file contains no host name."""
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
        lines = list(plane.lines)
        decoder = _LineDecoder(stat_numbers, judged, labels, memory)
        parts: list[list[_Part]] = [[] for _ in lines]
        zero_ps = [(line.timestamp_ns - zero_ns) * 1000 for line in lines]
        for batch in batches(lines, SLICE):
            decoder.decode(batch, zero_ps, parts)
        for line, start, columns in zip(lines, zero_ps, parts, strict=True):
            self._parts.append(_sorted(columns, len(self._threads), start))
            self._threads.append(text(line.name) or text(line.display_name))

    def activity(self, hostname: str, devices: tuple[Any, ...], start_unix_ns: int | None) -> HostActivity:
        parts = self._parts or [_sorted([], 0, 0)]
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


class _LineDecoder:
    """Decodes events of one plane: offset and duration in ps, name, kind, group, flags."""

    def __init__(
        self,
        stat_numbers: Mapping[str, int],
        judged: Mapping[int, int],
        labels: Mapping[int, int],
        memory: Callable[[Any, int], None],
    ) -> None:
        self._stats = {code: stat_numbers[name] for name, code in _STATS.items() if name in stat_numbers}
        self._stat_names = {number: name for name, number in stat_numbers.items()}
        self._memory = memory
        self._ids = np.array(sorted(judged), np.int64)
        # one more for missing names, as in a damaged file
        self._kinds = np.array([*(judged[number] for number in self._ids.tolist()), _DROP], np.int16)
        self._labels = np.array([*(labels.get(number, 0) for number in self._ids.tolist()), 0], np.int32)

    def decode(self, batch: Batch, zero_ps: Sequence[int], parts: list[list[_Part]]) -> None:
        """Add the columns of each slice to those of its line; memory events go to the memory table."""
        events = decode_events(batch.encoded)
        offset, duration = events.offset_ps, events.duration_ps
        place = np.searchsorted(self._ids, events.metadata_id)
        is_known = np.append(self._ids, 0)[place] == events.metadata_id
        place = np.where(is_known & (place < len(self._ids)), place, len(self._ids))
        kind = self._kinds[place]
        is_possible = (duration >= 0) & (duration <= MAX_PS) & (offset >= -MAX_PS) & (offset <= MAX_PS)
        piece = np.repeat(np.arange(len(batch.count)), batch.count)
        for event in np.flatnonzero(is_possible & (kind == _MEMORY)).tolist():
            self._memory(parse_event(batch.encoded[event]), zero_ps[batch.line[piece[event]]])
        group, flags = np.full(len(events), NO_GROUP, np.int32), np.zeros(len(events), np.uint8)
        # aggregated events have no start
        kept = is_possible & (kind >= 0) & ((duration != 0) | (events.num_occurrences == 0))
        self._read_stats(events, kept, kind, group, flags)
        rows = np.flatnonzero(kept)
        columns = (
            offset[rows],
            duration[rows],
            self._labels[place[rows]],
            kind[rows].astype(np.uint8),
            group[rows],
            flags[rows],
        )
        bounds = np.searchsorted(piece[rows], np.arange(len(batch.count) + 1)).tolist()
        for line, begin, end in zip(batch.line, bounds, bounds[1:], strict=False):
            parts[line].append(tuple(column[begin:end] for column in columns))

    def _read_stats(self, events: EventColumns, kept: Flags, kind: Any, group: Any, flags: Any) -> None:  # noqa: ANN401
        """Set kind, group and flags from the stats of the events."""
        step = np.full(len(events), NO_GROUP, np.int32)
        rows_of_stat: dict[int, Ints] = {}
        for code, number in self._stats.items():
            stats = np.flatnonzero(events.stat_id == number)
            if len(stats):
                rows_of_stat[code] = stats[kept[events.stat_event[stats]]]
        if _GROUP_ID in rows_of_stat:
            stats = rows_of_stat[_GROUP_ID]
            group[events.stat_event[stats]] = _small(events.numbers(stats))
        if _IS_EAGER in rows_of_stat:
            stats = rows_of_stat[_IS_EAGER]
            flags[events.stat_event[stats[events.numbers(stats) != 0]]] |= _EAGER
        if _CORRELATION_ID in rows_of_stat:
            flags[events.stat_event[rows_of_stat[_CORRELATION_ID]]] |= _LAUNCH
        # of a step number and a function call, the last one counts; few events have both
        marks = np.concatenate(
            [rows_of_stat[code] for code in (_STEP_NUM, _FUNCTION_CALL) if code in rows_of_stat] or [_NONE]
        )
        for stat in np.sort(marks).tolist():
            event = int(events.stat_event[stat])
            if events.stat_id[stat] == self._stats.get(_STEP_NUM):
                kind[event] = int(HostKind.STEP)
                step[event] = _small(events.numbers(np.array([stat])))[0]
            else:
                name = self._stat_names.get(int(events.references(np.array([stat]))[0]), "") or text(
                    events.string(stat)
                )
                kind[event] = int(HostKind.TRACED_CALL if name.startswith("traced") else HostKind.FUNCTION_CALL)
        if _HLO_OP in rows_of_stat:
            rows = np.unique(events.stat_event[rows_of_stat[_HLO_OP]])
            # launches of GPU kernels also name their op
            kind[rows[(kind[rows] == HostKind.OTHER) & (flags[rows] & _LAUNCH == 0)]] = int(HostKind.XLA_OP)
        np.copyto(group, step, where=group == NO_GROUP)


def _sorted(parts: Sequence[_Part], thread: int, zero_ps: int) -> tuple[np.ndarray[Any, Any], ...]:
    """Return the columns of a line, sorted by start, longer events first: start, duration, thread, name, kind, group, flags."""
    columns: list[Any] = [np.concatenate(column) for column in zip(*parts, strict=True)] if parts else _NO_COLUMNS
    offset, length, name, kind, group, flags = columns
    start, duration = sane_times(offset, length, zero_ps)
    order = np.lexsort((-duration, start))
    return (
        start[order],
        duration[order],
        np.full(len(order), thread, np.int32),
        name[order],
        kind[order],
        group[order],
        flags[order],
    )


def _judge(name: str) -> int:
    """Return the kind of all events with that name; `_MEMORY`, or `_DROP` for irrelevant ones."""
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


def _small(values: UInts) -> Numbers:
    """Return group numbers; NO_GROUP for values that do not fit into an int32 (a damaged file)."""
    return np.where(values < np.uint64(2**31), values, np.uint64(0)).astype(np.int32) + np.where(
        values < np.uint64(2**31), 0, NO_GROUP
    ).astype(np.int32)
