"""An event simulator of tf.data's threads on a machine with a given number of cores, whose truth is known.

In: the costs of a pipeline `source -> map -> batch -> prefetch` and of its consumer.  Out: the rate, the cores used, and the
timeline that TensorFlow's profiler would record.

It knows nothing of the predictor: threads are processes that queue for cores (SimPy), a parallel map starts calls into free slots
and emits in order, a prefetch fills a buffer. The rate follows from what these do, not from a formula. Threads share cores in
slices, as under an operating system without priorities.
"""

from __future__ import annotations

import random
from collections.abc import Generator
from dataclasses import dataclass, field
from typing import Any

import simpy

from tests.graph.simulated import Profile

Process = Generator[simpy.Event, Any, None]


@dataclass(frozen=True)
class Costs:
    """A pipeline and its machine; times in microseconds of one core."""

    cores: int
    source: float
    """To read an element, in the thread that asks for it."""
    function: float
    """Of a call of the map's function; the calls vary by `variation`."""
    calls: int
    """Parallel calls of the map; 0: it is sequential."""
    batch: int = 8
    copy: float = 5.0
    """To copy an element into its batch."""
    hand_over: float = 20.0
    """To hand an element of a parallel map to a thread, in the thread that does so: about what it costs on real machines."""
    buffer: int = 4
    """Of the prefetch."""
    step: float = 100.0
    """The consumer's own time per batch, on a device: it takes no core."""
    variation: float = 0.2
    """Standard deviation of a call's time, relative to its mean."""


@dataclass
class Outcome:
    """What the simulated run did."""

    step_us: float
    """Mean time per step after the warm-up."""
    wait_share: float
    busy_cores: float
    wall_us: float
    profile: Profile = field(default_factory=Profile)


def simulate(costs: Costs, batches: int = 40, warmup: int = 10, seed: int = 1) -> Outcome:
    """Run the pipeline for some batches and return its figures, without those of the warm-up."""
    return _Simulation(costs, batches, warmup, seed).run()


class _Simulation:
    """One run."""

    slice_us = 500.0
    """Time that a thread keeps a core."""

    def __init__(self, costs: Costs, batches: int, warmup: int, seed: int) -> None:
        self.costs, self.batches, self.warmup = costs, batches, warmup
        self.env = simpy.Environment()
        self.cores = simpy.Resource(self.env, costs.cores)
        self.random = random.Random(seed)
        self.busy_us = 0.0
        self.buffer = simpy.Store(self.env, costs.buffer)
        self.slots = simpy.Resource(self.env, max(1, costs.calls))
        self.results: dict[int, simpy.Event] = {}
        self.held: dict[int, Any] = {}
        """Element -> its slot, which is free again once the result was taken."""
        self.pool: list[int] = []
        """Threads of the pool that are idle."""
        self.threads = 0
        self.taken = 0
        self.steps: list[tuple[float, float, float]] = []
        """(asked, got, finished) of each step."""
        self.profile = Profile()
        self._declare()

    def _declare(self) -> None:
        profile, name = self.profile, "ParallelMapV2" if self.costs.calls else "Map"
        self.root = profile.iterator(1, "Iterator::Root", name="c3")
        above = "Iterator::Root::Prefetch"
        self.prefetch = profile.iterator(2, above, self.root, "c3", buffer_limit=self.costs.buffer)
        self.batch = profile.iterator(3, f"{above}::BatchV2", self.prefetch, "c2")
        parallelism = {"parallelism": self.costs.calls} if self.costs.calls else {}
        self.map = profile.iterator(4, f"{above}::BatchV2::{name}", self.batch, "c1", **parallelism)
        self.source = profile.iterator(5, f"{above}::BatchV2::{name}::Range", self.map, "c0")

    def run(self) -> Outcome:
        self.env.process(self._worker())
        if self.costs.calls:
            self.env.process(self._runner())
        self.env.run(until=self.env.process(self._consumer()))
        kept = self.steps[self.warmup :]
        wall = kept[-1][2] - kept[0][0]
        waits = sum(got - asked for asked, got, _ in kept)
        return Outcome(wall / len(kept), waits / wall, self.busy_us / self.env.now, wall, self._window(kept[0][0]))

    def _window(self, start_us: float) -> Profile:
        """The profile from an instant on: the profiler records the events that begin while it runs."""
        seen = Profile(dict(self.profile.iterators))
        for name, rows in self.profile.threads.items():
            kept = [row for row in rows if row[0] >= start_us * 1_000]
            if kept:
                seen.threads[name] = kept
        return seen

    # -- the threads

    def _consumer(self) -> Process:
        for _ in range(self.batches):
            asked = self.env.now
            number = yield self.buffer.get()
            yield self.env.timeout(1)
            got = self.env.now
            self.profile.call("python", self.root, round(asked), round(got))
            self.profile.call("python", self.prefetch, round(asked), round(got))
            self.profile.consume("python", "Prefetch", number, round(got))
            yield self.env.timeout(self.costs.step)
            self.steps.append((asked, got, self.env.now))

    def _worker(self) -> Process:
        """The thread of the prefetch: it makes one batch after the other, one more than the buffer holds."""
        number = 0
        while True:
            began = self.env.now
            for _ in range(self.costs.batch):
                yield self.env.process(self._take() if self.costs.calls else self._compute())
                yield self.env.process(self._work(self.costs.copy))
            self.profile.produce("worker", "Prefetch", number, round(began), round(self.env.now))  # around the call
            self.profile.call("worker", self.batch, round(began), round(self.env.now))
            yield self.buffer.put(number)
            number += 1

    def _compute(self) -> Process:
        """An element of a sequential map: source and function one after the other."""
        began = self.env.now
        yield self.env.process(self._work(self.costs.source))
        self.profile.call("worker", self.source, round(began), round(self.env.now))
        called, step = self.env.now, self.taken + 1
        yield self.env.process(self._function(step))
        self.profile.function("worker", step, round(called), round(self.env.now))
        self.profile.call("worker", self.map, round(began), round(self.env.now))
        self.taken += 1

    def _take(self) -> Process:
        """An element of a parallel map: wait for the next one in order."""
        began, number = self.env.now, self.taken
        yield self.results.setdefault(number, self.env.event())
        yield self.env.timeout(1)
        self.taken += 1
        self.slots.release(self.held.pop(number))
        del self.results[number]
        self.profile.call("worker", self.map, round(began), round(self.env.now))
        self.profile.consume("worker", "ParallelMap", number, round(self.env.now))

    def _runner(self) -> Process:
        """The thread of the parallel map: it fetches input into free slots and starts their calls."""
        number = 0
        while True:
            slot = self.slots.request()
            yield slot
            began = self.env.now
            yield self.env.process(self._work(self.costs.source))
            self.profile.call("runner", self.source, round(began), round(self.env.now))
            called = self.env.now
            yield self.env.process(self._work(self.costs.hand_over))
            self.profile.function("runner", number + 1, round(called), round(self.env.now))
            self.profile.produce("runner", "ParallelMap", number, round(began), round(self.env.now))
            self.held[number] = slot
            self.env.process(self._call(number))
            number += 1

    def _call(self, number: int) -> Process:
        yield self.env.process(self._function(number + 1))
        self.results.setdefault(number, self.env.event()).succeed()

    def _function(self, step: int) -> Process:
        """A call of the map's function on a thread of the pool."""
        thread = self.pool.pop() if self.pool else self._new_thread()
        began = self.env.now
        mean, deviation = self.costs.function, self.costs.variation * self.costs.function
        yield self.env.process(self._work(max(0.1 * mean, self.random.gauss(mean, deviation))))
        self.profile.executor(f"pool{thread}", step, round(began), round(self.env.now), op="Work")
        self.pool.append(thread)

    def _new_thread(self) -> int:
        self.threads += 1
        return self.threads

    def _work(self, microseconds: float) -> Process:
        """Compute on a core, in slices between which others get it."""
        left = microseconds
        while left > 0:
            part = min(left, self.slice_us)
            with self.cores.request() as core:
                yield core
                yield self.env.timeout(part)
            self.busy_us += part
            left -= part
