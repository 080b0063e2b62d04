"""Reads timelines of TF1 (`timeline.Timeline(...).generate_chrome_trace_format()`) and other Chrome traces.

In: the path of a `.json[.gz]` file.  Out: its events, unchanged except for times, process ids, and the ids of flows and objects,
which must differ between runs. Memory holds the file's bytes and one decoded event at a time.
"""

from __future__ import annotations

import gzip
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from advisor.export.profile_tracks import Event, Placed
from advisor.model.errors import AdvisorError

SUFFIXES = (".json", ".json.gz")
_PHASES_WITH_ID = frozenset("stfNDOSTpFbne")
_US_IN_NS = 1000


class _Trace(msgspec.Struct):
    traceEvents: list[msgspec.Raw]


@dataclass(frozen=True, slots=True)
class OpenTimeline:
    """A decoded file."""

    raw: list[msgspec.Raw]
    pids: tuple[object, ...]
    start_us: float
    """Of the first event that has a time."""

    def events(self, placed: Placed) -> Iterator[Event]:
        """Yield every event, with the run's label before each process name."""
        numbers = {pid: placed.first_pid + index for index, pid in enumerate(self.pids)}
        for event in _decoded(self.raw):
            event["pid"] = numbers[event.get("pid", 0)]
            if _is_number(event.get("ts")):
                event["ts"] = event["ts"] + placed.shift_ns / _US_IN_NS
            if event.get("ph") in _PHASES_WITH_ID and "id" in event:
                event["id"] = f"{placed.label}/{event['id']}"
            arguments = event.get("args")
            if event.get("ph") == "M" and event.get("name") == "process_name" and isinstance(arguments, dict):
                event["args"] = {**arguments, "name": f"{placed.label}: {arguments.get('name', '')}"}
            yield event


def is_timeline(path: Path) -> bool:
    """Whether to read the path as a Chrome trace: it is a JSON file, but not one of the advisor's reports."""
    return path.is_file() and path.name.endswith(SUFFIXES) and path.name != "report.json"


def open_timeline(path: Path) -> OpenTimeline:
    """Decode a file.

    Raises:
        AdvisorError: The file cannot be read, or is not a Chrome trace.
    """
    try:
        data = path.read_bytes()
        if data.startswith(b"\x1f\x8b"):
            data = gzip.decompress(data)
        try:
            raw = msgspec.json.decode(data, type=_Trace).traceEvents
        except msgspec.ValidationError:  # the format's other form is the list of events alone
            raw = msgspec.json.decode(data, type=list[msgspec.Raw])
        pids: dict[object, None] = {}
        start = float("inf")
        for event in _decoded(raw):
            pid = event.get("pid", 0)
            if not isinstance(pid, int | str):
                raise msgspec.ValidationError("a process id that is not a number")
            pids[pid] = None
            if event.get("ph") != "M" and _is_number(event.get("ts")):
                start = min(start, event["ts"])
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError, EOFError, zlib.error, gzip.BadGzipFile):
        raise AdvisorError(
            f"{path} is not a Chrome trace: name a timeline*.json of TF1, a run folder or a logdir."
        ) from None
    except OSError as error:
        raise AdvisorError(f"{path} cannot be read ({error.strerror or error}).") from None
    return OpenTimeline(raw, tuple(pids), 0.0 if start == float("inf") else start)


def _decoded(raw: list[msgspec.Raw]) -> Iterator[dict[str, Any]]:
    for event in raw:
        yield msgspec.json.decode(event, type=dict[str, Any])


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)
