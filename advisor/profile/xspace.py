"""The messages of a profile file, from our own description of them: no TensorFlow, any protobuf from 4.25 on.

In: bytes of a `.xplane.pb` file.  Out: an `XSpace` message (`xplane.proto` beside this file says what it holds).

The description is loaded at run time into a pool of its own: generated `_pb2` code fits only its own and the next protobuf
major version, and the default pool may already hold TensorFlow's messages.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from importlib.resources import files
from typing import Any

from advisor.profile.part_limits import XSpaceDecodeError, check_part_count

__all__ = [
    "MAX_PS",
    "XSpaceDecodeError",
    "clock_of",
    "message_class",
    "parse_event",
    "parse_events",
    "parse_xspace",
]

PACKAGE = "tfdata_advisor.xplane"
MAX_PS = 10 * 86_400 * 10**12
"""Ten days: no profile is that long. Three such times added up stay within int64."""
EARLIEST_UNIX_NS = 10**17
"""Line timestamps above this (1973) are Unix times; TensorFlow writes times since the profile's start."""


@cache
def message_class(name: str) -> Any:  # noqa: ANN401  protobuf's classes exist at run time only
    """The class of a message of `xplane.proto` (`XSpace`, `XLine`, `XEvents`, ...)."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def parse_xspace(data: bytes) -> Any:  # noqa: ANN401
    """Decode a profile; `XSpaceDecodeError` if the bytes are none, `TooManyParts` if there is more than a profiler writes.

    Threads that begin at an impossible time lose their events; a warning in the message says so.
    """
    check_part_count(data)
    space = _parse("XSpace", data)
    _mend_times(space)
    return space


def parse_events(encoded: Sequence[bytes]) -> Sequence[Any]:
    """Decode events that stand encoded in an `XLine`; `XSpaceDecodeError` if one is damaged.

    Events at an impossible time or of a negative duration are left out: whatever is added up of the others fits int64.
    """
    events = _parse("XEvents", message_class("XLine")(events=encoded).SerializeToString()).events
    return [event for event in events if 0 <= event.duration_ps <= MAX_PS and -MAX_PS <= event.offset_ps <= MAX_PS]


def parse_event(encoded: bytes) -> Any:  # noqa: ANN401
    """Decode one event, whatever its times; `XSpaceDecodeError` if it is damaged."""
    return _parse("XEvent", encoded)


def clock_of(space: Any) -> tuple[int, int | None]:  # noqa: ANN401
    """(what to subtract from line timestamps, Unix time of the profile's zero if the lines tell it), in nanoseconds."""
    stamps = [line.timestamp_ns for plane in space.planes for line in plane.lines if line.events]
    if stamps and min(stamps) > EARLIEST_UNIX_NS:
        return min(stamps), min(stamps)
    return 0, None


def _mend_times(space: Any) -> None:  # noqa: ANN401
    zero_ns, _ = clock_of(space)
    cut = 0
    for plane in space.planes:
        for line in plane.lines:
            if abs(line.timestamp_ns - zero_ns) > MAX_PS // 1000:
                cut += bool(line.events)
                del line.events[:]
                line.timestamp_ns = zero_ns
    if cut:
        space.warnings.append(f"{cut} threads begin at impossible times: their events are left out.".encode())


def _parse(name: str, data: bytes) -> Any:  # noqa: ANN401
    from google.protobuf.message import DecodeError

    try:
        return message_class(name).FromString(data)
    except DecodeError as error:
        raise XSpaceDecodeError(str(error)) from error


@cache
def _pool() -> Any:  # noqa: ANN401
    from google.protobuf import descriptor_pb2, descriptor_pool

    pool = descriptor_pool.DescriptorPool()
    described = descriptor_pb2.FileDescriptorSet.FromString(files(__package__).joinpath("xplane.binpb").read_bytes())
    for file in described.file:
        pool.Add(file)
    return pool
