"""One turn of a live process: which of its steps are timed, and when it is over.

In: the request, and each step with what the pipeline's last buffer holds.  Out: `TurnTaken`.

The beginning of a turn is dropped. Elements that were in work at the stop appear to have taken as long as the stop, reads and
sleeps that ended meanwhile make the buffer fuller than it would be, and the other process has displaced the processor's caches.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from advisor.host.calibration.proof import MIN_RUN_STEPS, TURN_SETTLE_MOST_S, TURN_SETTLE_S, TURN_SETTLE_STEPS
from advisor.host.calibration.window import WHOLE_EPOCHS_STRETCH
from advisor.model.units import NS_PER_S
from advisor.prove.trial.runs.turn_messages import TakeTurn, TurnBufferLevels, TurnTaken


@dataclass(frozen=True, slots=True)
class Level:
    """How full the last buffer of the pipeline is."""

    elements: float
    capacity: float


@dataclass(slots=True)
class UsualLevels:
    """What the last buffer held while steps were timed, in the window or in the latest turn."""

    low: float | None = None
    """None: nothing is known."""
    high: float | None = None
    stopped: float | None = None
    """What it held when the process stopped."""

    def holds(self, level: Level | None) -> bool:
        """Whether a reading is as usual; True if that is unknown."""
        if level is None or self.low is None or self.high is None:
            return True
        return self.low <= level.elements <= self.high


@dataclass(slots=True)
class TurnClock:
    """The course of one turn."""

    request: TakeTurn
    usual: UsualLevels
    began_ns: int
    """When the process went on."""
    resumed: Level | None = None
    """What the buffer held then."""
    _dropped: int = 0
    _timed_since_ns: int = 0
    _durations: list[int] = field(default_factory=list)
    _wait_ns: int = 0
    _levels: list[Level] = field(default_factory=list)

    def is_over_after(self, duration_ns: int, wait_ns: int, now_ns: int, level: Level | None = None) -> bool:
        """Note a step, and return whether the turn is over.

        Args:
            duration_ns: Length of the step.
            wait_ns: Time in it that Python saw in `next`.
            now_ns: When it ended.
            level: What the buffer holds now; None if it was not read, or there is none.
        """
        if not self._timed_since_ns:
            self._dropped += 1
            if self._is_settled(now_ns, level):
                self._timed_since_ns = now_ns
            return False
        self._durations.append(duration_ns)
        self._wait_ns += wait_ns
        if level is not None:
            self._levels.append(level)
        count, limit = len(self._durations), self.request.steps
        if limit is not None and count >= limit:
            return True
        elapsed_ns = now_ns - self._timed_since_ns
        if count < MIN_RUN_STEPS.value or elapsed_ns < self.request.seconds * NS_PER_S:
            return False
        epoch = self.request.epoch_steps
        is_long = elapsed_ns >= WHOLE_EPOCHS_STRETCH.value * self.request.seconds * NS_PER_S
        return epoch is None or count % epoch == 0 or is_long

    def taken(self, level: Level | None = None) -> TurnTaken:
        """Return the result of a turn that is over.

        Args:
            level: What the buffer holds now, at the stop; None if there is no buffer.
        """
        durations, middle = self._durations, len(self._durations) // 2
        halves = durations[:middle], durations[middle:]
        return TurnTaken(
            steps=len(durations),
            total_ns=sum(durations),
            wait_ns=self._wait_ns,
            halves_ns=(sum(halves[0]) / len(halves[0]), sum(halves[1]) / len(halves[1])),
            dropped_steps=self._dropped,
            dropped_ns=self._timed_since_ns - self.began_ns,
            buffer=self._readings(level),
        )

    def next_usual(self, level: Level | None) -> UsualLevels:
        """Return what is usual for the next turn.

        Args:
            level: As for `taken`.
        """
        elements = [reading.elements for reading in (*self._levels, *([level] if level else []))]
        stopped = level.elements if level is not None else None
        return UsualLevels(min(elements, default=None), max(elements, default=None), stopped)

    def _is_settled(self, now_ns: int, level: Level | None) -> bool:
        elapsed_s = (now_ns - self.began_ns) / NS_PER_S
        if elapsed_s >= TURN_SETTLE_MOST_S.value:
            return True
        is_begun = self._dropped < TURN_SETTLE_STEPS.value or elapsed_s < TURN_SETTLE_S.value
        return not is_begun and self.usual.holds(level)

    def _readings(self, level: Level | None) -> TurnBufferLevels | None:
        if self.resumed is None or level is None:
            return None
        usual = self.next_usual(level)
        low, high = usual.low or 0.0, usual.high or 0.0
        return TurnBufferLevels(self.usual.stopped, self.resumed.elements, low, high, level.capacity)
