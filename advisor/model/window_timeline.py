"""What every thread and device did during the window, coarse enough to be looked at as a whole.

In: nothing.  Out: `HostView`s, made by `advisor.profile.lanes` from `HostTrace`s.

Times are integer nanoseconds since the host's first event.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Span:
    """An event, or neighbouring short events of one name that stand for each other at this resolution."""

    level: int
    """0: outermost; an event of level 1 runs inside one of level 0, and so on."""
    start_ns: int
    duration_ns: int
    """From the first one's start to the last one's end."""
    name: int
    """Index into `HostView.names`."""
    count: int = 1
    """Events that it stands for; of other names too, where several short ones lie in one moment."""
    busy_ns: int = 0
    """Sum of their durations."""


@dataclass(frozen=True, slots=True)
class Lane:
    """One host thread or one line of a device."""

    name: str
    """`python`, `tf_data_iterator_get_next`, `/device:GPU:0 Stream #14`."""
    is_device: bool
    spans: tuple[Span, ...]


@dataclass(frozen=True, slots=True)
class HostView:
    """One host's lanes: consumers' threads first, devices last; within that the busiest first."""

    host: str
    duration_ns: int
    resolution_ns: int
    """Events shorter than this are joined."""
    names: tuple[str, ...]
    kinds: tuple[str, ...]
    """What each name is: `iterator`, `produce`, `function`, `op`, `next`, `step`, `tracing`, `device`."""
    lanes: tuple[Lane, ...]
    num_events: int
    """Events that the spans were made of."""
    num_lanes: int
    """Lanes that had any; the least busy ones may be left out."""
