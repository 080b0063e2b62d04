"""One measured window: steps without the profiler, then a profiler session, with the facts of the same time around them.

In: the instants of opening, of starting the profiler, and of closing.  Out: a `Capture`: a profile on disk,
usage, tf.data's models.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.consumers import Track, Tracks
from advisor.capture.instrument.iterator_model import model_deltas, model_nodes
from advisor.capture.window.profiler import Profiler, profile_bytes
from advisor.capture.window.schedule import PLAIN_MIN_STEPS
from advisor.capture.window.usage import LockProbe, Snapshot, usage_between
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
    plain_models: tuple[IteratorModel, ...]
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

    def __init__(self, folder: Path, track: Track | None, tracks: Tracks, profiler: Profiler | None) -> None:
        self.first_step = track.count if track is not None else 0
        """Index in its track of the first step of the stretch under way."""
        self._warmup_steps = self.first_step
        self._plain: tuple[Snapshot, float | None, int] | None = None
        """End of the stretch without the profiler: counters, how long Python's lock was waited for, number of steps."""
        self._plain_models: tuple[IteratorModel, ...] = ()
        self.unprofiled = ""
        """Why there is no profile of it, in one sentence."""
        self._folder, self._track, self._tracks = folder, track, tracks
        self._profiler = profiler
        self._models: dict[str, Any] = model_nodes(tracks)
        self._probe = LockProbe()
        self._probe.start()
        self._start = self._profiled = Snapshot.take()

    @property
    def start_ns(self) -> int:
        """Unix time at which the stretch under way began."""
        return self._profiled.time_ns

    def end_plain(self) -> None:
        """The stretch without the profiler is over (`start_profiler` follows)."""
        if self._track is not None:
            end = Snapshot.take(self._start)
            self._plain = end, self._probe.stop(), self._track.count - self._warmup_steps
            self.first_step = self._track.count
            self._plain_models = model_deltas(self._tracks, self._models)

    def start_profiler(self) -> None:
        """Begin the profiled stretch."""
        if self._profiler is not None:
            try:
                self._profiler.start(self._folder)
            except Exception as error:
                self.unprofiled = _not_started(error)
        self._profiled = Snapshot.take()

    def add_plain_to(self, capture: Capture) -> Capture:
        """An earlier capture with the steps that were timed here, for a script that ended before the profiler started."""
        self.end_plain()
        if self._plain is None or self._plain[2] < PLAIN_MIN_STEPS or capture.track is not self._track:
            return capture
        end, _, steps = self._plain
        window = replace(
            capture.window, plain_start_ns=self._start.time_ns, plain_end_ns=end.time_ns, plain_steps=steps
        )
        return replace(capture, window=window, plain_models=self._plain_models)

    def abandon(self) -> None:
        """Give the window up before the profiler was started."""
        self._probe.stop()

    def close(self, closed_by: str, on_saving: Callable[[int], None]) -> Capture:
        """End the session and write what it saw; `on_saving` is told the number of steps first."""
        end = Snapshot.take(self._start)
        gil_wait_share = self._probe.stop()
        usage_end, plain_steps = end, 0
        if self._plain is not None:
            usage_end, gil_wait_share, plain_steps = self._plain
        track = self._track
        steps = 0 if track is None or track.is_loop else max(0, track.count - self.first_step)
        on_saving(steps)
        models = model_deltas(self._tracks, self._models)
        if self._profiler is not None:
            try:
                self._profiler.stop()
            except Exception as error:
                self.unprofiled = f"The profile could not be saved ({type(error).__name__}: {error})."
        window = Window(
            self.start_ns,
            end.time_ns,
            self._warmup_steps,
            steps,
            closed_by,
            plain_start_ns=self._start.time_ns if self._plain else 0,
            plain_end_ns=usage_end.time_ns if self._plain else 0,
            plain_steps=plain_steps,
        )
        usage = usage_between(self._start, usage_end, gil_wait_share)
        return Capture(self._folder, window, usage, models, self._plain_models, track, profile_bytes(self._folder))


def _not_started(error: Exception) -> str:
    if "nother profil" in str(error):
        return (
            "The process was being profiled already (by `advisor capture` or TensorBoard's capture button), and TensorFlow "
            "has only one profiler: run it again without."
        )
    return f"TensorFlow's profiler could not be started ({type(error).__name__}: {' '.join(str(error).split())})."
