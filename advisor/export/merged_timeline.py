"""Merges runs into one timeline with separate tracks for each run: Chrome trace JSON, for ui.perfetto.dev.

In: paths of run folders, logdirs, profiles, or TF1 timelines.  Out: pieces of JSON text. Only one input is in memory at a time,
and never the whole result.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import msgspec

from advisor.export.profile_tracks import Event, Placed, num_processes, open_profile
from advisor.export.tf1_timelines import is_timeline, open_timeline
from advisor.model.own_files import TRACE_GENERATOR
from advisor.profile.profile_files import find_profiles, host_of

_BATCH = 2_000
"""Events per piece of text; a piece is about 400 KiB."""


def merge_runs(paths: Sequence[Path], align: str = "start") -> Iterator[bytes]:
    """Yield the JSON of one timeline of all `paths`, piece by piece.

    Args:
        paths: Run folders, logdirs, profiles or TF1 timelines.
        align: `start`: every run begins at 0. `clock`: runs keep their distance in time, the first at 0; a run without a known
            start time begins at 0.

    Raises:
        AdvisorError: A path contains nothing to draw.
    """
    labels = _labels(paths)
    earliest = _earliest_ns(paths) if align == "clock" else None
    yield b'{"displayTimeUnit":"ns","otherData":{"generator":"%s"},"traceEvents":[\n' % TRACE_GENERATOR.encode()
    separator = b""
    first_pid = 1
    for path, label in zip(paths, labels, strict=True):
        for source, part in _sources(path):
            events, num_pids = _placed(source, f"{label}{part}", first_pid, earliest)
            for piece in _pieces(events):
                yield separator + piece
                separator = b",\n"
            first_pid += num_pids
    yield b"\n]}\n"


def _pieces(events: Iterator[Event]) -> Iterator[bytes]:
    """Encode the events as JSON, some thousand at a time."""
    while batch := list(itertools.islice(events, _BATCH)):
        yield b",\n".join(map(msgspec.json.encode, batch))


def _labels(paths: Sequence[Path]) -> list[str]:
    """Return a name for each run: that of its file or folder, with a number if several are the same."""
    names = [path.name or str(path) for path in (path.resolve() for path in paths)]
    return [
        f"{name} #{names[:index].count(name) + 1}" if names.count(name) > 1 else name
        for index, name in enumerate(names)
    ]


def _sources(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a run with a suffix for their labels: the host, if there are several files."""
    if is_timeline(path):
        yield path, ""
        return
    files = find_profiles(path).paths
    for file in files:
        yield file, f" {host_of(file)}" if len(files) > 1 else ""


def _placed(source: Path, label: str, first_pid: int, earliest_ns: int | None) -> tuple[Iterator[Event], int]:
    """Return the events of one file, shifted in time, and the number of process ids they use."""
    if is_timeline(source):
        timeline = open_timeline(source)
        origin = round(timeline.start_us * 1000) if earliest_ns is None else earliest_ns
        return timeline.events(Placed(label, first_pid, -origin)), len(timeline.pids)
    profile = open_profile(source)
    shift = -profile.start_ns
    if earliest_ns is not None and profile.start_unix_ns is not None:
        shift = profile.start_unix_ns - earliest_ns
    return profile.events(Placed(label, first_pid, shift)), num_processes(profile)


def _earliest_ns(paths: Sequence[Path]) -> int | None:
    """Return the Unix time at which the first run begins; None if no file contains it."""
    starts = []
    for path in paths:
        for source, _ in _sources(path):
            if is_timeline(source):
                starts.append(round(open_timeline(source).start_us * 1000))
            else:
                profile = open_profile(source)
                if profile.start_unix_ns is not None:
                    starts.append(profile.start_unix_ns + profile.start_ns)
    return min(starts, default=None)
