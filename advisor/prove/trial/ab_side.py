"""One pipeline of an A/B benchmark: how it is brought into its steady state, and what a turn of it is.

In: a dataset and a `Plan`.  Out: `Turn`s: numbers of elements and the time they took.

* Measurement starts in the steady state: caches are filled, then the side runs until AUTOTUNE has settled. Each turn first drops
  the elements already in buffers.
* Before the other side's turn, the iterator ends with its epoch, or it idles until its buffers are full and its threads are
  quiet; if they do not become quiet, it is destroyed.
* A turn is a whole number of epochs if an epoch is short, so that the start of an epoch (filling a shuffle buffer) counts as
  often as in training; otherwise it is part of an epoch. The time TensorFlow takes to destroy an iterator at the end of an epoch
  is excluded: it is anything between zero and the time to AUTOTUNE's next update, independently of the pipeline
  (docs/measuring.md).
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from advisor.host.calibration.prediction import MEMORY_SHARE
from advisor.host.calibration.proof import (
    AB_BUDGET_S,
    AB_HALF_WIDTH,
    AB_WARMUP_S,
    CLEAR_S,
    CLEAR_SHARE,
    DRAIN_RATE_RATIO,
    DRAIN_S,
    DRAIN_SLICE_S,
    FILL_S,
    GAIN_SHARE,
    LOOK_S,
    MAX_TURNS,
    QUIET_CORE_SHARE,
    QUIET_LOOK_S,
    QUIET_S,
    RESERVED_MEMORY_SHARE,
    SHORT_EPOCH_S,
    TURN_ELEMENTS,
    TURN_S,
)
from advisor.host.machine import memory_bytes


@dataclass(frozen=True, slots=True)
class Plan:
    """The stopping rule and the durations of a measurement, fixed before it starts. Durations are in seconds."""

    min_turns: int = 6
    """Minimum number of pairs of turns; fewer have no 95 % interval."""
    max_turns: int = MAX_TURNS.value
    half_width: float = AB_HALF_WIDTH.value
    """The measurement stops once the interval extends no further from the median than this share of it ..."""
    gain_share: float = GAIN_SHARE.value
    """... or no further than this share of the gain (or loss) itself: for a speedup of 2.0, 1.8 to 2.2 is precise enough."""
    clear_s: float = CLEAR_S.value
    """After this time, the measurement also stops ..."""
    clear_share: float = CLEAR_SHARE.value
    """... once the whole interval lies beyond this share of the gain or loss: for a speedup of 2.0, above 1.5."""
    turn_s: float = TURN_S.value
    """Minimum length of a turn."""
    warmup_s: float = AB_WARMUP_S.value
    fill_s: float = FILL_S.value
    budget_s: float = AB_BUDGET_S.value
    """No new pair begins after this time once there are `min_turns` pairs."""
    longest_s: float = AB_BUDGET_S.value
    """No new pair begins after this time, however few there are."""


class CannotMeasure(Exception):
    """One side never reaches a steady state, or fails. The message names the side and the reason, without a full stop."""


@dataclass(frozen=True, slots=True)
class Turn:
    """One turn of a side."""

    elements: int
    seconds: float

    @property
    def rate(self) -> float:
        """Elements per second."""
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
        step_s: float = 0.0,
    ) -> None:
        """Create a side.

        Args:
            name: For messages, as in "the pipeline {name}".
            dataset: The dataset to iterate over.
            caches: The dataset objects of its caches, inputs first; filling them there fills them for every iterator.
            plan: Durations of the warm-up and of the turns.
            is_fill_needed: Whether a cache that cannot be filled is an error. If not (the caches are the script's own), the first
                epoch is measured, because training never gets further either; if memory runs out, the epoch is restarted.
            fits: False if the caches are known not to fit into memory; no time is spent on filling them.
            step_s: Wait after each element, which takes no core, in place of a training step.
        """
        self._step_s = step_s
        self.name, self._dataset, self._caches, self._plan = name, dataset, caches, plan
        self._is_fill_needed, self._fits = is_fill_needed, fits
        self._least_free: float | None = None
        """Bytes of memory that must stay free while a cache grows; None if no cache is growing."""
        self._iterator: Any = None
        self._epoch_s: float | None = None
        """Length of an epoch; None until one has ended."""
        self._ending_s = 0.0
        """Time TensorFlow took in this turn to destroy iterators at the end of their epochs."""
        self._rate = 0.0
        self._next_memory_check_s = 0.0

    def prepare(self, on_progress: Callable[[], None] = lambda: None) -> None:
        """Fill the caches and run until the pipeline is in its steady state.

        Args:
            on_progress: Called now and then.

        Raises:
            CannotMeasure: A required cache cannot be filled, or the pipeline fails or emits too few elements.
        """
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
                raise CannotMeasure(f"the pipeline {self.name} produced {count} elements in {elapsed:.0f} s")
        self._rate = count / (time.monotonic() - start)
        self.rest()

    def turn(self) -> Turn:
        """Run for one turn and return the number of elements and the time they took.

        Raises:
            CannotMeasure: The pipeline fails, or it takes too much memory.
        """
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
        turn = Turn(count, elapsed)
        self._rate = turn.rate
        self.rest()
        return turn

    @property
    def _is_short(self) -> bool:
        return self._epoch_s is not None and self._epoch_s <= SHORT_EPOCH_S.value

    def _advance(self) -> int:
        """Take one element, starting a new epoch if needed. Return the number taken: 1, or 0 at the end of an epoch."""
        if self._iterator is None:
            self._iterator = iter(self._dataset)
            self._epoch_start, self._epoch_count = time.perf_counter(), 0
        try:
            next(self._iterator)
        except StopIteration:
            pass  # the exception's traceback references the iterator, which must not be destroyed before that is timed
        except Exception as error:
            from advisor.prove.trial.elements.streams import tensorflow_message

            raise CannotMeasure(f"the pipeline {self.name} fails: {tensorflow_message(error)}") from error
        else:
            self._epoch_count += 1
            if self._step_s:
                time.sleep(self._step_s)
            if self._least_free is not None:
                self._check_memory(self._least_free)
            return 1
        if not self._epoch_count:
            raise CannotMeasure(f"the pipeline {self.name} produces no elements")
        ended = time.perf_counter()
        self._epoch_s = ended - self._epoch_start
        self._iterator = None
        self._ending_s += time.perf_counter() - ended
        return 0

    def _check_memory(self, least_free: float) -> None:
        """Restart the epoch before a cache that cannot be filled uses memory that must stay free."""
        now = time.monotonic()
        if now < self._next_memory_check_s:
            return
        self._next_memory_check_s = now + LOOK_S.value
        if memory_bytes()[1] < least_free:
            self._iterator = None  # an incomplete cache is freed together with its iterator
            if memory_bytes()[1] < least_free:
                raise CannotMeasure(f"the pipeline {self.name} takes more memory than there is")

    def _fill(self, cache: Any, deadline: float, least_free: float, on_progress: Callable[[], None]) -> None:  # noqa: ANN401
        """Read a cache to its end once. The cache belongs to the dataset object, so it is filled for every later iterator."""
        if int(cache.cardinality()) == -1:
            raise CannotMeasure(f"a cache of the pipeline {self.name} follows an endless dataset and is never full")
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
        """Drop the buffered elements: run until the rate is no longer far above the known one, for `DRAIN_S` at most."""
        start = time.perf_counter()
        for _ in range(10):
            count, slice_start = 0, time.perf_counter()
            while time.perf_counter() - slice_start < DRAIN_SLICE_S.value or not count:
                count += self._advance()
            now = time.perf_counter()
            if count / (now - slice_start) <= DRAIN_RATE_RATIO.value * self._rate or now - start > DRAIN_S.value:
                return

    def rest(self) -> None:
        """Wait until this side's threads are quiet, so that the other side can run; if they stay busy, destroy the iterator."""
        if self._iterator is None:
            return
        if not _wait_for_quiet(QUIET_S.value):
            self._iterator = None
            _wait_for_quiet(QUIET_S.value)

    def close(self) -> None:
        """Destroy the iterators and release all references."""
        self._iterator = self._dataset = None
        self._caches = []


def _wait_for_quiet(limit_s: float) -> bool:
    """Wait until the process uses less than `QUIET_CORE_SHARE` of a core; False if it does not in time."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        cpu, wall = time.process_time(), time.perf_counter()
        time.sleep(QUIET_LOOK_S.value)
        if time.process_time() - cpu < QUIET_CORE_SHARE.value * (time.perf_counter() - wall):
            return True
    return False


def _least_free_bytes() -> float:
    """Memory that must stay free while a cache of unknown size is filled.

    A change may take at most MEMORY_SHARE of the memory that is free now, and RESERVED_MEMORY_SHARE of all memory must stay free
    in any case.
    """
    total, free = memory_bytes()
    return max(RESERVED_MEMORY_SHARE.value * total, (1 - MEMORY_SHARE.value) * free)
