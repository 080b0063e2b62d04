"""A profile's threads and device streams as Chrome trace events.

In: the path of a `.xplane.pb[.gz]` file.  Out: dictionaries, one per event, generated incrementally: in addition to the file,
memory holds only two numbers per event of one thread.

A Chrome trace draws the events of one track as a stack, and viewers drop events that extend beyond the event below them. Events
of a thread that overlap without being nested (asynchronous runs) are therefore put on additional tracks of that thread. Both ends
of an event are written in whole nanoseconds, because Perfetto rounds start and duration separately, which could move the end of
an inner event beyond that of the outer one.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from advisor.model.errors import AdvisorError
from advisor.profile.events import SLICE
from advisor.profile.file_content import read_profile
from advisor.profile.iterators import decode_stats
from advisor.profile.part_limits import TooManyParts
from advisor.profile.safe_names import text
from advisor.profile.xspace import XSpaceDecodeError, clock_of, parse_events, parse_xspace

Event = dict[str, object]

LARGEST_EXACT = 2**53
"""Larger integers lose digits in JavaScript, so they (iterator ids) are written as text."""
MAX_TRACKS = 64
"""Maximum number of tracks per thread; events that would need more stay on the last one."""
_NO_ARGUMENTS = frozenset({"_r", "_pt", "_p", "_ct", "_c", "group_id"})
"""Stats by which TensorFlow links threads; they are of no use to a reader."""


@dataclass(frozen=True, slots=True)
class Placed:
    """Label, time offset and first process id of a file's events in the merged timeline."""

    label: str
    """Prefix of every process name, which identifies the run."""
    first_pid: int
    shift_ns: int
    """Offset added to the profile's times."""


@dataclass(frozen=True, slots=True)
class OpenProfile:
    """A decoded profile: its planes, and the start of its time."""

    space: Any
    zero_ns: int
    start_ns: int
    """Start of the first event, relative to the profile's zero."""
    start_unix_ns: int | None
    """Unix time of the profile's zero; None if the file does not contain it."""

    def events(self, placed: Placed) -> Iterator[Event]:
        """Yield the names of processes and threads, and all events."""
        pid = placed.first_pid
        for plane in self.space.planes:
            if not any(line.events for line in plane.lines):
                continue
            yield _name("process_name", pid, 0, f"{placed.label}: {text(plane.name)}")
            yield {"ph": "M", "name": "process_sort_index", "pid": pid, "tid": 0, "args": {"sort_index": pid}}
            tid = 1
            for line in plane.lines:
                if line.events:
                    tid = yield from self._line(plane, line, placed, pid, tid)
            pid += 1

    def _line(self, plane: Any, line: Any, placed: Placed, pid: int, tid: int) -> Generator[Event, None, int]:  # noqa: ANN401
        """Yield the events of one line; the generator's return value is the next free track number."""
        tracks = _tracks(line)
        used = int(tracks.max(initial=0)) + 1
        title = text(line.display_name) or text(line.name) or f"thread {line.id}"
        for number in range(used):
            track = tid + number
            yield _name("thread_name", pid, track, title if not number else f"{title} (overlapping {number})")
            yield {"ph": "M", "name": "thread_sort_index", "pid": pid, "tid": track, "args": {"sort_index": track}}
        names = {number: _names(text(e.name), text(e.display_name)) for number, e in plane.event_metadata.items()}
        stats = {number: text(entry.name) for number, entry in plane.stat_metadata.items()}
        base_ps = (line.timestamp_ns - self.zero_ns + placed.shift_ns) * 1000
        for event, track in zip(_timed(line), tracks.tolist(), strict=True):
            name, more = names.get(event.metadata_id, ("", {}))
            start_ns = (base_ps + event.offset_ps) // 1000
            end_ns = (base_ps + event.offset_ps + event.duration_ps) // 1000
            yield {
                "ph": "X",
                "name": name,
                "pid": pid,
                "tid": tid + track,
                "ts": start_ns / 1000,
                "dur": (end_ns - start_ns) / 1000,
                "args": more | _arguments(decode_stats(event.stats, stats)),
            }
        return tid + used


def open_profile(path: Path) -> OpenProfile:
    """Decode a profile.

    Raises:
        AdvisorError: The file cannot be read, is not a profile, or has more parts than any profiler writes.
    """
    data = read_profile(path)
    try:
        space = parse_xspace(data)
    except XSpaceDecodeError:
        raise AdvisorError(
            f"{path} is not a profile, or is truncated or damaged (copy profiles in binary mode): profile again."
        ) from None
    except TooManyParts as error:
        raise AdvisorError(f"{path} contains {error}, which no profiler writes: it is not read.") from None
    zero_ns, start_unix_ns = clock_of(space)
    lines = [line for plane in space.planes for line in plane.lines if line.events]
    start = min((line.timestamp_ns - zero_ns + _first_offset_ps(line) // 1000 for line in lines), default=0)
    return OpenProfile(space, zero_ns, start, start_unix_ns)


def num_processes(profile: OpenProfile) -> int:
    """Return the number of process ids that the events use."""
    return sum(any(line.events for line in plane.lines) for plane in profile.space.planes)


def _timed(line: Any) -> Iterator[Any]:  # noqa: ANN401
    """Yield the line's events without aggregated ones, which have no start."""
    for first in range(0, len(line.events), SLICE):
        for event in parse_events(line.events[first : first + SLICE]):
            if event.offset_ps or not event.num_occurrences:
                yield event


def _first_offset_ps(line: Any) -> int:  # noqa: ANN401
    return min((event.offset_ps for event in _timed(line)), default=0)


def _tracks(line: Any) -> npt.NDArray[np.int32]:  # noqa: ANN401
    """Return the track number of each event of a line, in the file's order; events of one track are properly nested."""
    times = np.fromiter(
        ((event.offset_ps, event.offset_ps + event.duration_ps) for event in _timed(line)),
        np.dtype([("start", np.int64), ("end", np.int64)]),
    )
    order = np.lexsort((-times["end"], times["start"]))
    tracks = np.zeros(len(times), np.int32)
    stacks: list[list[int]] = [[]]
    for row, begin, finish in zip(
        order.tolist(), times["start"][order].tolist(), times["end"][order].tolist(), strict=True
    ):
        for number, stack in enumerate(stacks):  # noqa: B007
            while stack and stack[-1] <= begin:
                stack.pop()
            if not stack or finish <= stack[-1]:
                break
        else:
            if len(stacks) < MAX_TRACKS:
                stacks.append([])
                number += 1
        stacks[number].append(finish)
        tracks[row] = number
    return tracks


def _names(name: str, display_name: str) -> tuple[str, Event]:
    """Return the event's label, and its full name as an argument if that differs."""
    return (display_name, {"long_name": name}) if display_name and display_name != name else (name, {})


def _arguments(stats: Mapping[str, object]) -> Event:
    """Return the event's stats in a form that viewers can show."""
    return {
        name: str(value) if isinstance(value, int) and not -LARGEST_EXACT < value < LARGEST_EXACT else value
        for name, value in stats.items()
        if name not in _NO_ARGUMENTS
    }


def _name(kind: str, pid: int, tid: int, name: str) -> Event:
    return {"ph": "M", "name": kind, "pid": pid, "tid": tid, "args": {"name": name}}
