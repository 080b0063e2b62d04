"""The activity of every thread and device during the window, at a resolution that can be displayed.

`HostView`s are made by `advisor.profile.lanes` from `HostTrace`s.

Times are integer nanoseconds since the host's first event.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """An event, or several neighbouring short events with one name that are merged at this resolution."""

    level: int
    """Nesting level: 0 is outermost; an event of level 1 runs inside one of level 0, and so on."""
    start_ns: int
    duration_ns: int
    """From the start of the first event to the end of the last one."""
    name: int
    """Index into `HostView.names`."""
    count: int = 1
    """Number of merged events; they may have other names if several short events coincide."""
    busy_ns: int = 0
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
    duration_ns: int
    resolution_ns: int
    """Events shorter than this are merged."""
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    """The kind of each name: `iterator`, `produce`, `function`, `op`, `next`, `step`, `tracing`, `device`."""
    lanes: tuple[Lane, ...]
    num_events: int
    """Number of events behind the spans."""
    num_lanes: int
    """Number of lanes with events; the least busy ones may be left out."""
