"""Finds periods in which the steps of a running script take longer than before, while it runs.

In: samples of one consumer, one after the other.  Out: `SlowPeriod`s, with the steps between which the change came.

A sample is slow if its mean step is longer than the median of the earlier ones by a fifth and by 3.5 robust deviations, and a
period is three slow samples in a row: a checkpoint or a single pause is none. It ends with three samples that are not slow.
"""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, replace
from statistics import median

from advisor.host.calibration.live import IN_A_ROW, MAX_REFERENCE, MIN_REFERENCE, MIN_SLOWDOWN
from advisor.model.live import LiveConsumer, SlowPeriod
from advisor.model.robust import DEVIATIONS, median_and_deviation

MAX_PERIODS = 100
"""Per consumer; later ones are not kept."""


@dataclass(frozen=True, slots=True)
class _Point:
    time_ns: int
    after_step: int
    last_step: int
    pass_number: int
    step_ns: float
    wait_ns: float | None


class SlowPeriods:
    """The slow periods of one consumer."""

    def __init__(self, consumer_id: str) -> None:
        self._consumer_id = consumer_id
        self.periods: list[SlowPeriod] = []
        """Oldest first, at most `MAX_PERIODS`. The last one has no `last_step` while it lasts."""
        self._usual: deque[_Point] = deque(maxlen=MAX_REFERENCE.value)
        self._run: list[_Point] = []
        """The latest samples that contradict the present state: slow ones, or in a slow period those that are not."""
        self._slow: list[_Point] = []
        """Samples of the present period."""

    def add(self, time_ns: int, consumer: LiveConsumer) -> SlowPeriod | None:
        """Add a sample.

        Args:
            time_ns: Unix time of the sample.
            consumer: The consumer's part of it; ignored if it has no complete step.

        Returns:
            The period that begins or ends with it; None if nothing changes.
        """
        if consumer.step_ns is None or not consumer.new_steps:
            return None
        first = consumer.steps - consumer.new_steps
        point = _Point(time_ns, first, consumer.steps, consumer.passes, consumer.step_ns, consumer.wait_ns)
        is_slow = self._is_slow(point)
        if is_slow != bool(self._slow):
            self._run.append(point)
            if len(self._run) < IN_A_ROW.value:
                return None
            return self._begin() if is_slow else self._end()
        if self._slow:
            self._slow += [*self._run, point]  # what looked like the end was part of the period
            self._update(last_step=None)
        else:
            self._usual.append(point)  # what looked like the beginning was a single pause, and is not usual
        self._run = []
        return None

    def _is_slow(self, point: _Point) -> bool:
        if len(self._usual) < MIN_REFERENCE.value or (len(self.periods) >= MAX_PERIODS and not self._slow):
            return False
        usual, deviation = median_and_deviation(usual_point.step_ns for usual_point in self._usual)
        return point.step_ns > max(MIN_SLOWDOWN.value * usual, usual + DEVIATIONS * deviation)

    def _begin(self) -> SlowPeriod:
        self._slow, self._run = self._run, []
        first = self._slow[0]
        self.periods.append(
            SlowPeriod(
                consumer_id=self._consumer_id,
                after_step=self._usual[-1].after_step,
                first_step=first.last_step,
                last_step=None,
                began_ns=first.time_ns,
                pass_number=first.pass_number,
                step_before_ns=median(point.step_ns for point in self._usual),
                step_ns=0.0,
                wait_before_ns=_median_wait(self._usual),
                wait_ns=None,
            )
        )
        return self._update(last_step=None)

    def _end(self) -> SlowPeriod:
        ended = self._update(last_step=self._slow[-1].last_step)
        self._usual.extend(self._run)
        self._slow, self._run = [], []
        return ended

    def _update(self, last_step: int | None) -> SlowPeriod:
        self.periods[-1] = replace(
            self.periods[-1],
            last_step=last_step,
            step_ns=median(point.step_ns for point in self._slow),
            wait_ns=_median_wait(self._slow),
        )
        return self.periods[-1]


def _median_wait(points: deque[_Point] | list[_Point]) -> float | None:
    waits = [point.wait_ns for point in points if point.wait_ns is not None]
    return median(waits) if waits else None
