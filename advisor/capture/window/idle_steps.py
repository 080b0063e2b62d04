"""Times steps of the training without concurrent input: before the script is stopped, or before its loop ends by itself.

In: the consumer, in its thread, at step boundaries.  Out: the durations of steps that were given the same element again and
again, once the buffers of the pipeline are full and its threads wait. There are none if steps do not wait for input, or if the
script does not take its elements in a `for` loop, with `next` or in Keras' `fit`, whose steps `fit_idle_steps` makes.

A step that waits for input shares the cores with the pipeline that it waits for, and finds caches and threads cold. Its own time
may then be a multiple of what it is without input (docs/predictions.md), which no time in the window shows. After a window,
the script is stopped, within a second if its loop has ended meanwhile, so that hardly any of what follows is run. A loop that
ends before its window has gets its own elements again, and the script goes on to its end.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable
from statistics import median

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.window.alone_reading import waits
from advisor.host.calibration.capture import LATEST_STEPS
from advisor.host.calibration.window import (
    EMPTY_SHARE,
    IDLE_MAX_S,
    IDLE_SETTLE_S,
    IDLE_SILENCE_S,
    IDLE_STEPS,
    LONGEST_IDLE_STEP_S,
)
from advisor.model.catalog import base_type
from advisor.model.window_readings import BufferLevels

_IN_PYTHON = frozenset({"for", "next"})
"""Kinds of consumers that get each element from the hook on `next`, as tensors, which they cannot change. A library may pass on
arrays that share memory with them, which the script could change."""
_FIT = "keras.fit"
_KINDS = _IN_PYTHON | {_FIT}


class IdleSteps:
    """The steps of one consumer after the window."""

    def __init__(self) -> None:
        self.durations_ns: list[int] = []
        """Of the steps that began after the buffers had time to fill."""
        self.is_wanted = False
        """Whether the script may be made to go on for so long: not if it is to end by itself, or writes to real files."""
        self.may_go_on = False
        """Whether the script may end with other results than without this, because nothing that it writes is kept."""
        self.has_begun = False
        """Whether the script has been given an element again. What fails after that may have failed because of it."""
        self.goes_on = False
        """Whether the script goes on afterwards, because its loop is about to end by itself; otherwise it is stopped."""
        self._consumer: ConsumerSteps | None = None
        self._began_ns = self._step_ns = 0

    @property
    def is_running(self) -> bool:
        """Whether the consumer gets the same element again and again."""
        return self._consumer is not None

    def may_begin(self, consumer: ConsumerSteps, levels: Iterable[BufferLevels]) -> bool:
        """Return whether steps of the consumer without input would say something that its other steps do not.

        Args:
            consumer: The consumer, whose thread this is.
            levels: How full its last buffer was; empty if that is unknown.
        """
        if not self.is_wanted or consumer.kind not in _KINDS or consumer.library is not None:
            return False
        is_short = _latest_step_ns(consumer) <= LONGEST_IDLE_STEP_S.value * 1e9
        return is_short and (_may_wait(levels) if consumer.kind == _FIT else waits(consumer, levels))

    def begin(
        self, consumer: ConsumerSteps, levels: Iterable[BufferLevels], now_ns: int, goes_on: bool = False
    ) -> bool:
        """Begin at a step boundary of the consumer; the element that it takes now is the one that it gets again.

        Args:
            consumer: The consumer, whose thread this is.
            levels: As for `may_begin`.
            now_ns: Unix time in ns.
            goes_on: As the attribute.

        Returns:
            Whether it has begun.
        """
        if not self.may_begin(consumer, levels):
            return False
        self.is_wanted, self.has_begun, self.goes_on = False, True, goes_on
        self._consumer, self._began_ns, self._step_ns = consumer, now_ns, 0
        consumer.repeated = []
        return True

    def boundary(self, consumer: ConsumerSteps, now_ns: int) -> bool:
        """Note a step boundary; return whether enough steps were timed.

        Args:
            consumer: The consumer whose step has ended.
            now_ns: Unix time in ns.
        """
        if consumer is not self._consumer:
            return False
        if consumer.kind not in _IN_PYTHON:  # its steps are made by `make`; those that it makes itself wait for input
            self.end()
            return True
        return self._note(now_ns)

    def make(self, step: Callable[[], object], beside_ns: int) -> None:
        """Make steps until enough were timed, instead of the consumer, in its thread.

        Args:
            step: Makes a step without input.
            beside_ns: What a step of the consumer takes beside that, in ns.
        """
        is_over = False
        while self.is_running and not is_over:  # the watchdog may end it meanwhile
            step()
            is_over = self._note(time.time_ns())
        self.durations_ns = [duration + beside_ns for duration in self.durations_ns]

    def _note(self, now_ns: int) -> bool:
        """Note the end of a step; return whether enough were timed."""
        if self._step_ns and self._step_ns - self._began_ns >= IDLE_SETTLE_S.value * 1e9:
            self.durations_ns.append(now_ns - self._step_ns)
        self._step_ns = now_ns
        is_late = now_ns - self._began_ns >= IDLE_MAX_S.value * 1e9
        is_over = is_late or len(self.durations_ns) >= IDLE_STEPS.value
        if is_over:
            self.end()
        return is_over

    def is_silent(self, now_ns: int) -> bool:
        """Return whether there has been no boundary for so long that the loop has probably ended.

        Args:
            now_ns: Unix time in ns.
        """
        return self.is_running and now_ns - max(self._began_ns, self._step_ns) >= IDLE_SILENCE_S.value * 1e9

    def is_waiting_for_last(self, consumer: ConsumerSteps) -> bool:
        """Return whether the consumer is about to take the element that it is to get again."""
        return consumer is self._consumer and not consumer.repeated

    def end(self) -> None:
        """Let the consumer get its own elements again."""
        if self._consumer is not None:
            self._consumer.repeated = None
        self._consumer = None


def _may_wait(levels: Iterable[BufferLevels]) -> bool:
    """Whether a consumer whose wait Python does not see may wait for input: not if its last prefetch hardly ever was empty.

    The buffers of other transformations count batches that are not complete.
    """
    return not any(
        base_type(level.transformation) == "Prefetch"
        and level.elements.count(0) < EMPTY_SHARE.value * len(level.elements)
        for level in levels
    )


def _latest_step_ns(consumer: ConsumerSteps) -> float:
    """Median of the latest steps with their wait, in ns; infinite if there is none."""
    latest = consumer.durations(max(0, consumer.count - LATEST_STEPS.value))
    return median(latest) if latest else math.inf
