"""Follows the steps, opens and closes the window around them, and stops the script afterwards.

In: step boundaries from the hooks (in the consumer's own thread).  Out: the best `Capture`: a profile on disk with the
facts of the same time; then a `StopScript` at the next boundary.

States: idle -> trial -> open -> closed. The trial is insurance: it begins after two steps, so that a script that ends soon
has been measured; once the loop has settled it is put aside and the real window opens.
"""

from __future__ import annotations

import contextlib
import shutil
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from advisor.capture.iterator_model import model_deltas, model_nodes
from advisor.capture.profiler import Profiler, move_profile, profile_bytes
from advisor.capture.script import StopScript
from advisor.capture.tracks import Track, Tracks
from advisor.capture.usage import LockProbe, Snapshot, usage_between
from advisor.capture.watchdog import (
    BLOCKED_S,
    LOOP_GRACE_S,
    LOOP_SECONDS,
    STOP_GRACE_S,
    LongCall,
    Watchdog,
    is_executing,
    raise_in_thread,
)
from advisor.capture.window import TRIAL_STEPS, WARMUP_STEPS, Limits
from advisor.model.recording import IteratorModel, Usage, Window

_BYTES_PER_EVENT = 25
"""Bytes of an event in an xplane file: 20 to 30 in the profiles of TF 2.21 that were looked at."""
_CHECK_NS = 50_000_000
"""The interval is worked out at most 20 times a second: it costs up to a millisecond."""
_PATIENCE_S = 5.0
"""A loop that only reads may be a count before the training: so long the script may go on to a loop that trains."""
_NEW_LEADER_STEPS = 3
_EARLY = frozenset({"trial", "script ended", "script failed", "interrupted"})
"""Reasons that leave a window shorter than wanted."""
_MAX_STOPS = 3


@dataclass(slots=True)
class Capture:
    """A window that has been measured."""

    folder: Path
    window: Window
    usage: Usage
    models: tuple[IteratorModel, ...]
    track: Track | None
    profile_bytes: int


@dataclass(slots=True)
class _Opening:
    """What was noted when the window opened."""

    snapshot: Snapshot
    probe: LockProbe
    models: dict[str, Any]
    folder: Path
    warmup_steps: int
    first_step: int
    """Index of the window's first step in its track."""
    start_ns: int


class Monitor:
    """One per run; `boundary` is called from the hooks for every step of every consumer."""

    def __init__(self, out: Path, limits: Limits, tracks: Tracks, *, is_to_end: bool, is_profiling: bool,
                 report: Callable[[str, int, int | None], None], warn: Callable[[str], None],
                 on_measured: Callable[[], None], on_stuck: Callable[[str], NoReturn]) -> None:
        self.profiler: Profiler | None = None
        self.capture: Capture | None = None
        self.leader: Track | None = None
        self._out, self._limits, self._tracks = out, limits, tracks
        self._is_to_end = is_to_end
        self._has_trial = is_profiling and limits.warmup is None
        self._report, self._warn, self._on_measured = report, warn, on_measured
        self._on_stuck = on_stuck
        self._state = "idle"
        self._opening: _Opening | None = None
        self._next_check_ns = 0
        self._closed_ns = 0
        self._events_per_step: float | None = None
        self._folders = 0
        self._lock = threading.RLock()
        self._is_off = False
        self._stops = 0
        self.watchdog: Watchdog | None = None
        self.long_call: LongCall | None = None
        self._executing_since_ns = 0
        self._is_by_time = False
        self._stopped_ns = 0

    def boundary(self, track: Track) -> int:
        """A step of `track` ended and another begins; returns the instant at which it begins. May raise StopScript."""
        now = time.time_ns()
        if self._is_off:
            track.begin(now)
            return now
        if track.open_since_ns:
            track.end(now)
        if now >= self._next_check_ns or track.count <= WARMUP_STEPS:
            with self._lock:
                self._act(track, now)
            now = time.time_ns()
        track.begin(now)
        return now

    def switch_off(self) -> None:
        """Nothing is watched any more (a forked process)."""
        self._is_off = True
        self._state = "closed"

    def poll(self, now: int) -> None:
        """Called by the watchdog a few times a second: what boundaries cannot do because none comes by."""
        if self._is_off:
            return
        with self._lock:
            call = self.long_call
            if self._state == "closed":
                if not self._is_to_end and not self._stopped_ns and not self._is_waiting(now):
                    self._stop_from_outside(call)
            elif self._opening is not None and self._is_by_time:
                seconds = self._limits.seconds or LOOP_SECONDS
                self._report("profiling", int((now - self._opening.start_ns) / 1e9), int(seconds))
                if now - self._opening.start_ns >= seconds * 1e9:
                    self._close("seconds")
            elif call is not None and self._is_loop(call, now):
                self._open_by_time(call)

    def _is_loop(self, call: LongCall, now: int) -> bool:
        """Whether that call has been running inside TensorFlow's executor for so long that it must be a loop."""
        if self.profiler is None or self.profiler.is_users_running or not is_executing(call.thread_id):
            self._executing_since_ns = 0
            return False
        if not self._executing_since_ns or self._executing_since_ns < call.start_ns:
            self._executing_since_ns = now
        return now - self._executing_since_ns >= BLOCKED_S * 1e9

    def _open_by_time(self, call: LongCall) -> None:
        if self.leader is not None and self.leader is not call.track and self.leader.rank > call.track.rank:
            return
        if self._opening is not None:
            self._close("trial")
        call.track.is_loop = True
        self.leader = call.track
        self._open(call.track, "open")
        self._is_by_time = True

    def _stop_from_outside(self, call: LongCall | None) -> None:
        if call is not None and self.watchdog is not None:
            self.watchdog.end_within(LOOP_GRACE_S, "The loop inside a tf.function could not be interrupted, so the script's "
                                     "process was ended after the window: its exit handlers did not run.")
        self._note_stop()
        thread_id = call.thread_id if call is not None else threading.main_thread().ident
        if thread_id is not None:
            raise_in_thread(thread_id)

    def _act(self, track: Track, now: int) -> None:
        if self._state == "closed":
            self._after_close(track, now)
            return
        if track is not self.leader:
            self._consider(track)
            if track is not self.leader:
                return
        if self.profiler is not None and self.profiler.is_users_running:
            return
        elapsed_s = (now - track.first_ns) / 1e9 if track.first_ns else 0.0
        is_settled = self._limits.is_settled(track.count, elapsed_s)
        if self._state == "idle" and (is_settled or (self._has_trial and track.count >= TRIAL_STEPS)):
            self._open(track, "open" if is_settled else "trial")
        elif self._state == "trial" and is_settled:
            self._close("trial")
            self._open(track, "open")
        elif self._state == "open" and self._opening is not None and not track.is_loop:
            self._close_if_enough(track, self._opening, now)
        elif self._state != "open":
            self._report("warming up", track.count, self._limits.warmup or WARMUP_STEPS)
        self._next_check_ns = time.time_ns() + _CHECK_NS

    def _close_if_enough(self, track: Track, opening: _Opening, now: int) -> None:
        durations = _durations(track, opening.first_step)
        reason = self._limits.closing_reason(durations, (now - opening.start_ns) / 1e9, self._events_per_step)
        self._report("profiling", len(durations), self._limits.steps)
        if reason is not None:
            self._close(reason)
            self._after_close(track, now)

    def _consider(self, track: Track) -> None:
        """Whether the window should follow this consumer from now on."""
        leader = self.leader
        if leader is None:
            self.leader = track
            return
        is_better = track.rank > leader.rank or (
            track.rank == leader.rank and not leader.open_since_ns and _total_ns(track) > _total_ns(leader))
        if is_better and track.count >= (_NEW_LEADER_STEPS if track.rank == leader.rank else 0):
            if self._state in ("trial", "open"):
                self._close("script ended")
            self._state = "idle"
            self.leader = track

    def _open(self, track: Track | None, state: str) -> None:
        self._folders += 1
        folder = self._out / f".capture-{self._folders}"
        opening = _Opening(Snapshot.take(), LockProbe(), model_nodes(self._tracks), folder, track.count if track else 0,
                           track.count if track else 0, 0)
        if self.profiler is not None:
            try:
                self.profiler.start(folder)
            except Exception as error:
                self._warn(f"The profiler could not be started ({type(error).__name__}: {error}).")
        opening.probe.start()
        opening.snapshot = Snapshot.take()
        opening.start_ns = opening.snapshot.time_ns
        self._opening = opening
        self._state = state
        self._is_by_time = False

    def _close(self, reason: str) -> None:
        """End the session and keep it if it is the best so far. `reason` `trial`: the real window follows."""
        opening, self._opening = self._opening, None
        if opening is None:
            return
        end = Snapshot.take()
        track = self.leader
        gil = opening.probe.stop()
        steps = 0 if track is None or track.is_loop else max(0, track.count - opening.first_step)
        if reason != "trial":
            self._report("saving", steps, None)
        models = model_deltas(self._tracks, opening.models)
        if self.profiler is not None:
            try:
                self.profiler.stop()
            except Exception as error:
                self._warn(f"The profile could not be saved ({type(error).__name__}: {error}).")
        size = profile_bytes(opening.folder)
        if steps:
            self._events_per_step = size / _BYTES_PER_EVENT / steps
        is_final = reason not in _EARLY
        self._state = "closed" if is_final else "idle"
        self._closed_ns = time.time_ns()
        closed_by = "script ended" if reason == "trial" else reason
        window = Window(opening.start_ns, end.time_ns, opening.warmup_steps, steps, closed_by)
        capture = Capture(opening.folder, window, usage_between(opening.snapshot, end, gil), models, track, size)
        if self.capture is None or is_final or self._is_better(capture, self.capture):
            self.capture = capture
            if is_final:
                self._on_measured()

    @staticmethod
    def _is_better(new: Capture, old: Capture) -> bool:
        if new.track is not None and old.track is not None and new.track.rank != old.track.rank:
            return new.track.rank > old.track.rank
        return new.window.steps >= min(20, old.window.steps)

    def _after_close(self, track: Track, now: int) -> None:
        leader = self.leader
        if leader is not None and track.rank > leader.rank and track.count >= TRIAL_STEPS:
            self._state = "idle"  # a loop that trains has begun after one that did not
            self.leader = track
            return
        if self._is_to_end:
            self._is_off = True
            return
        if self._stopped_ns or not self._is_waiting(now):
            self.stop()
        self._next_check_ns = now + _CHECK_NS

    def _is_waiting(self, now: int) -> bool:
        leader = self.leader
        return leader is not None and leader.rank < 3 and not leader.has_work and now - self._closed_ns < _PATIENCE_S * 1e9

    def stop(self) -> None:
        """Raise StopScript here, in the consumer's thread; end the process if the script keeps swallowing it."""
        self._note_stop()
        if self._stops > _MAX_STOPS:
            self._on_stuck(f"The script caught its own end {_MAX_STOPS} times, so its process was ended.")
        raise StopScript

    def _note_stop(self) -> None:
        self._stops += 1
        self._stopped_ns = self._stopped_ns or time.time_ns()
        if self.watchdog is not None:
            self.watchdog.end_within(STOP_GRACE_S, f"The script did not end within {STOP_GRACE_S:.0f} s of being stopped, so "
                                     "its process was ended.")
        self._next_check_ns = 0

    def script_profiles(self) -> None:
        """The script is about to start a profiler session of its own: ours makes room."""
        self._warn("The script uses TensorFlow's profiler itself; its own session went first, and the window was moved.")
        with self._lock:
            if self._state in ("trial", "open"):
                self._close("trial")

    def script_ended(self, how: str) -> None:
        """The script is over: what is open is closed and used."""
        with self._lock:
            self._is_off = True
            for track in self._tracks.all():
                if track.open_since_ns and how == "finished":
                    track.end(time.time_ns())
            if self._state in ("trial", "open"):
                with contextlib.suppress(Exception):
                    self._close({"failed": "script failed", "interrupted": "interrupted"}.get(how, "script ended"))

    def settle(self) -> None:
        """Put the best profile in its place in the run folder and remove the others of ours."""
        if self.capture is not None and self.capture.folder.is_dir():
            move_profile(self.capture.folder, self._out)
        for number in range(1, self._folders + 1):
            shutil.rmtree(self._out / f".capture-{number}", ignore_errors=True)


def _durations(track: Track, first: int) -> list[int]:
    return [end - start for start, end in zip(track.starts[first:], track.ends[first:], strict=True)]


def _total_ns(track: Track) -> int:
    return sum(track.ends) - sum(track.starts)
