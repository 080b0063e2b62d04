"""The activity of every thread and device during the window, at a resolution that can be displayed.

`HostView`s are made by `advisor.profile.host_view` from `HostTrace`s.

Times are integer nanoseconds since the host's first event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Annotated, NamedTuple

from advisor.model.json_types import Count, Positive, one_of


class Span(NamedTuple):
    """An event, or several neighbouring short events with one name that are merged at this resolution."""

    level: Count
    """Nesting level: 0 is outermost; an event of level 1 runs inside one of level 0, and so on."""
    start_ns: Count
    duration_ns: Count
    """From the start of the first event to the end of the last one."""
    name: Count
    """Index into `HostView.names`."""
    num_merged: Count
    """Number of merged events; they may have other names if several short events coincide."""
    busy_ns: Count
    """Sum of the durations of the merged events."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One host thread or one line of a device."""

    name: str
    """`python`, `tf_data_iterator_get_next`, `/device:GPU:0 Stream #14`."""
    is_device: bool
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class HostView:
    """The lanes of one host: consumer threads first, devices last, and the busiest first within each group."""

    host: str
    duration_ns: Count
    resolution_ns: Positive
    """Events shorter than this are merged."""
    names: tuple[str, ...]
    kinds: tuple[
        Annotated[str, one_of("iterator", "produce", "function", "op", "next", "step", "tracing", "device")], ...
    ]
    """The kind of each name."""
    lanes: tuple[Lane, ...]
    num_events: Count
    """Number of events behind the spans."""
    num_lanes: Count
    """Number of lanes with events; the least busy ones may be left out."""
