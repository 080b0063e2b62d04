"""One measured window: a profiler session with the facts of the same time around it.

In: the instants of opening and closing.  Out: a `Capture`: a profile on disk, usage, tf.data's models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from advisor.capture.iterator_model import model_deltas, model_nodes
from advisor.capture.profiler import Profiler, profile_bytes
from advisor.capture.tracks import Track, Tracks
from advisor.capture.usage import LockProbe, Snapshot, usage_between
from advisor.model.recording import IteratorModel, Usage, Window

BYTES_PER_EVENT = 25
"""Bytes of an event in an xplane file: 20 to 30 in the profiles of TF 2.21 that were looked at."""


@dataclass(frozen=True, slots=True)
class Capture:
    """A window that has been measured."""

    folder: Path
    window: Window
    usage: Usage
    models: tuple[IteratorModel, ...]
    track: Track | None
    profile_bytes: int

    @property
    def events_per_step(self) -> float | None:
        """Estimated from the profile's size; None without steps or profile."""
        if not self.window.steps or not self.profile_bytes:
            return None
        return self.profile_bytes / BYTES_PER_EVENT / self.window.steps


class Measurement:
    """A window under way. Opening takes a millisecond, closing as long as it takes to write the profile."""

    def __init__(
        self, folder: Path, track: Track | None, tracks: Tracks, profiler: Profiler | None, warn: Callable[[str], None]
    ) -> None:
        self.first_step = track.count if track is not None else 0
        """Index of the window's first step in its track."""
        self._folder, self._track, self._tracks = folder, track, tracks
        self._profiler, self._warn = profiler, warn
        self._models: dict[str, Any] = model_nodes(tracks)
        self._probe = LockProbe()
        if profiler is not None:
            try:
                profiler.start(folder)
            except Exception as error:
                warn(f"The profiler could not be started ({type(error).__name__}: {error}).")
        self._probe.start()
        self._start = Snapshot.take()

    @property
    def start_ns(self) -> int:
        """Unix time of the opening."""
        return self._start.time_ns

    def close(self, closed_by: str, on_saving: Callable[[int], None]) -> Capture:
        """End the session and write what it saw; `on_saving` is told the number of steps first."""
        end = Snapshot.take()
        gil_wait_share = self._probe.stop()
        track = self._track
        steps = 0 if track is None or track.is_loop else max(0, track.count - self.first_step)
        on_saving(steps)
        models = model_deltas(self._tracks, self._models)
        if self._profiler is not None:
            try:
                self._profiler.stop()
            except Exception as error:
                self._warn(f"The profile could not be saved ({type(error).__name__}: {error}).")
        window = Window(self.start_ns, end.time_ns, self.first_step, steps, closed_by)
        usage = usage_between(self._start, end, gil_wait_share)
        return Capture(self._folder, window, usage, models, track, profile_bytes(self._folder))
