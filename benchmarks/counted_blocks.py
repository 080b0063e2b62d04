"""Switches the counters on and off while a script trains, for `watch_overhead.py`: short blocks of steps with and without.

In: a call of `Blocks.step` per training step; `PAIRS`, `PAIR_S` and `RESULT` in the environment.  Out: a JSON file.

A block has a fixed number of steps, about a tenth of a second. In each group of four (without, with, with, without), a steady
drift of the step time cancels. A switch replaces the attributes that `advisor.install` replaces, which takes less than 0.1 ms.
The step after a switch is left out, as it is partly of one kind and partly of the other. The sampling thread takes its samples in
the blocks with counters, one per second of them, as often as in a run that is watched all the time.
"""

from __future__ import annotations

import functools
import json
import os
import threading
import time
from collections.abc import Callable, Generator, Iterator
from pathlib import Path
from typing import Any

import advisor
from advisor.capture.in_process import hooks
from advisor.capture.instrument.patches import _MISSING
from advisor.host.calibration.window import SETTLE_S
from advisor.workflows.live_watch import INTERVAL_S

BLOCK_S = 0.1
MIN_STEPS = 3
"""Least steps of a block."""
DIRECT_S = 5.0
"""Length of the part in which the time inside the hooks is measured, at the end."""
PER_STEP = {"__next__", "get_next", "get_next_as_optional", "__call__", "on_train_batch_begin", "on_train_batch_end"}
"""The replaced functions that a step calls."""


class Blocks:
    """The plan of one run."""

    def __init__(self) -> None:
        """Install the hooks. Call it before TensorFlow makes datasets."""
        advisor.install()
        self._watch = advisor.watch(sinks=[f"jsonl:{os.environ['SAMPLES']}"], quiet=True)
        self._plan = self._steps_of_plan()
        self._left = 1
        self._is_on = True
        self._turn = SamplerTurn()

    def step(self) -> bool:
        """Note a step; return whether the training goes on."""
        self._left -= 1
        if self._left:
            return True
        self._left = next(self._plan, 0)
        return self._left > 0

    def _steps_of_plan(self) -> Iterator[int]:
        """Yield the number of steps until the next thing to do."""
        yield 3
        self._watch.start()
        live = hooks().live
        assert live is not None, self._watch.problem
        live._counters._stop = self._turn  # looked up before each wait
        yield from _steps_during(max(SETTLE_S.value, 2 * INTERVAL_S))
        step_s = yield from _step_length()
        steps = max(MIN_STEPS, round(BLOCK_S / step_s))
        self._own_ns_before, self._counted_ns = self._run().own_ns, 0
        pairs = []
        for _ in range(int(os.environ["PAIRS"])):
            pair = yield from self._pair(steps)
            pairs.append(pair)
        self._switch(True)
        self._turn.give()  # what the last sample cost is known at the next one
        yield from _steps_during(0.2)
        own_ns = self._run().own_ns - self._own_ns_before
        samples = self._turn.given
        timer = HookTimer()
        yield 1
        direct = yield from timer.measure()
        self._watch.finish()
        result = {"steps_per_block": steps, "pairs": pairs, "samples": samples, "direct": direct}
        result["sampler_share"] = own_ns / self._counted_ns
        Path(os.environ["RESULT"]).write_text(json.dumps(result))

    def _pair(self, steps: int) -> Generator[int, None, dict[int, list[int]]]:
        """Return {kind: (steps, their time, their processor time)}; times in ns, kind 0 without the counters and 1 with them."""
        sums = {0: [0, 0, 0], 1: [0, 0, 0]}
        end = time.monotonic() + float(os.environ["PAIR_S"])
        while time.monotonic() < end:
            for kind in (0, 1, 1, 0):
                if bool(kind) != self._is_on:
                    self._switch(bool(kind))
                    yield 1
                if kind and self._counted_ns >= (self._turn.given + 1) * INTERVAL_S * 1e9:
                    self._turn.give()
                cpu_ns, begin_ns = time.process_time_ns(), time.perf_counter_ns()
                yield steps
                took_ns = time.perf_counter_ns() - begin_ns
                measured = (steps, took_ns, time.process_time_ns() - cpu_ns)
                sums[kind] = [a + b for a, b in zip(sums[kind], measured, strict=True)]
                self._counted_ns += took_ns * kind
        return sums

    def _switch(self, is_on: bool) -> None:
        if is_on == self._is_on:
            return
        self._is_on = is_on
        for owner, name, before, replacement in hooks()._patches._made:
            value = replacement if is_on else before
            if value is _MISSING:  # the class had no such attribute itself
                delattr(owner, name)
            else:
                setattr(owner, name, value)
        for consumer in hooks().consumers.all():
            consumer.forget()  # the time without counters is not a step

    def _run(self) -> Any:
        assert self._watch.live is not None
        return self._watch.live


class SamplerTurn(threading.Event):
    """Replaces the event on which the sampling thread waits: it takes a sample when `give` is called."""

    def __init__(self) -> None:
        super().__init__()
        self._turns = threading.Semaphore(0)
        self.given = 0
        """Number of samples asked for."""

    def give(self) -> None:
        """Let the thread take one sample."""
        self.given += 1
        self._turns.release()

    def set(self) -> None:
        """End the thread."""
        super().set()
        self._turns.release()

    def wait(self, timeout: float | None = None) -> bool:
        """Wait for a turn, however long `timeout` is; return whether the thread is to end."""
        self._turns.acquire()
        return self.is_set()


class HookTimer:
    """Measures the time that the training's thread spends in the hooks, without TensorFlow's functions inside them.

    One clock runs from the call of a hook to its call of the original function, and from the latter's return to the hook's own.
    The two readings of the clock are included, so the result is slightly too high.
    """

    def __init__(self) -> None:
        """Put one layer around each hook, and one around the function that it calls. The watch goes on."""
        self._ns = self._poll_ns = 0
        timed = set()
        for owner, name, _, hook in hooks()._patches._made:
            if name in PER_STEP:
                cells = dict(zip(hook.__code__.co_freevars, hook.__closure__, strict=True))
                if "original" not in cells:  # a hook of something else, which no step calls
                    continue
                cells["original"].cell_contents = self._layer(cells["original"].cell_contents, sign=-1)
                setattr(owner, name, self._layer(hook, sign=1))
                timed.add(name)
        if not {"__next__", "on_train_batch_end"} <= timed:  # else the time of a renamed hook would be 0
            raise SystemExit(f"Only {', '.join(sorted(timed)) or 'no hooks'} can be timed.")
        watchdog = hooks().watchdog
        assert watchdog is not None
        watchdog._poll = self._timed_poll(watchdog._poll)

    def _layer(self, function: Callable[..., Any], sign: int) -> Callable[..., Any]:
        """Start the clock around a hook (sign 1), and stop it around the function that the hook calls (sign -1)."""
        clock = time.perf_counter_ns

        @functools.wraps(function)
        def layer(*args: Any, **kwargs: Any) -> Any:
            self._ns -= sign * clock()
            try:
                return function(*args, **kwargs)
            finally:
                self._ns += sign * clock()

        return layer

    def _timed_poll(self, poll: Callable[[int], None]) -> Callable[[int], None]:
        def timed(now_ns: int) -> None:
            begin_ns = time.thread_time_ns()
            poll(now_ns)
            self._poll_ns += time.thread_time_ns() - begin_ns

        return timed

    def measure(self) -> Generator[int, None, dict[str, int]]:
        """Return the time in the hooks and in the watchdog's checks, the time that passed, and the steps in it."""
        self._ns = self._poll_ns = steps = 0
        begin_ns = time.perf_counter_ns()
        while time.perf_counter_ns() - begin_ns < DIRECT_S * 1e9:
            yield 1
            steps += 1
        passed_ns = time.perf_counter_ns() - begin_ns
        return {"hooks_ns": self._ns, "poll_ns": self._poll_ns, "passed_ns": passed_ns, "steps": steps}


def _steps_during(seconds: float) -> Iterator[int]:
    end = time.monotonic() + seconds
    while time.monotonic() < end:
        yield 1


def _step_length() -> Generator[int, None, float]:
    """Return the mean length of the steps of half a second, in s."""
    begin, steps = time.monotonic(), 0
    while time.monotonic() - begin < 0.5:
        yield 1
        steps += 1
    return (time.monotonic() - begin) / steps
