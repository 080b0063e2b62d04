"""A/B benchmark of two pipelines, interleaved in one process.

In: two `Side`s, before and after.  Out: a `Measurement`: the ratio of their rates with its 95 % interval.

* One side runs at a time. Before the other side's turn, its iterator ends with its epoch, or it idles until its buffers are
full and
  its threads are quiet; if they do not become quiet, the iterator is destroyed.
* Measurement starts in the steady state: caches are filled, then the side runs until AUTOTUNE has settled. Each turn first drops
  the elements already in buffers.
* A turn is a whole number of epochs if an epoch is short, so that the start of an epoch (filling a shuffle buffer) counts as
often
  as in training; else part of an epoch. The time TensorFlow takes to destroy an iterator at the end of an epoch is excluded:
  it is anything between zero and the time to AUTOTUNE's next update, independently of the pipeline (docs/measuring.md).
* Pairs of turns alternate in order (before-after, after-before), so that a machine that gets slower or faster favours neither.
  Each pair gives one ratio; the result is their median with its exact interval by order statistics.
* The stopping rule is fixed in advance: `Plan`.
"""

from __future__ import annotations

import contextlib
import gc
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from advisor.host.calibration.prediction import MEMORY_SHARE
from advisor.host.calibration.proof import (
    AB_BUDGET_S,
    AB_HALF_WIDTH,
    AB_WARMUP_S,
    FILL_S,
    GAIN_SHARE,
    LOOK_S,
    MAX_TURNS,
    QUIET_S,
    SHORT_EPOCH_S,
    TURN_ELEMENTS,
    TURN_S,
)
from advisor.host.machine import memory_bytes
from advisor.model.intervals import SEQUENTIAL_CONFIDENCE, median_interval
from advisor.model.outcome import Interval
from advisor.prove.trial.trial_result import judge


@dataclass(frozen=True, slots=True)
class Plan:
    """When a measurement begins and ends, fixed before it starts."""

    min_turns: int = 6
    """Fewer pairs have no 95 % interval."""
    max_turns: int = MAX_TURNS.value
    half_width: float = AB_HALF_WIDTH.value
    """Enough once the interval reaches no further than this share from the median ..."""
    gain_share: float = GAIN_SHARE.value
    """... or no further than this share of the gain (or loss) itself: 2.0 is known well enough as 1.8 to 2.2."""
    turn_s: float = TURN_S.value
    warmup_s: float = AB_WARMUP_S.value
    fill_s: float = FILL_S.value
    budget_s: float = AB_BUDGET_S.value
    """No new pair begins after that, once there are `min_turns`."""
    longest_s: float = AB_BUDGET_S.value
    """No new pair begins after that."""


@dataclass(frozen=True, slots=True)
class Measurement:
    """The result of a measurement."""

    verdict: str
    speedup: Interval | None
    """None: fewer than `min_turns` pairs fitted into the budget."""
    rate_before: float
    rate_after: float
    turns: int
    note: str = ""


class CannotMeasure(Exception):
    """One side never reaches a steady state, or fails; the message names the side and the reason, as the end of a sentence."""


@dataclass(frozen=True, slots=True)
class _Turn:
    elements: int
    seconds: float

    @property
    def rate(self) -> float:
        return self.elements / self.seconds if self.seconds > 0 else 0.0


class Side:
    """One pipeline under measurement."""

    def __init__(
        self,
        name: str,
        dataset: Any,  # noqa: ANN401
        caches: list[Any],
        plan: Plan,
        is_fill_needed: bool = True,
        fits: bool = True,
    ) -> None:
        """`caches`: the dataset objects of its caches, inputs first; filling them there fills them for every iterator.

        `is_fill_needed`: whether one that cannot be filled is an obstacle. If not (the caches are the script's own), the side is
        measured as its first epoch goes, which is all that training has of it; where memory runs out, the epoch begins anew.
        `fits`: no time goes into filling caches that are known not to.
        """
        self.name, self._dataset, self._caches, self._plan = name, dataset, caches, plan
        self._is_fill_needed, self._fits = is_fill_needed, fits
        self._least_free: float | None = None
        """Bytes of memory that must stay free while a cache grows; None: none does."""
        self._iterator: Any = None
        self._epoch_s: float | None = None
        """Length of an epoch, where one has been seen."""
        self._ending_s = 0.0
        """Spent until TensorFlow had let go of iterators at the end of their epochs."""
        self._rate = 0.0
        self._next_look_s = 0.0

    def prepare(self, on_progress: Callable[[], None] = lambda: None) -> None:
        """Fill the caches and run until steady. Raises CannotMeasure. `on_progress` is called once in a while."""
        deadline = time.monotonic() + self._plan.fill_s
        least_free = _least_free_bytes()
        on_progress()
        try:
            if not self._fits:
                raise CannotMeasure(f"the caches of the pipeline {self.name} do not fit")
            for cache in self._caches:
                self._fill(cache, deadline, least_free, on_progress)
        except CannotMeasure:
            if self._is_fill_needed:
                raise
            self._least_free = least_free
        start = time.monotonic()
        count = 0
        while (elapsed := time.monotonic() - start) < self._plan.warmup_s or count < 2:
            count += self._advance()
            if elapsed > 10 * self._plan.warmup_s and count < 2:
                raise CannotMeasure(f"the pipeline {self.name} gave {count} elements in {elapsed:.0f} s")
        self._rate = count / (time.monotonic() - start)
        self.rest()

    def turn(self) -> _Turn:
        """Run for one turn."""
        plan = self._plan
        if self._is_short:
            self._iterator = None
        else:
            self._drain()
        self._ending_s = 0.0
        count, start = 0, time.perf_counter()
        while True:
            count += self._advance()
            elapsed = time.perf_counter() - start - self._ending_s
            is_whole = self._iterator is None or not self._is_short
            if is_whole and elapsed >= plan.turn_s and (count >= TURN_ELEMENTS.value or elapsed >= 4 * plan.turn_s):
                break
        turn = _Turn(count, elapsed)
        self._rate = turn.rate
        self.rest()
        return turn

    @property
    def _is_short(self) -> bool:
        return self._epoch_s is not None and self._epoch_s <= SHORT_EPOCH_S.value

    def _advance(self) -> int:
        """Take one element, beginning a new epoch where one ended; returns how many were taken (0 at the end of an epoch)."""
        if self._iterator is None:
            self._iterator = iter(self._dataset)
            self._epoch_start, self._epoch_count = time.perf_counter(), 0
        try:
            next(self._iterator)
        except StopIteration:
            pass  # the exception's traceback holds the iterator, which shall not go before it is timed
        except Exception as error:
            from advisor.prove.trial.element_digests import one_line

            raise CannotMeasure(f"the pipeline {self.name} fails: {one_line(error)}") from error
        else:
            self._epoch_count += 1
            if self._least_free is not None:
                self._look_at_memory(self._least_free)
            return 1
        if not self._epoch_count:
            raise CannotMeasure(f"the pipeline {self.name} gives no elements")
        ended = time.perf_counter()
        self._epoch_s = ended - self._epoch_start
        self._iterator = None
        self._ending_s += time.perf_counter() - ended
        return 0

    def _look_at_memory(self, least_free: float) -> None:
        """Restart the epoch before a cache that cannot be filled uses memory that must stay free."""
        now = time.monotonic()
        if now < self._next_look_s:
            return
        self._next_look_s = now + LOOK_S.value
        if memory_bytes()[1] < least_free:
            self._iterator = None  # and what it had put into the cache goes with it
            if memory_bytes()[1] < least_free:
                raise CannotMeasure(f"the pipeline {self.name} takes more memory than there is")

    def _fill(self, cache: Any, deadline: float, least_free: float, on_progress: Callable[[], None]) -> None:  # noqa: ANN401
        """Read a cache to its end once; the cache belongs to the dataset object, so every iterator finds it filled."""
        if int(cache.cardinality()) == -1:
            raise CannotMeasure(
                f"a cache of the pipeline {self.name} stands behind an endless dataset and is never full"
            )
        for count, _ in enumerate(cache, 1):
            if count % 64 == 0:
                on_progress()
            if count % 64 == 0 and memory_bytes()[1] < least_free:
                raise CannotMeasure(
                    f"a cache of the pipeline {self.name} does not fit: after {count} elements memory runs out"
                )
            if time.monotonic() > deadline:
                size = int(cache.cardinality())
                of = f" of {size}" if size >= 0 else ""
                raise CannotMeasure(
                    f"a cache of the pipeline {self.name} was not full after {self._plan.fill_s:.0f} s "
                    f"({count}{of} elements), so the epochs that profit from it were not reached"
                )

    def _drain(self) -> None:
        """Drop what lies ready in buffers: until the rate is no longer far above the one known, 2 s at most."""
        start = time.perf_counter()
        for _ in range(10):
            count, slice_start = 0, time.perf_counter()
            while time.perf_counter() - slice_start < 0.2 or not count:
                count += self._advance()
            now = time.perf_counter()
            if count / (now - slice_start) <= 1.25 * self._rate or now - start > 2:
                return

    def rest(self) -> None:
        """Leave the processor to the other side: wait until this side's threads are quiet, or end them."""
        if self._iterator is None:
            return
        if not _wait_for_quiet(QUIET_S.value):
            self._iterator = None
            _wait_for_quiet(QUIET_S.value)

    def close(self) -> None:
        """Destroy the iterators and release all references."""
        self._iterator = self._dataset = None
        self._caches = []


def measure(
    before: Side, after: Side, plan: Plan, on_turn: Callable[[int, int], None] = lambda done, of: None
) -> Measurement:
    """Run pairs of turns of two prepared sides until the plan is fulfilled. Raises CannotMeasure."""
    pairs: list[tuple[_Turn, _Turn]] = []
    start = time.monotonic()
    speedup: Interval | None = None
    with _without_collector():
        while len(pairs) < plan.max_turns:
            spent_s = time.monotonic() - start
            if spent_s > plan.longest_s or (spent_s > plan.budget_s and len(pairs) >= plan.min_turns):
                break
            if len(pairs) % 2:
                late, early = after.turn(), before.turn()
            else:
                early, late = before.turn(), after.turn()
            pairs.append((early, late))
            on_turn(len(pairs), plan.max_turns)
            if len(pairs) >= plan.min_turns:
                speedup = median_interval([new.rate / old.rate for old, new in pairs], SEQUENTIAL_CONFIDENCE)
                if speedup is not None and _is_known(speedup, plan):
                    break
    if not pairs:
        raise CannotMeasure("there was no time left for a turn")
    verdict, note = judge(speedup)
    return Measurement(
        verdict,
        speedup,
        statistics.median(old.rate for old, _ in pairs),
        statistics.median(new.rate for _, new in pairs),
        len(pairs),
        note,
    )


def _is_known(speedup: Interval, plan: Plan) -> bool:
    """Whether the stopping rule holds."""
    reach = max(speedup.high - speedup.value, speedup.value - speedup.low)
    return reach <= max(plan.half_width * speedup.value, plan.gain_share * abs(speedup.value - 1))


@contextlib.contextmanager
def _without_collector() -> Iterator[None]:
    was_enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _wait_for_quiet(limit_s: float) -> bool:
    """Wait until the process uses less than a fifth of a core over 30 ms; False if it does not in time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        cpu, wall = time.process_time(), time.perf_counter()
        time.sleep(0.03)
        if time.process_time() - cpu < 0.2 * (time.perf_counter() - wall):
            return True
    return False


def _least_free_bytes() -> float:
    """What a cache whose size nobody could tell beforehand must leave free: of what is free now, the share that no change may
    take; of all, a tenth.
    """
    total, free = memory_bytes()
    return max(0.1 * total, (1 - MEMORY_SHARE.value) * free)
