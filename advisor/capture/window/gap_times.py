"""The input wait that Python does not see, from tf.data's gap times: of Keras' `fit`, and of loops inside a tf.function.

In: tf.data's model of a running iterator, with the steps of its consumer or the time.  Out: waits.

A gap is the time from the end of one request for an element of the whole pipeline to the start of the next one: the consumer does
something else. tf.data keeps the latest 100 gaps of an iterator, and leaves out those of 10 s and more (`gap_times` in
`model.proto`, microseconds, oldest first; `Model::RecordIteratorGapTime`). So a step that takes one element waits from its start
to the start of the next step, minus the gap between their requests. If a step takes several elements, its wait stays unknown: the
requests may run while earlier elements are computed on, as with Keras' `steps_per_execution`.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Any

from advisor.capture.instrument.consumers import ConsumerSteps

MOST_KEPT = 100
"""Gaps that tf.data keeps (`kGapTimeWindow`)."""
LONGEST_NS = 10_000_000_000
"""tf.data leaves out gaps from this length on (`kGapDurationThresholdUsec`)."""


@dataclass(frozen=True, slots=True)
class Gaps:
    """The gaps of one iterator at one point in time."""

    delivered: int
    """Elements that it has delivered."""
    gaps_ns: tuple[int, ...]
    """The latest ones, oldest first; empty if there are none yet, or TensorFlow does not tell."""


def gaps_of(proto: Any) -> Gaps:  # noqa: ANN401
    """Return the gaps in tf.data's model of an iterator."""
    node = proto.nodes.get(proto.output)
    times = getattr(proto, "gap_times", ())
    return Gaps(0 if node is None else int(node.num_elements), tuple(1_000 * int(time_us) for time_us in times))


@dataclass(frozen=True, slots=True)
class TimedSteps:
    """Consecutive steps of one consumer, up to its latest complete one. Times are Unix times in ns."""

    first: int
    """Number of the first of them, from 0."""
    starts: Sequence[int]
    ends: Sequence[int]
    next_ns: int
    """Start of the step that follows them; 0 if none has begun."""


@dataclass(frozen=True, slots=True)
class StepWait:
    """How long one step waited for its element."""

    number: int
    """Of the step, from 0."""
    start_ns: int
    end_ns: int
    wait_ns: int


def latest_waits(consumer: ConsumerSteps, gaps: Gaps, kept: int, number: int) -> list[StepWait]:
    """Return the waits of the latest steps of a consumer whose wait Python does not see, at most 100 of them; see `step_waits`.

    The first step of a library call (`fit`) is left out: functions are traced before it requests its element.

    Args:
        consumer: The consumer.
        gaps: The gaps of its iterator.
        kept: Number of its steps that are kept.
        number: How many of them are meant.
    """
    if not gaps.gaps_ns:
        return []
    first = max(0, kept - number, kept - MOST_KEPT - 1)
    starts = consumer.starts[first : kept + 1]
    next_ns = starts.pop() if len(starts) > kept - first else consumer.open_since_ns
    steps = TimedSteps(consumer.dropped + first, starts, consumer.ends[first:kept], next_ns)
    return step_waits(steps, consumer.iterator_first, gaps, {0, *consumer.call_firsts})


def step_waits(steps: TimedSteps, iterator_first: int, gaps: Gaps, unknown: Collection[int] = ()) -> list[StepWait]:
    """Return the waits of those steps whose gap is known.

    Args:
        steps: The steps.
        iterator_first: Number of the first step that reads the iterator. Earlier ones read others, whose gaps are gone.
        gaps: The gaps of the iterator, read at about the time of the latest step.
        unknown: Numbers of steps to leave out, because they may have done something else before they requested their element.

    Returns:
        The steps, latest first; empty if steps take several elements, or how many they take is not known yet.
    """
    made = steps.first + len(steps.starts) - iterator_first
    recorded = len(gaps.gaps_ns)
    if made < 1 or gaps.delivered > made + (made > 1):
        return []
    requests, latest = _requests(gaps, made, is_open=bool(steps.next_ns))
    has_all = recorded == gaps.delivered
    """Whether no gap was left out: each element but the one that is waited for has one."""
    waits = []
    for place in range(latest, 0, -1):  # of the step in its iterator, from 1
        index, gap = iterator_first + place - 1 - steps.first, recorded - requests + place
        if index < 0 or gap < 0:
            break
        start, end = steps.starts[index], steps.ends[index]
        follower = steps.starts[index + 1] if index + 1 < len(steps.starts) else steps.next_ns
        if follower - start >= LONGEST_NS and not has_all:
            break  # its gap may have been left out, and then the earlier ones belong to other steps
        if steps.first + index not in unknown:
            wait_ns = min(max(0, follower - start - gaps.gaps_ns[gap]), end - start)
            waits.append(StepWait(steps.first + index, start, end, wait_ns))
    return waits


def _requests(gaps: Gaps, made: int, is_open: bool) -> tuple[int, int]:
    """Return (number of requests to the iterator that have begun, the latest of its steps that a gap and another step follow).

    There is a gap before each request but the first. So the number of gaps is that of the requests, until the oldest are dropped.
    Later, a step that has begun and has no element yet is taken to wait for it.
    """
    recorded = len(gaps.gaps_ns)
    if recorded < MOST_KEPT and recorded + 1 in (gaps.delivered, gaps.delivered + 1):
        requests = recorded + 1
    else:
        requests = gaps.delivered + (is_open and gaps.delivered <= made)
    return requests, min(requests - 1, made if is_open else made - 1)


@dataclass(frozen=True, slots=True)
class LoopShare:
    """What a loop inside a tf.function did between two looks. Times are in ns per element; None if unknown."""

    elements: int
    length_ns: float | None = None
    wait_ns: float | None = None


class LoopWait:
    """The waits of one loop inside a tf.function, each of whose elements counts as a step, from one look to the next."""

    def __init__(self) -> None:
        self._before: tuple[int, int, int] | None = None
        """(number of the iterator, elements delivered, time) at the latest look that found a new element."""
        self._excess_ns = 0.0
        """By how much the gaps between the earlier looks were longer than the time between these: a gap counts where it ends."""

    def look(self, now_ns: int, iterator: int, gaps: Gaps, running_since_ns: int) -> LoopShare:
        """Return what happened since the latest look that found a new element.

        If at most 100 elements were delivered meanwhile, the sum of their gaps is known; otherwise the mean of the latest 100
        stands for all. Length and wait are unknown unless one call of the function was running all the time.

        Args:
            now_ns: Unix time of the look.
            iterator: Number of the iterator among those of the consumer.
            gaps: Its gaps.
            running_since_ns: When the current call of the function began; 0 if none is running.
        """
        before = self._before
        is_same = before is not None and before[0] == iterator and before[1] <= gaps.delivered
        known = before if is_same and before is not None else (iterator, 0, now_ns)
        new = gaps.delivered - known[1]
        if is_same and not new:
            return LoopShare(0)
        self._before = iterator, gaps.delivered, now_ns
        elapsed_ns = now_ns - known[2]
        if not known[1] or not running_since_ns or running_since_ns > known[2] or elapsed_ns <= 0:
            self._excess_ns = 0.0
            return LoopShare(new)
        if not gaps.gaps_ns or elapsed_ns >= LONGEST_NS:  # a gap may have been left out
            self._excess_ns = 0.0
            return LoopShare(new, elapsed_ns / new)
        latest = gaps.gaps_ns[-new:]
        wait_ns = elapsed_ns - sum(latest) / len(latest) * new - self._excess_ns
        self._excess_ns = min(max(0.0, -wait_ns), float(elapsed_ns))
        return LoopShare(new, elapsed_ns / new, max(0.0, wait_ns) / new)
