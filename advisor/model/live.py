"""What `advisor watch` sees of a running script: one sample per second, profiled windows, and what is found in both.

In: nothing.  Out: `LiveSample` with its `LiveConsumer`s and `LiveWindow`, sent by the script's process; `SlowPeriod`, and the
`WindowFinding` of an analysed window.
"""

from __future__ import annotations

from dataclasses import dataclass

import msgspec


class LiveConsumer(msgspec.Struct, frozen=True):
    """One consumer of elements (a loop, `fit`, `evaluate`) since the previous sample. Times are in ns."""

    id: str
    kind: str
    """As in `Consumer`: `for`, `next`, `keras.fit`, ..."""
    where: str
    """File name and line, such as `train.py:31`; empty if unknown."""
    is_main: bool
    """Whether it is the training loop, as far as is known yet."""
    steps: int
    """Completed steps since the start of the script; of a loop inside a tf.function, elements."""
    passes: int
    """Iterations over a dataset that have begun."""
    new_steps: int
    """Steps completed since the previous sample."""
    step_ns: float | None = None
    """Mean length of these steps; None if it is unknown."""
    wait_ns: float | None = None
    """Mean time of these steps spent waiting for the next element; None if it is unknown. Where Python does not see it (Keras,
    loops inside a tf.function), it comes from tf.data's gap times, and the latest 100 steps stand for all."""
    buffered: float | None = None
    """Elements in the pipeline's last buffer, from tf.data's own model; None if there is none, or TensorFlow does not tell."""
    buffer_size: float | None = None
    """Capacity of that buffer."""
    pauses: int = 0
    """Times between two of its steps since the previous sample in which it made none, as between two epochs."""
    pause_ns: int = 0
    """Total length of these pauses."""

    @property
    def wait_share(self) -> float | None:
        """Share of the step spent waiting for the next element, 0 to 1; None if unknown."""
        return None if self.wait_ns is None or not self.step_ns else min(1.0, self.wait_ns / self.step_ns)


class LiveSample(msgspec.Struct, frozen=True, tag=True):
    """The state of the script's process at one point in time."""

    time_ns: int
    """Unix time."""
    elapsed_ns: int
    """Since the previous sample; since the start of sampling for the first one."""
    cores: float
    """Cores that the process used, on average since the previous sample."""
    rss_bytes: int | None
    """Resident memory; None if unknown."""
    own_ns: int
    """CPU time that sampling itself took since the previous sample."""
    is_profiled: bool = False
    """Whether the profiler ran or wrote its profile meanwhile, which makes steps longer."""
    consumers: tuple[LiveConsumer, ...] = ()
    """Those that took elements since the previous sample."""


class LiveWindow(msgspec.Struct, frozen=True, tag=True):
    """A profiled window that has been written. Times are Unix times in ns."""

    folder: str
    """Run folder of the window."""
    consumer_id: str
    where: str
    """As in `LiveConsumer`; empty if unknown."""
    kind: str
    first_step: int
    """Steps of the consumer before the window, including those timed before its profiled stretch."""
    last_step: int
    """Steps of the consumer at its end."""
    start_ns: int
    """When the profiler was asked to start."""
    end_ns: int
    """End of the profiled stretch."""
    written_ns: int
    """When the profile had been written. The consumer waited for that."""
    is_first: bool = False
    """Whether it is the run's own window, whose folder is kept."""
    problem: str = ""
    """Why it holds no profile, in one sentence; empty if it does."""

    @property
    def cost_ns(self) -> int:
        """Time of the run inside the window: with the profiler, and while the profile was written."""
        return self.written_ns - self.start_ns


class WindowFinding(msgspec.Struct, frozen=True):
    """What the analysis of a window found."""

    wait_share: float | None = None
    """Share of the step spent waiting for input, 0 to 1; None if no step was measured."""
    step_ns: float | None = None
    """Mean length of a step, without the profiler where it was measured so."""
    steps: int = 0
    """Steps behind these figures."""
    bottleneck: str = ""
    """The call that causes most of the wait, such as `train.py:12 .map(load)`; empty if there is none."""
    blame_share: float = 0.0
    """Its share of the wait, 0 to 1."""
    is_input_bound: bool = False
    cpu_ns: int = 0
    """CPU time of the analysis."""
    problem: str = ""
    """Why there is no finding, in one sentence; empty if there is one."""


@dataclass(frozen=True, slots=True)
class BottleneckStretch:
    """Consecutive windows of one consumer with the same bottleneck."""

    consumer_id: str
    first_step: int
    """First step of the first window."""
    last_step: int
    """Last step of the latest window; 0 if its steps cannot be seen."""
    began_ns: int
    """Unix time of the start of the first window."""
    latest_ns: int
    """Unix time of the start of the latest window."""
    windows: int
    finding: WindowFinding
    """Of the latest window."""


@dataclass(frozen=True, slots=True)
class SlowPeriod:
    """Steps of one consumer that take longer than those before them. Times are in ns."""

    consumer_id: str
    after_step: int
    """The last step known to be as fast as before: the change came after it."""
    first_step: int
    """The last step of the first slow sample: the change came before it."""
    last_step: int | None
    """The last slow step; None if the period has not ended."""
    began_ns: int
    """Unix time of the first slow sample."""
    pass_number: int
    """The iteration over the dataset in which the change was seen, from 1."""
    step_before_ns: float
    step_ns: float
    """Median of the samples' mean step times: before, and in the period."""
    wait_before_ns: float | None
    wait_ns: float | None
    """The same for the wait; None if it is unknown."""

    @property
    def slowdown(self) -> float:
        """How many times as long a step takes."""
        return self.step_ns / self.step_before_ns

    @property
    def is_input(self) -> bool:
        """Whether more than half of the additional time is spent waiting for input."""
        if self.wait_ns is None or self.wait_before_ns is None:
            return False
        return self.wait_ns - self.wait_before_ns > 0.5 * (self.step_ns - self.step_before_ns)
