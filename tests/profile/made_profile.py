"""Builds small profiles with the project's own messages, event by event.

In: events in microseconds with their stats.  Out: the bytes of a `.xplane.pb` file.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.profile.xspace import message_class


@dataclass(frozen=True)
class Signed:
    """A uint64 written as int64, as TensorFlow before 2.6 does with ids above 2^63."""

    value: int


@dataclass(frozen=True)
class Ref:
    """A text written as a reference to the name of a stat, as TensorFlow does since 2.4."""

    text: str


class PlaneBuilder:
    def __init__(self, plane) -> None:
        self.message = plane
        self._stats: dict[bytes, int] = {}
        self._events: dict[bytes, int] = {}

    def line(self, name: str = "python", timestamp_ns: int = 0, **fields) -> LineBuilder:
        line = self.message.lines.add(name=name.encode(), timestamp_ns=timestamp_ns, **fields)
        line.id = line.id or len(self.message.lines)
        return LineBuilder(self, line)

    def stat(self, stats, name: str, value) -> None:
        stat = stats.add(metadata_id=self.stat_number(name))
        match value:
            case Signed():
                stat.int64_value = value.value - 2**64 if value.value >= 2**63 else value.value
            case Ref():
                stat.ref_value = self.stat_number(value.text)
            case bool() | float():
                stat.double_value = float(value)
            case int():
                if value < 2**63:
                    stat.int64_value = value
                else:
                    stat.uint64_value = value
            case str():
                stat.str_value = value.encode()
            case bytes():
                stat.bytes_value = value

    def stat_number(self, name: str) -> int:
        return self._number(self.message.stat_metadata, self._stats, name.encode())

    def event_number(self, name: str | bytes, display_name: str) -> int:
        encoded = name if isinstance(name, bytes) else name.encode()
        number = self._number(self.message.event_metadata, self._events, encoded)
        self.message.event_metadata[number].display_name = display_name.encode()
        return number

    @staticmethod
    def _number(metadata, numbers: dict[bytes, int], name: bytes) -> int:
        if name not in numbers:
            numbers[name] = number = len(metadata) + 1
            metadata[number].id = number
            metadata[number].name = name
        return numbers[name]


class LineBuilder:
    def __init__(self, plane: PlaneBuilder, line) -> None:
        self._plane = plane
        self.message = line

    def event(self, name, start_us: float, end_us: float, display_name: str = "", /, **stats) -> LineBuilder:
        """Add an event; stats whose names start with `_` are given as they are."""
        event = message_class("XEvent")(
            metadata_id=self._plane.event_number(name, display_name),
            offset_ps=round(start_us * 1e6),
            duration_ps=round((end_us - start_us) * 1e6),
        )
        for stat_name, value in stats.items():
            self._plane.stat(event.stats, stat_name, value)
        self.message.events.append(event.SerializeToString())
        return self


class ProfileBuilder:
    def __init__(self, hostname: str = "worker") -> None:
        self.message = message_class("XSpace")(hostnames=[hostname.encode()] if hostname else [])
        self.host = self.plane("/host:CPU")

    def plane(self, name: str) -> PlaneBuilder:
        return PlaneBuilder(self.message.planes.add(name=name.encode()))

    def start_unix_ns(self, value: int) -> None:
        plane = self.plane("Task Environment")
        plane.stat(plane.message.stats, "profile_start_time", value)

    def to_bytes(self) -> bytes:
        return self.message.SerializeToString()

    def write(self, path: Path) -> Path:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(self.to_bytes())
        return path
