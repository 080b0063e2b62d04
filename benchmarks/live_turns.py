"""The child of live_pairs.py: a script whose process is stopped at a step boundary after each turn.

    python benchmarks/live_turns.py REQUEST        (a SessionRequest, encoded; see advisor.capture.session)

In: `TURNS` in the environment: seconds of the first turn and of each later one.  Out: per turn one line of JSON, the durations of
its steps in ns; then SIGSTOP to the process group. SIGCONT begins the next turn.

The process stops itself, so that it is stopped between two steps: another process could only stop it within one.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.consumers import Track
from advisor.capture.instrument.keras_loops import KerasLoops
from advisor.capture.request import SessionRequest
from advisor.capture.session import Session, run_session
from advisor.capture.window.monitor import Monitor

_LEAST_STEPS = 4
"""A consumer is followed after so many steps."""


class Turns(Monitor):
    """Opens no window: it ends turns."""

    seconds: tuple[float, float] = (5.0, 5.0)
    fd = -1

    def begin_turns(self, first_s: float, later_s: float, fd: int) -> None:
        """Set the seconds of the first turn and of later ones, and the pipe of the durations."""
        self.seconds, self.fd = (first_s, later_s), fd
        self._began_ns, self._durations, self._turn = 0, list[int](), 0

    def boundary(self, track: Track) -> int:
        """See `Monitor`."""
        now = time.time_ns()
        is_followed = track.count >= _LEAST_STEPS and (self.leader is None or self.leader is track)
        if track.open_since_ns:
            began_ns = track.open_since_ns
            track.end(now)
            if is_followed:
                self._after_step(track, now - began_ns, now)
                now = time.time_ns()
        track.begin(now)
        return now

    def _after_step(self, track: Track, duration_ns: int, now: int) -> None:
        if self.leader is None:
            self.leader, self._began_ns = track, now
            return
        self._durations.append(duration_ns)
        if now - self._began_ns < self.seconds[min(self._turn, 1)] * 1e9:
            return
        durations, self._durations = self._durations, []
        os.write(self.fd, (json.dumps(durations) + "\n").encode())
        os.killpg(0, signal.SIGSTOP)
        self._turn += 1
        self._began_ns = time.time_ns()


class TurnSession(Session):
    """A session without a window."""

    def __init__(self, message: SessionRequest) -> None:
        super().__init__(message)
        first_s, later_s = (float(word) for word in os.environ["TURNS"].split(","))
        # The session makes its monitor itself, and others already hold a reference to it.
        self._monitor.__class__ = Turns
        assert isinstance(self._monitor, Turns)
        self._monitor.begin_turns(first_s, later_s, message.progress_fd)
        self._consumption = Consumption(self._recorder.finder, self._tracks, self._monitor, self._warn)
        self._keras = KerasLoops(self._consumption, self._monitor, self._warn)


if __name__ == "__main__":
    sys.exit(run_session(sys.argv[1], TurnSession))
