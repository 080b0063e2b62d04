"""Puts the samples of a running script together.

In: `LiveSample`s, one after the other.  Out: `WatchedRun`: per consumer the steps, their time and the wait over the whole run,
the latest sample and the slow periods; for the process, cores and memory; the bottlenecks that profiled windows found. Memory is
bounded: samples are not kept.
"""

from __future__ import annotations

from advisor.live.bottlenecks import Bottlenecks
from advisor.live.slow_periods import SlowPeriods
from advisor.model.live import BottleneckStretch, LiveConsumer, LiveSample, SlowPeriod

Change = SlowPeriod | BottleneckStretch
"""What is reported as soon as it is noticed."""
MAX_CONSUMERS = 200
"""Consumers that are listed separately; a script that takes elements in more places is only counted."""


class WatchedConsumer:
    """One consumer over the whole run. Times are in ns."""

    def __init__(self, latest: LiveConsumer) -> None:
        self.latest = latest
        """Its part of the latest sample in which it took elements."""
        self.total_ns = 0.0
        """Sum of its steps with a known length."""
        self.timed_steps = 0
        self.wait_ns: float | None = None
        """Sum of its waits; None if they are unknown."""
        self.waiting_total_ns = 0.0
        """Sum of its steps with a known wait."""
        self.pauses = 0
        """Times between two steps in which it made none, as between two epochs; those beside the profiler are left out."""
        self.pause_ns = 0
        """Their total length."""
        self.slow = SlowPeriods(latest.id)

    @property
    def step_ns(self) -> float | None:
        """Mean length of a step; None if no step was timed."""
        return self.total_ns / self.timed_steps if self.timed_steps else None

    @property
    def wait_share(self) -> float | None:
        """Share of its steps spent waiting for input, 0 to 1; None if unknown."""
        if self.wait_ns is None or not self.waiting_total_ns:
            return None
        return min(1.0, self.wait_ns / self.waiting_total_ns)

    def add(self, sample: LiveSample, consumer: LiveConsumer) -> SlowPeriod | None:
        """Add its part of a sample; return the slow period that begins or ends with it, if any.

        Steps beside the profiler count, but are no slow period.
        """
        self.latest = consumer
        if consumer.step_ns is not None:
            self.total_ns += consumer.step_ns * consumer.new_steps
            self.timed_steps += consumer.new_steps
            if consumer.wait_ns is not None:
                self.wait_ns = (self.wait_ns or 0.0) + consumer.wait_ns * consumer.new_steps
                self.waiting_total_ns += consumer.step_ns * consumer.new_steps
        if sample.is_profiled:
            return None
        self.pauses += consumer.pauses
        self.pause_ns += consumer.pause_ns
        return self.slow.add(sample.time_ns, consumer)


class WatchedRun:
    """All consumers and the process."""

    def __init__(self) -> None:
        self.bottlenecks = Bottlenecks()
        """What the profiled windows found."""
        self.consumers: dict[str, WatchedConsumer] = {}
        """Consumer id -> consumer, in order of appearance."""
        self.latest: LiveSample | None = None
        self.elapsed_ns = 0
        """Time covered by the samples."""
        self.cpu_ns = 0.0
        self.own_ns = 0
        """CPU time that the sampling took."""
        self.peak_rss_bytes = 0
        """In samples without the profiler."""
        self.is_incomplete = False
        """Whether there were more consumers than are listed separately."""

    @property
    def main(self) -> WatchedConsumer | None:
        """The training loop, or the consumer with the most steps while no loop is known to train."""
        ranked = sorted(self.consumers.values(), key=lambda consumer: (consumer.latest.is_main, consumer.latest.steps))
        return ranked[-1] if ranked else None

    @property
    def cores(self) -> float:
        """Cores used on average."""
        return self.cpu_ns / self.elapsed_ns if self.elapsed_ns else 0.0

    @property
    def own_share(self) -> float:
        """CPU time of the sampling as a share of one core."""
        return self.own_ns / self.elapsed_ns if self.elapsed_ns else 0.0

    @property
    def window_share(self) -> float:
        """Time inside profiled windows as a share of the run."""
        return min(1.0, self.bottlenecks.inside_ns / self.elapsed_ns) if self.elapsed_ns else 0.0

    @property
    def slow_periods(self) -> list[SlowPeriod]:
        """The slow periods of all consumers, oldest first."""
        return sorted(
            (period for consumer in self.consumers.values() for period in consumer.slow.periods),
            key=lambda period: period.began_ns,
        )

    def add(self, sample: LiveSample) -> list[SlowPeriod]:
        """Add a sample.

        Returns:
            The slow periods that begin or end with it.
        """
        self.latest = sample
        self.elapsed_ns += sample.elapsed_ns
        self.cpu_ns += sample.cores * sample.elapsed_ns
        self.own_ns += sample.own_ns
        if not sample.is_profiled:
            self.peak_rss_bytes = max(self.peak_rss_bytes, sample.rss_bytes or 0)
        changes = []
        for consumer in sample.consumers:
            if consumer.id not in self.consumers:
                if len(self.consumers) >= MAX_CONSUMERS:
                    self.is_incomplete = True
                    continue
                self.consumers[consumer.id] = WatchedConsumer(consumer)
            changed = self.consumers[consumer.id].add(sample, consumer)
            if changed is not None:
                changes.append(changed)
        return changes
