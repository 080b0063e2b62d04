"""Reads profiles; the entry point of the package.

In: a path.  Out: `Trace`, one `HostTrace` per profile file.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from advisor.model.errors import AdvisorError
from advisor.model.trace import HostTrace, PlaneFacts, Thread, Trace
from advisor.profile.events import Labels, PlaneDecoder
from advisor.profile.file_content import not_enough_memory, read_profile
from advisor.profile.iterators import IteratorTable, decode_stats
from advisor.profile.part_limits import TooManyParts
from advisor.profile.profile_files import ProfileFiles, few, find_profiles, host_of
from advisor.profile.safe_names import message_text, text
from advisor.profile.xspace import XSpaceDecodeError, parse_xspace
from advisor.profile.xspace import clock_of as clock_of_lines

HOST_PLANE = b"/host:CPU"
ENVIRONMENT_PLANE = b"Task Environment"
JAX_CALL = b"PjitFunction("
"""Prefix of the calls of jitted functions, which only JAX's profiler records."""
MAX_THREADS = 4_000
"""Maximum number of threads per host, those with most events first. The largest known real profile has 122."""
MOST_ERRORS = 100
"""Maximum number of profiler errors and warnings; a broken run repeats one for every event."""


def read_trace(path: Path, run: str | None = None, hosts: Sequence[str] = ()) -> Trace:
    """Read a profile. A damaged file of one of several hosts causes a warning.

    In addition to the columns of the result, at most one file is in memory at a time. `advisor.hosts` keeps only one host at a
    time.

    Args:
        path: A run folder, a logdir, a `plugins/profile/<time>` folder or a `.xplane.pb[.gz]` file.
        run: See `find_profiles`.
        hosts: See `find_profiles`.

    Raises:
        AdvisorError: No host can be read; the message names the path.
    """
    files = find_profiles(path, run, hosts)
    read, failures = [], []
    for file in files.paths:
        try:
            read.append(read_host(file))
        except AdvisorError as error:
            failures.append(error)
    if not read:
        raise failures[0]
    return Trace(tuple(read), (*choice_notes(files, path, run), *map(str, failures)))


def choice_notes(files: ProfileFiles, path: Path, run: str | None = None) -> tuple[str, ...]:
    """Describe the choice among several runs and hosts in sentences for the report.

    Args:
        files: The chosen files and the alternatives.
        path: The path as given by the user.
        run: The requested run; None if the newest one was chosen.
    """
    sentences = []
    if run is None and files.num_runs > 1:
        sentences.append(
            f"{path} contains {files.num_runs} profiled runs; the newest, {files.run}, is read (--run reads another:"
            f" {few([name for name in files.runs if name != files.run])})."
        )
    if len(files.paths) < len(files.hosts):
        sentences.append(
            f"Only {len(files.paths)} of {len(files.hosts)} hosts in run {files.run} are read, as requested."
        )
    return tuple(sentences)


def read_host(path: Path) -> HostTrace:
    """Read one `.xplane.pb[.gz]` file.

    Raises:
        AdvisorError: It cannot be read, or is not a profile; the message names the path.
    """
    data = read_profile(path)
    if not data:
        raise AdvisorError(f"{path} is empty: the profiler did not finish writing it; profile again.")
    try:
        space = parse_xspace(data)
        del data
        if not space.planes and not space.errors:
            raise AdvisorError(f"{path} contains no profile: give a .xplane.pb file.")
        return _decode_host(space, path)
    except TooManyParts as error:
        raise AdvisorError(f"{path} contains {error}, which no profiler writes: it is not read.") from None
    except XSpaceDecodeError as error:
        raise AdvisorError(
            f"{path} is not a profile, or is truncated or damaged (copy profiles in binary mode): profile again."
        ) from error
    except MemoryError:
        raise not_enough_memory(path) from None


def _decode_host(space: Any, path: Path) -> HostTrace:  # noqa: ANN401
    zero_ns, start_unix_ns = clock_of(space)
    labels, op_names, iterators = Labels(), Labels(), IteratorTable()
    threads: list[Thread] = []
    planes: list[PlaneFacts] = []
    dropped = unread = 0
    is_jax = False
    for plane in space.planes:
        if plane.name == HOST_PLANE:
            decoder = PlaneDecoder(plane, labels, iterators, zero_ns, op_names)
            is_jax |= any(metadata.name.startswith(JAX_CALL) for metadata in plane.event_metadata.values())
            lines = _busiest(plane.lines)
            unread += len(plane.lines) - len(lines)
            threads += decoder.decode(lines)
            dropped += decoder.num_dropped
        else:
            planes.append(PlaneFacts(text(plane.name), len(plane.lines), _num_events(plane)))
    return HostTrace(
        hostname=text(space.hostnames[0]) if space.hostnames else host_of(path),
        path=str(path),
        threads=tuple(threads),
        labels=labels.texts(),
        op_names=op_names.texts(),
        iterators=iterators.facts(threads),
        planes=tuple(planes),
        start_unix_ns=start_unix_ns,
        num_events=sum(_num_events(plane) for plane in space.planes),
        is_jax=is_jax,
        warnings=_left_out(dropped, unread),
        errors=tuple(message_text(message) for message in (*space.errors, *space.warnings)[:MOST_ERRORS]),
    )


def clock_of(space: Any) -> tuple[int, int | None]:  # noqa: ANN401
    """Return (value to subtract from line timestamps, Unix time of the profile's zero if the file contains it), in ns."""
    zero_ns, start_unix_ns = clock_of_lines(space)
    if start_unix_ns is None:
        for plane in space.planes:
            if plane.name == ENVIRONMENT_PLANE:
                names = {number: text(stat.name) for number, stat in plane.stat_metadata.items()}
                start = decode_stats(plane.stats, names).get("profile_start_time")
                return zero_ns, start if isinstance(start, int) else None
    return zero_ns, start_unix_ns


def _busiest(lines: Sequence[Any]) -> list[Any]:
    """Return all lines, or those with most events if there are too many, in their original order."""
    if len(lines) <= MAX_THREADS:
        return list(lines)
    ranked = sorted(range(len(lines)), key=lambda place: len(lines[place].events), reverse=True)
    return [lines[place] for place in sorted(ranked[:MAX_THREADS])]


def _left_out(num_events: int, num_threads: int) -> tuple[str, ...]:
    notes = []
    if num_events:
        notes.append(f"{num_events} events have impossible times and are omitted")
    if num_threads:
        notes.append(f"{num_threads} of its threads, those with the fewest events, are omitted")
    return tuple(notes)


def _num_events(plane: Any) -> int:  # noqa: ANN401
    return sum(len(line.events) for line in plane.lines)
