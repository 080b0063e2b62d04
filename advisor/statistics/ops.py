"""Statistics of ops: occurrences and durations on the host and on the devices.

In: the activity of each host.  Out: `OpRow`s per op and per type, with and without idle time.

Definitions are XProf's (`xplane_to_op_metrics_db.cc`). On the host, the self time of an op is its duration minus that of the ops
directly inside it on the same thread, and idle time is the rest of each thread's span. On a device, the time of an op is that of
its kernels and copies, its number of runs is that of its most frequent kernel, and idle time is the rest of the device's span.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.model.activity import DeviceActivity, DeviceKind, Flags, HostActivity, HostKind
from advisor.model.profile_statistics import OpRow
from advisor.profile.long_names import is_iterator_name
from advisor.profile.op_names import parse_op_name, xla_type
from advisor.statistics.time_spans import Ints, self_times

IDLE = "IDLE"
HOST, DEVICE = "host", "device"
EAGER_DISPATCH = "EagerLocalExecute: "
NO_EAGER_OPS = ("__inference_", "__forward_", "__backward_", f"{EAGER_DISPATCH}IteratorGetNext")
"""Op types that call compiled functions or belong to the input pipeline."""
DATASET = "Dataset"
"""The type of tf.data iterators in XProf's tables."""


@dataclass(slots=True)
class OpSum:
    """The sums of one op; times in ps."""

    occurrences: int = 0
    total: int = 0
    own: int = 0
    eager: int = 0
    """The part of `own` in runs outside a function."""
    is_eager: bool = False
    """Whether a run was eager."""
    usual: int = 0
    """The part of `own` if every run had taken the median of the runs of the same op on its host; 0 on a device."""

    def add(self, other: OpSum) -> None:
        """Add other runs of the op."""
        self.occurrences += other.occurrences
        self.total += other.total
        self.own += other.own
        self.eager += other.eager
        self.is_eager |= other.is_eager
        self.usual += other.usual


@dataclass(slots=True)
class SideSums:
    """The ops of one side, by (name, type)."""

    ops: dict[tuple[str, str], OpSum] = field(default_factory=dict)
    idle: int = 0

    def of(self, name: str, kind: str) -> OpSum:
        """Return the sums of an op."""
        return self.ops.setdefault((name, kind), OpSum())

    def merge(self, other: SideSums) -> None:
        """Add the ops of another host."""
        for key, op in other.ops.items():
            self.of(*key).add(op)
        self.idle += other.idle

    @property
    def busy(self) -> int:
        """Return the self time of all ops in ps."""
        return sum(op.own for op in self.ops.values())

    @property
    def occurrences(self) -> int:
        """Return the number of runs of all ops."""
        return sum(op.occurrences for op in self.ops.values())

    @property
    def eager_share(self) -> float | None:
        """Return the share of the ops' self time that was eager; None without ops."""
        busy = self.busy
        return sum(op.eager for op in self.ops.values()) / busy if busy else None


@dataclass(slots=True)
class OpSums:
    """The ops of all hosts and devices."""

    host: SideSums = field(default_factory=SideSums)
    device: SideSums = field(default_factory=SideSums)

    def add(self, activity: HostActivity) -> None:
        """Add a host and its devices."""
        _add_host(self.host, activity)
        for device in activity.devices:
            _add_device(self.device, device)

    def merge(self, other: OpSums) -> None:
        """Add the ops of other hosts."""
        self.host.merge(other.host)
        self.device.merge(other.device)


def _add_host(side: SideSums, activity: HostActivity) -> None:
    named = [_name(name) for name in activity.names]
    rows = _op_rows(activity, named)
    if not len(rows):
        return
    thread, start, duration = activity.thread[rows], activity.start_ps[rows], activity.duration_ps[rows]
    own = self_times(thread.astype(np.int64), start, duration)
    name = activity.name[rows]
    count = len(activity.names)
    runs = np.bincount(name, minlength=count)
    total, self_time = _sums(name, duration, count), _sums(name, own, count)
    is_eager = _eager(activity, rows)
    eager, eager_runs = _sums(name[is_eager], own[is_eager], count), np.bincount(name[is_eager], minlength=count)
    by_name = np.split(own[np.argsort(name, kind="stable")], np.cumsum(runs)[:-1])
    for number in np.unique(name).tolist():
        sums = side.of(*(named[number] or (activity.names[number], xla_type(activity.names[number]))))
        times = (int(total[number]), int(self_time[number]), int(eager[number]))
        usual = round(float(np.median(by_name[number])) * int(runs[number]))
        sums.add(OpSum(int(runs[number]), *times, bool(eager_runs[number]), usual))
    for part in np.split(np.arange(len(rows)), np.flatnonzero(np.diff(thread)) + 1):
        span = int((start[part] + duration[part]).max() - start[part].min())
        side.idle += max(0, span - int(own[part].sum()))


def _name(name: str) -> tuple[str, str] | None:
    """Return (name, type) if the name denotes an op, including eager ops and tf.data iterators."""
    if is_iterator_name(name):
        return name, DATASET
    if name.startswith(EAGER_DISPATCH):
        op = name.removeprefix(EAGER_DISPATCH)
        return op, op
    return parse_op_name(name)


def _op_rows(activity: HostActivity, named: Sequence[tuple[str, str] | None]) -> Ints:
    """Return the rows of ops. Eager dispatch counts as its op if the op has no event (TensorFlow 2.6 and later)."""
    if not len(activity):
        return np.zeros(0, np.int64)
    is_named = np.array([pair is not None for pair in named], np.bool_)[activity.name]
    is_dispatch = activity.kind == HostKind.EAGER_OP
    is_op = (is_named & (activity.kind != HostKind.MARKER) & ~is_dispatch) | (activity.kind == HostKind.XLA_OP)
    dispatched = np.flatnonzero(is_dispatch)
    ops = np.flatnonzero(activity.kind == HostKind.OP)
    # rows are sorted by thread, then start: if any op is inside a dispatch, the first one after its start is
    following = np.searchsorted(ops, dispatched)
    first = ops[np.minimum(following, len(ops) - 1)] if len(ops) else dispatched
    has_op = (
        (following < len(ops))
        & (activity.thread[first] == activity.thread[dispatched])
        & (activity.start_ps[first] < activity.start_ps[dispatched] + activity.duration_ps[dispatched])
    )
    is_op[dispatched[~has_op]] = True
    return np.flatnonzero(is_op)


def _eager(activity: HostActivity, rows: Ints) -> Flags:
    """Return which ops ran inside eager dispatch and in no graph; profiles of TensorFlow 2.6 and later do not mark them.

    Compiled functions, which also appear as ops (`__inference_...`), and ops that only fetch input are excluded.
    """
    is_dispatch = np.array([name.startswith("EagerKernelExecute") for name in activity.names] or [False], np.bool_)
    is_other = np.array([name.startswith(NO_EAGER_OPS) for name in activity.names] or [False], np.bool_)
    dispatched = np.flatnonzero(is_dispatch[activity.name])
    executed = np.flatnonzero(activity.kind == HostKind.EXECUTOR)
    is_eager = activity.is_eager[rows] | (activity.kind[rows] == HostKind.EAGER_OP)
    is_graph_op = activity.kind[rows] == HostKind.OP
    for thread in np.unique(activity.thread[dispatched]).tolist():
        here = np.flatnonzero((activity.thread[rows] == thread) & is_graph_op)
        inside = _is_inside(activity, rows[here], dispatched[activity.thread[dispatched] == thread])
        in_graph = _is_inside(activity, rows[here], executed[activity.thread[executed] == thread])
        is_eager[here] |= inside & ~in_graph
    eager: Flags = is_eager & ~is_other[activity.name[rows]]
    return eager


def _is_inside(activity: HostActivity, rows: Ints, outer: Ints) -> Flags:
    """Whether each row begins inside one of the outer rows; all on one thread, sorted by start."""
    if not len(outer):
        return np.zeros(len(rows), np.bool_)
    reached = np.maximum.accumulate(activity.start_ps[outer] + activity.duration_ps[outer])
    before = np.searchsorted(activity.start_ps[outer], activity.start_ps[rows], side="right") - 1
    return (before >= 0) & (reached[np.maximum(before, 0)] > activity.start_ps[rows])


def _add_device(side: SideSums, device: DeviceActivity) -> None:
    if not len(device):
        return
    is_xla = bool((device.kind == DeviceKind.XLA_OP).any())
    own = (
        self_times(device.stream.astype(np.int64), device.start_ps, device.duration_ps)
        if is_xla
        else device.duration_ps
    )
    rows = np.flatnonzero(device.op >= 0)
    if len(rows):
        op, name = device.op[rows].astype(np.int64), device.name_of[rows].astype(np.int64)
        count = len(device.ops)
        total, self_time = _sums(op, device.duration_ps[rows], count), _sums(op, own[rows], count)
        is_eager = device.is_eager[rows]
        eager, eager_runs = _sums(op[is_eager], own[rows][is_eager], count), np.bincount(op[is_eager], minlength=count)
        # an op with several kernels ran as often as the most frequent one
        pairs, per_kernel = np.unique(op * max(1, len(device.names)) + name, return_counts=True)
        most = np.zeros(count, np.int64)
        np.maximum.at(most, pairs // max(1, len(device.names)), per_kernel)
        for number in np.unique(op).tolist():
            times = (int(total[number]), int(self_time[number]), int(eager[number]))
            side.of(*device.ops[number]).add(OpSum(int(most[number]), *times, bool(eager_runs[number])))
    end = device.start_ps + device.duration_ps
    side.idle += max(0, int(end.max() - device.start_ps.min()) - int(own[rows].sum()))


def _sums(number: npt.NDArray[Any], values: Ints, count: int) -> Ints:
    """Return exact sums per number (`bincount` adds in floating point)."""
    result = np.zeros(count, np.int64)
    np.add.at(result, number, values)
    return result


def op_rows(sums: OpSums, tensor_core_share: Mapping[str, float]) -> tuple[OpRow, ...]:
    """Return one row per op and one row `IDLE` per side: devices first, then by self time."""
    rows: list[OpRow] = []
    for side, table in ((DEVICE, sums.device), (HOST, sums.host)):
        entries = [(name, kind, op, 1) for (name, kind), op in table.ops.items()]
        rows += _ranked(side, entries, table.idle, tensor_core_share if side == DEVICE else {})
    return tuple(rows)


def type_rows(sums: OpSums) -> tuple[OpRow, ...]:
    """Return one row per op type and one row `IDLE` per side."""
    rows: list[OpRow] = []
    for side, table in ((DEVICE, sums.device), (HOST, sums.host)):
        folded: dict[str, OpSum] = {}
        counts: dict[str, int] = {}
        for (_, kind), op in table.ops.items():
            folded.setdefault(kind, OpSum()).add(op)
            counts[kind] = counts.get(kind, 0) + 1
        rows += _ranked(side, [("", kind, op, counts[kind]) for kind, op in folded.items()], table.idle, {})
    return tuple(rows)


def _ranked(
    side: str, entries: Iterable[tuple[str, str, OpSum, int]], idle: int, tensor_core_share: Mapping[str, float]
) -> list[OpRow]:
    """Return rows by self time with their shares, including idle time if there is any."""
    ranked = sorted(entries, key=lambda entry: (-entry[2].own, entry[0], entry[1]))
    if not ranked:
        return []
    busy = sum(op.own for _, _, op, _ in ranked)
    ranked.append((IDLE, IDLE, OpSum(total=idle, own=idle), 1))
    ranked.sort(key=lambda entry: -entry[2].own)
    rows, below, below_idle = [], 0, 0
    for name, kind, op, count in ranked:
        is_idle = kind == IDLE
        below += 0 if is_idle else op.own
        below_idle += op.own
        rows.append(
            OpRow(
                side=side,
                type=kind,
                name=name,
                occurrences=op.occurrences,
                total_ns=round(op.total / 1000),
                self_ns=round(op.own / 1000),
                is_eager=op.is_eager,
                share=0.0 if is_idle else _share(op.own, busy),
                cumulative_share=_share(below, busy),
                share_with_idle=_share(op.own, busy + idle),
                cumulative_share_with_idle=_share(below_idle, busy + idle),
                tensor_core_share=tensor_core_share.get(name),
                num_ops=count,
                median_self_ns=op.usual / op.occurrences / 1000 if op.usual and op.occurrences else None,
            )
        )
    return rows


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 0.0
