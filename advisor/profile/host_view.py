"""Reduces a host's window to lanes with a limited number of spans.

In: a `HostTrace` and, if it has device planes, the events of its file.  Out: `HostView`.

A lane shows up to three levels of nesting. An event that is longer than the resolution is a separate span. Shorter events that
start in the same slot (as long as the resolution) are merged to one span with the name that takes most time in the slot, and
equal neighbours are joined. The resolution is coarsened until all spans fit into the budget, so short windows are exact.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.model.errors import AdvisorError
from advisor.model.trace import EventKind, HostTrace, Thread, Trace
from advisor.model.window_timeline import HostView, Lane, Span
from advisor.profile.events import SLICE, Labels
from advisor.profile.file_content import read_profile
from advisor.profile.reader import clock_of
from advisor.profile.safe_names import text
from advisor.profile.xspace import XSpaceDecodeError, parse_events, parse_xspace

MAX_SPANS = 9_000
"""Maximum number of spans, about half a megabyte of report.html."""
MAX_HOSTS = 8
MAX_LANES = 48
MAX_LEVELS = 3
FINEST_SLOTS = 2_048
"""Number of slots that the window is divided into, more than the pixels of a wide screen."""
COARSEST_SLOTS = 64
MAX_NAME = 300
"""Maximum length of a name (kernel names are C++ signatures)."""

_THREAD_NUMBER = re.compile(r"/-?\d+$")
_KINDS = {
    EventKind.ITERATOR: "iterator",
    EventKind.PRODUCE: "produce",
    EventKind.CONSUME: "iterator",
    EventKind.FUNCTION: "function",
    EventKind.EXECUTOR: "function",
    EventKind.OP: "op",
    EventKind.GET_NEXT: "next",
    EventKind.STEP: "step",
    EventKind.TRACING: "tracing",
}

Ints = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class _Events:
    """The events of one lane, sorted by start, longer first; `name` is already the number in the view."""

    title: str
    is_device: bool
    is_consumer: bool
    start: Ints
    end: Ints
    name: Ints
    level: Ints

    @property
    def busy_ns(self) -> int:
        return int((self.end - self.start)[self.level == 0].sum())


def draw_hosts(trace: Trace) -> tuple[HostView, ...]:
    """Return the lanes of the first hosts with events, with about MAX_SPANS spans in total."""
    hosts = [host for host in trace.hosts if host.num_events][:MAX_HOSTS]
    views = (draw_host(host, MAX_SPANS // len(hosts)) for host in hosts)
    return tuple(view for view in views if view is not None)


def draw_host(host: HostTrace, budget: int = MAX_SPANS) -> HostView | None:
    """Return the lanes of one host with about `budget` spans; None without events. Unreadable devices are skipped."""
    names, kinds = Labels(), dict[str, str]()
    all_lanes = [lane for thread in host.threads if (lane := _thread(host, thread, names, kinds)) is not None]
    all_lanes += _devices(host, names, kinds)
    if not all_lanes:
        return None
    zero = min(int(lane.start[0]) for lane in all_lanes)
    length = max(int(lane.end.max()) for lane in all_lanes) - zero
    all_lanes.sort(key=lambda lane: (lane.is_device, not lane.is_consumer, -lane.busy_ns))
    kept = set(sorted(range(len(all_lanes)), key=lambda index: _weight(all_lanes[index]), reverse=True)[:MAX_LANES])
    lanes = [lane for index, lane in enumerate(all_lanes) if index in kept]
    slots = FINEST_SLOTS
    while True:
        resolution = max(1, -(-length // slots))
        drawn = [_draw(lane, zero, resolution) for lane in lanes]
        if sum(map(len, drawn)) <= budget or slots <= COARSEST_SLOTS:
            break
        slots //= 2
    texts = names.texts()
    return HostView(
        host=host.hostname,
        duration_ns=length,
        resolution_ns=resolution,
        names=tuple(name[:MAX_NAME] for name in texts),
        kinds=tuple(kinds[name] for name in texts),
        lanes=tuple(
            Lane(title, lane.is_device, tuple(spans))
            for title, lane, spans in zip(_titles(lanes), lanes, drawn, strict=True)
        ),
        num_events=sum(len(lane.start) for lane in all_lanes),
        num_lanes=len(all_lanes),
    )


def _titles(lanes: Sequence[_Events]) -> list[str]:
    """Return the names of the lanes without TensorFlow's thread numbers; threads with the same name are numbered."""
    bare = [_THREAD_NUMBER.sub("", lane.title) for lane in lanes]
    return [
        f"{name} #{bare[:index].count(name) + 1}" if bare.count(name) > 1 else name for index, name in enumerate(bare)
    ]


def _weight(lane: _Events) -> tuple[bool, int]:
    """Return the priority for keeping a lane: the consumer's threads first, then the busiest."""
    return lane.is_consumer, lane.busy_ns


def _thread(host: HostTrace, thread: Thread, names: Labels, kinds: dict[str, str]) -> _Events | None:
    if not len(thread):
        return None
    level = _levels(thread.start_ns, thread.end_ns)
    keep = level < MAX_LEVELS
    labels = np.zeros(len(host.labels) + 1, np.int64)
    for label, kind in zip(*_first_kinds(thread.label[keep], thread.kind[keep]), strict=True):
        name = host.labels[label]
        kinds.setdefault(name, _KINDS.get(EventKind(kind), "op"))
        labels[label] = names.number(name)
    is_consumer = bool(np.isin(thread.kind, (EventKind.STEP, EventKind.GET_NEXT)).any()) or thread.name == "python"
    return _Events(
        thread.name or f"thread {thread.line_id}",
        False,
        is_consumer,
        thread.start_ns[keep],
        thread.end_ns[keep],
        labels[thread.label[keep]],
        level[keep],
    )


def _first_kinds(label: npt.NDArray[np.int32], kind: npt.NDArray[np.uint8]) -> tuple[list[int], list[int]]:
    """Distinct labels, and the kind of each label's first event."""
    distinct, first = np.unique(label, return_index=True)
    return distinct.tolist(), kind[first].tolist()


def _devices(host: HostTrace, names: Labels, kinds: dict[str, str]) -> Iterator[_Events]:
    if not any(plane.name.startswith("/device:") and plane.num_events for plane in host.planes):
        return
    try:
        space = parse_xspace(read_profile(Path(host.path)))
        zero_ns, _ = clock_of(space)
        for plane in space.planes:
            title = text(plane.name)
            if not title.startswith("/device:"):
                continue
            metadata = {number: text(entry.name) for number, entry in plane.event_metadata.items()}
            for line in plane.lines:
                lane = _device_line(title, line, metadata, zero_ns, names, kinds)
                if lane is not None:
                    yield lane
    except (
        AdvisorError,
        XSpaceDecodeError,
    ):  # it was readable when the host threads were read, so it has been replaced since
        return


def _device_line(
    device: str,
    line: Any,  # noqa: ANN401
    metadata: dict[int, str],
    zero_ns: int,
    names: Labels,
    kinds: dict[str, str],
) -> _Events | None:
    rows = []
    for first in range(0, len(line.events), SLICE):
        for event in parse_events(line.events[first : first + SLICE]):
            if event.num_occurrences and not event.offset_ps:
                continue  # aggregated events have no start
            name = metadata.get(event.metadata_id, "")
            kinds.setdefault(name, "device")
            rows.append((event.offset_ps, event.offset_ps + event.duration_ps, names.number(name)))
    if not rows:
        return None
    rows.sort(key=lambda row: (row[0], -row[1]))
    columns = np.array(rows, np.int64)
    base = line.timestamp_ns - zero_ns
    start, end = columns[:, 0] // 1000 + base, columns[:, 1] // 1000 + base
    level = _levels(start, end)
    keep = level < MAX_LEVELS
    title = f"{device} {text(line.display_name) or text(line.name) or line.id}"
    return _Events(title, True, False, start[keep], end[keep], columns[keep, 2], level[keep])


def _levels(start: Ints, end: Ints) -> Ints:
    """Return the number of events that enclose each event: earlier ones that have not ended when it starts."""
    ended = np.searchsorted(np.sort(end), start, side="right")
    depth: Ints = np.arange(len(start)) - ended
    # events without a duration end when they start, and would count as ended before themselves
    return np.maximum(depth, 0)


def _draw(lane: _Events, zero: int, resolution: int) -> list[Span]:
    spans: list[Span] = []
    for level in range(MAX_LEVELS):
        rows = np.flatnonzero(lane.level == level)
        if not len(rows):
            break
        start, end, name = lane.start[rows] - zero, lane.end[rows] - zero, lane.name[rows]
        is_long = end - start >= resolution
        for begin, finish, number in zip(
            start[is_long].tolist(), end[is_long].tolist(), name[is_long].tolist(), strict=True
        ):
            spans.append(Span(level, begin, finish - begin, number, 1, finish - begin))
        short = ~is_long
        if short.any():
            spans += _join(level, start[short], end[short], name[short], resolution)
    return sorted(spans, key=lambda span: (span.level, span.start_ns))


def _join(level: int, start: Ints, end: Ints, name: Ints, resolution: int) -> list[Span]:
    """Merge short events into one span per slot and join equal neighbours."""
    slot = start // resolution
    bounds = np.flatnonzero(np.diff(slot, prepend=slot[0] - 1))
    busy = end - start
    columns = (
        slot[bounds],
        start[bounds],
        np.maximum.reduceat(end, bounds),
        _longest_names(np.repeat(np.arange(len(bounds)), np.diff(bounds, append=len(slot))), name, busy + 1),
        np.diff(bounds, append=len(slot)),
        np.add.reduceat(busy, bounds),
    )
    joined: list[Span] = []
    last_slot = -2
    for here, begin, finish, chosen, count, total in zip(*(column.tolist() for column in columns), strict=True):
        if joined and joined[-1].name == chosen and here == last_slot + 1:
            old = joined.pop()
            begin, count, total = old.start_ns, count + old.num_merged, total + old.busy_ns
        joined.append(Span(level, begin, max(1, finish - begin), chosen, count, total))
        last_slot = here
    return joined


def _longest_names(group: Ints, name: Ints, weight: Ints) -> Ints:
    """Return the name with the largest sum of weights in each group; of equal ones the smallest. Groups are 0, 1, 2, ..."""
    most = int(name.max()) + 1
    pair, inverse = np.unique(group * most + name, return_inverse=True)
    total = np.bincount(inverse.reshape(-1), weights=weight)
    order = np.lexsort((pair, -total, pair // most))
    first = np.flatnonzero(np.diff(pair[order] // most, prepend=-1))
    chosen: Ints = pair[order][first] % most
    return chosen
