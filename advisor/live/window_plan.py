"""Decides when a running script is asked for another profiled window: from time to time, and when steps wait longer for input.

In: samples, slow periods and finished windows.  Out: `is_due`.

Windows cost the training time. So they are limited to a share of it, whatever is asked for: the longer a window took, the longer
the next one has to wait. There is never more than one at a time. The run's own window comes first, unasked.
"""

from __future__ import annotations

from advisor.host.calibration.live import (
    MAX_WINDOW_SHARE,
    MAX_WINDOWS,
    MIN_WINDOW_PAUSE_S,
    WINDOW_EVERY_S,
    WINDOW_PATIENCE_S,
)
from advisor.model.live import LiveWindow, SlowPeriod
from advisor.model.units import NS_PER_S


class WindowPlan:
    """When to open the windows after the run's own one."""

    def __init__(
        self,
        every_s: float | None = WINDOW_EVERY_S.value,
        min_pause_s: float = MIN_WINDOW_PAUSE_S.value,
        max_share: float = MAX_WINDOW_SHARE.value,
    ) -> None:
        """Create a plan.

        Args:
            every_s: Seconds between two windows; None: only when a slow period begins.
            min_pause_s: Shortest time between the windows of two slow periods, in seconds.
            max_share: Most of the time that is spent inside windows, 0 to 1.
        """
        self._every_ns = None if every_s is None else every_s * NS_PER_S
        self._min_pause_ns, self._max_share = min_pause_s * NS_PER_S, max_share
        self._begun_ns = 0
        """Time of the first sample."""
        self._latest_ns = self._latest_slow_ns = 0
        """End of the latest window, and of the latest one of a slow period; 0: there was none."""
        self._cost_ns = 0
        """Of the latest window."""
        self._slow: set[str] = set()
        """Consumers in a slow period that has had no window yet."""
        self._asked_ns = 0
        """When the window was asked for that has not come yet; 0: there is none."""
        self._is_for_slow = False
        self._count = 0

    def note(self, change: SlowPeriod) -> None:
        """Take note of a slow period that begins or ends."""
        if change.last_step is not None:
            self._slow.discard(change.consumer_id)
        elif change.is_input or change.wait_ns is None or change.wait_before_ns is None:  # it has risen, or is unknown
            self._slow.add(change.consumer_id)

    def is_due(self, now_ns: int) -> bool:
        """Return whether to ask for a window now. If so, it counts as asked for.

        Args:
            now_ns: Unix time.
        """
        self._begun_ns = self._begun_ns or now_ns
        if self._asked_ns and now_ns - self._asked_ns < WINDOW_PATIENCE_S.value * NS_PER_S:
            return False
        if self._count >= MAX_WINDOWS.value or now_ns - self._latest_ns < self._cost_ns / self._max_share:
            return False
        is_slow = bool(self._slow) and now_ns - self._latest_slow_ns >= self._min_pause_ns
        since_ns = now_ns - max(self._begun_ns, self._latest_ns)
        if not is_slow and (self._every_ns is None or since_ns < self._every_ns):
            return False
        self._is_for_slow, self._asked_ns = is_slow, now_ns
        return True

    def done(self, window: LiveWindow) -> None:
        """Take note of a window that has been written, or could not be."""
        self._latest_ns = window.written_ns
        if window.is_first:
            return
        self._asked_ns, self._cost_ns = 0, window.cost_ns
        self._count += 1
        if self._is_for_slow:
            self._latest_slow_ns = window.written_ns
            self._slow.clear()
