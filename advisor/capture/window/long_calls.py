"""Follows the calls into TensorFlow that take elements and may run for long: a loop inside a tf.function, `Dataset.reduce`.

In: the beginning and end of each such call.  Out: which of them are loops, which one to stop, and how long to wait for its end.
"""

from __future__ import annotations

import threading
import time

from advisor.capture.instrument.consumers import ConsumerSteps, LongCall
from advisor.capture.window.watchdog import is_executing
from advisor.host.calibration.window import BLOCKED_S, LONG_LOOP_GRACE_S, LOOP_GRACE_FACTOR, LOOP_GRACE_S


class LongCalls:
    """The current calls of all threads. Calls of one thread are not nested."""

    def __init__(self) -> None:
        self._calls: dict[int, LongCall] = {}
        """Thread id -> its call."""
        self._executing_since_ns: dict[int, int] = {}
        """Thread id -> time at which its current call was first seen in TensorFlow's executor."""
        self._longest_ns: dict[str, int] = {}
        """Consumer id -> its longest call that has ended."""

    def began(self, call: LongCall) -> None:
        """Note the beginning of a call."""
        self._calls[call.thread_id] = call

    def ended(self, thread_id: int) -> None:
        """Note that a thread has returned from its call, if it was in one."""
        call = self._calls.pop(thread_id, None)
        if call is not None:
            longest_ns = max(self._longest_ns.get(call.consumer.id, 0), time.time_ns() - call.start_ns)
            self._longest_ns[call.consumer.id] = longest_ns

    def now(self) -> list[LongCall]:
        """Return the current calls, those of the likeliest training loop first."""
        return sorted(self._calls.copy().values(), key=lambda call: (-call.consumer.rank, call.start_ns))

    def is_in(self, consumer: ConsumerSteps | None) -> bool:
        """Return whether a call of this consumer is running."""
        return any(call.consumer is consumer for call in self.now())

    def running_since(self, consumer: ConsumerSteps) -> int:
        """Return when the current call of this consumer began, Unix time in ns; 0 if none is running."""
        return min((call.start_ns for call in self.now() if call.consumer is consumer), default=0)

    def loop(self, now_ns: int) -> LongCall | None:
        """Return a call that has been in TensorFlow's executor for too long to be a single step; None if there is none."""
        return next((call for call in self.now() if self._is_loop(call, now_ns)), None)

    def _is_loop(self, call: LongCall, now_ns: int) -> bool:
        if not is_executing(call.thread_id):
            self._executing_since_ns.pop(call.thread_id, None)
            return False
        if self._executing_since_ns.get(call.thread_id, 0) < call.start_ns:
            self._executing_since_ns[call.thread_id] = now_ns
        return now_ns - self._executing_since_ns[call.thread_id] >= BLOCKED_S.value * 1e9

    def to_stop(self, leader: ConsumerSteps | None) -> LongCall | None:
        """Return the call of the measured consumer, else that of the main thread, else any; None if there is none."""
        calls, main = self.now(), threading.main_thread().ident
        of_leader = [call for call in calls if call.consumer is leader]
        of_main = [call for call in calls if call.thread_id == main]
        return next(iter([*of_leader, *of_main, *calls]), None)

    def grace_s(self, call: LongCall) -> float:
        """Return how many seconds the call has to return by itself: earlier calls of its consumer say how long they take."""
        earlier_s = self._longest_ns.get(call.consumer.id, 0) / 1e9
        return max(LOOP_GRACE_S.value, min(LOOP_GRACE_FACTOR.value * earlier_s, LONG_LOOP_GRACE_S.value))
