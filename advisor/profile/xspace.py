"""Decodes the messages of a profile file without TensorFlow, with protobuf 4.25 or later.

In: bytes of a `.xplane.pb` file.  Out: an `XSpace` message, described by `xplane.proto` in this folder.

The description is loaded at run time into a separate pool, because generated `_pb2` code works only with its own and the next
major version of protobuf, and the default pool may already contain TensorFlow's messages.
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
"""Ten days in ps, longer than any profile; the sum of three such times fits into an int64."""
EARLIEST_UNIX_NS = 10**17
"""Line timestamps above this (1973) are Unix times; TensorFlow writes times since the profile's start."""


@cache
def message_class(name: str) -> Any:  # noqa: ANN401  protobuf's classes exist at run time only
    """Return the class of a message of `xplane.proto` (`XSpace`, `XLine`, `XEvents`, ...)."""
    from google.protobuf import message_factory

    return message_factory.GetMessageClass(_pool().FindMessageTypeByName(f"{PACKAGE}.{name}"))


def parse_xspace(data: bytes) -> Any:  # noqa: ANN401
    """Decode a profile. The events of threads with an impossible start are dropped, with a warning in the message.

    Raises:
        TooManyParts: It has more parts than any profiler writes.
        XSpaceDecodeError: The bytes are not a profile.
    """
    check_part_count(data)
    space = _parse("XSpace", data)
    _mend_times(space)
    return space


def parse_events(encoded: Sequence[bytes]) -> Sequence[Any]:
    """Decode the encoded events of an `XLine`.

    Events with an impossible time or a negative duration are omitted, so that sums of the others fit into an int64.

    Raises:
        XSpaceDecodeError: An event is damaged.
    """
    events = _parse("XEvents", message_class("XLine")(events=encoded).SerializeToString()).events
    return [event for event in events if 0 <= event.duration_ps <= MAX_PS and -MAX_PS <= event.offset_ps <= MAX_PS]


def parse_event(encoded: bytes) -> Any:  # noqa: ANN401
    """Decode one event, even if its times are impossible.

    Raises:
        XSpaceDecodeError: It is damaged.
    """
    return _parse("XEvent", encoded)


def clock_of(space: Any) -> tuple[int, int | None]:  # noqa: ANN401
    """Return (value to subtract from line timestamps, Unix time of the profile's zero if known), in nanoseconds."""
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
        space.warnings.append(f"{cut} threads start at impossible times; their events are omitted.".encode())


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
