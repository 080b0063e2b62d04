"""An event simulator of tf.data's threads on a machine with a given number of cores, whose truth is known.

In: the costs of a pipeline `source -> [interleave] -> [shuffle] -> map -> batch -> prefetch` and of its consumer.  Out: the
rate, the cores used, the times of the steps, and the timeline that TensorFlow's profiler would record.

It knows nothing of the predictor: threads are processes that compute on shared cores (SimPy), a parallel map starts calls into
free slots and emits in order, each slot of an interleave reads its own source, a prefetch fills a buffer. The rate follows from
what these do, not from a formula.
"""

from __future__ import annotations

import math
import random
from collections.abc import Generator, Iterator
from dataclasses import dataclass, field
from typing import Any

import simpy

from tests.graph.simulated import Profile
from tests.predict.simulated_cores import Cores

Process = Generator[simpy.Event, Any, None]

FIRST_CALLS = 16
"""Parallel calls with which a growing map starts, as measured with TensorFlow 2.21."""
FIRST_LOOK_US = 10_000.0
"""Time until AUTOTUNE's first look; each later one comes after twice the time (`model.cc`: `kOptimizationPeriodMinMs`)."""


@dataclass(frozen=True)
class Costs:
    """A pipeline and its machine; times in microseconds of one core."""

    cores: int
    source: float
    """To read an element, in the thread that asks for it, or in each slot of the interleave."""
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
    cycle: int = 0
    """Slots of an ordered parallel interleave with block_length 1, a thread and a source each; 0: one source, no interleave."""
    shuffle: int = 0
    """Elements that are read before the first one is emitted."""
    is_growing: bool = False
    """Whether the map starts with `FIRST_CALLS`. At a look that has seen the results of calls, AUTOTUNE climbs in its model of
    their costs, call by call, to the number that pays; here that is always `calls`. TensorFlow 2.21 did so in one look: with 64
    calls allowed, a map of calls that sleep for 100 ms made 16 at a time until the look at 150 ms, and 64 from then on."""
    pause_every: int = 0
    """Steps between two pauses of the consumer (a checkpoint); 0: none."""
    pause: float = 0.0
    """Length of a pause, beside the step in which it falls."""

    @property
    def in_flight(self) -> int:
        """Elements between the source and the consumer if all buffers are full."""
        return self.calls + (self.buffer + 1) * self.batch + 2 * self.cycle

    @property
    def warmup(self) -> int:
        """Batches until nothing is left of the start: what is in flight at first has left twice."""
        return max(10, math.ceil((2 * self.in_flight) / self.batch))

    @property
    def steady(self) -> int:
        """Batches that are enough for a mean: each slot makes several calls."""
        return max(30, math.ceil(6 * self.calls / self.batch))


@dataclass
class Outcome:
    """What the simulated run did."""

    step_us: float
    """Mean time per step after the warm-up."""
    wait_share: float
    busy_cores: float
    """After the warm-up."""
    wall_us: float
    profile: Profile = field(default_factory=Profile)


def simulate(costs: Costs, seed: int = 1) -> Outcome:
    """Run the pipeline until it is steady and for some batches more, and return the figures of these."""
    return Simulation(costs, seed).outcome()


class Simulation:
    """One run. Take either its outcome or its steps."""

    def __init__(self, costs: Costs, seed: int = 1) -> None:
        self.costs = costs
        self.grown_us = 0.0
        """When the calls grew; 0: not yet."""
        self.calls = min(costs.calls, FIRST_CALLS) if costs.is_growing else costs.calls
        self._env = simpy.Environment()
        self._cores = Cores(self._env, costs.cores)
        self._random = random.Random(seed)
        self._ready = simpy.Store(self._env, costs.buffer)
        self._results: dict[int, simpy.Event] = {}
        self._slots = [simpy.Store(self._env, 1) for _ in range(costs.cycle)]
        self._room: simpy.Event | None = None
        """Succeeds when a call may start; None if none waits for that."""
        self._taken = self._asked = 0
        """Elements: results taken, asked from the interleave."""
        self._unfilled = costs.shuffle
        self._pool: list[int] = []
        """Threads of the pool that are idle."""
        self._threads = 0
        self._steps: list[tuple[float, float, float]] = []
        """(asked, got, finished) of each step."""
        self._is_recorded = False
        """Whether the profiler runs: it records the events that begin while it does."""
        self._profile = Profile()
        self._declare()
        self._env.process(self._worker())
        if costs.calls:
            self._env.process(self._runner())
        for slot in range(costs.cycle):
            self._env.process(self._reader(slot))
        if costs.is_growing:
            self._env.process(self._tuner())
        self._env.process(self._consumer())

    def outcome(self) -> Outcome:
        """Run until the pipeline is steady and some batches more."""
        steps = self.steps()
        for _ in range(self.costs.warmup):
            next(steps)
        first, began, busy_us = len(self._steps), self._env.now, self._cores.busy_us
        self._is_recorded = True
        for _ in range(self.costs.steady):
            next(steps)
        kept = self._steps[first:]
        wall = self._env.now - began
        waits = sum(got - asked for asked, got, _ in kept)
        return Outcome(wall / len(kept), waits / wall, (self._cores.busy_us - busy_us) / wall, wall, self._profile)

    def steps(self) -> Iterator[float]:
        """Run for ever; yield the end of each step in microseconds since the start."""
        while True:
            known = len(self._steps)
            while len(self._steps) == known:
                self._env.step()
            yield self._steps[-1][2]

    def _declare(self) -> None:
        profile, name, costs = self._profile, "Iterator::Root", self.costs

        def below(id: int, type: str, parent: int, dataset: str, **parameters: int) -> int:
            nonlocal name
            name += f"::{type}"
            return profile.iterator(id, name, parent, dataset, **parameters)

        self._root = profile.iterator(1, name, name="c3")
        self._prefetch = below(2, "Prefetch", self._root, "c3", buffer_limit=costs.buffer)
        self._batch = below(3, "BatchV2", self._prefetch, "c2")
        parallelism = {"parallelism": costs.calls} if costs.calls else {}
        last = self._map = below(4, "ParallelMapV2" if costs.calls else "Map", self._batch, "c1", **parallelism)
        if costs.shuffle:
            last = self._shuffle = below(5, "Shuffle", last, "c5")
        if costs.cycle:
            last = self._interleave = below(6, "ParallelInterleaveV4", last, "c6", parallelism=costs.cycle)
        self._sources = [
            profile.iterator(10 + slot, f"{name}{f'[{slot}]' if costs.cycle else ''}::Range", last, "c0")
            for slot in range(max(1, costs.cycle))
        ]

    # -- the threads

    def _consumer(self) -> Process:
        while True:
            asked, seen = self._env.now, self._is_recorded
            number = yield self._ready.get()
            yield self._env.timeout(1)
            got = self._env.now
            if seen:
                self._call("python", self._root, asked)
                self._call("python", self._prefetch, asked)
                self._profile.consume("python", "Prefetch", number, round(got))
            is_pause = (
                self.costs.pause_every and len(self._steps) % self.costs.pause_every == self.costs.pause_every - 1
            )
            yield self._env.timeout(self.costs.step + (self.costs.pause if is_pause else 0.0))
            self._steps.append((asked, got, self._env.now))

    def _worker(self) -> Process:
        """The thread of the prefetch: it makes one batch after the other, one more than the buffer holds."""
        number = 0
        while True:
            began, seen = self._env.now, self._is_recorded
            for _ in range(self.costs.batch):
                yield from self._take() if self.costs.calls else self._compute()
                yield self._cores.compute(self.costs.copy)
            if seen:
                self._profile.produce(
                    "worker", "Prefetch", number, round(began), round(self._env.now)
                )  # around the call
                self._call("worker", self._batch, began)
            yield self._ready.put(number)
            number += 1

    def _compute(self) -> Process:
        """An element of a sequential map: input and function one after the other."""
        began, seen = self._env.now, self._is_recorded
        yield from self._input("worker")
        called = self._env.now
        self._taken += 1
        step = self._taken
        yield self._function(step)
        if seen:
            self._profile.function("worker", step, round(called), round(self._env.now))
            self._call("worker", self._map, began)

    def _take(self) -> Process:
        """An element of a parallel map: wait for the next one in order."""
        began, seen, number = self._env.now, self._is_recorded, self._taken
        yield self._results.setdefault(number, self._env.event())
        yield self._env.timeout(1)
        self._taken += 1
        del self._results[number]
        self._make_room()
        if seen:
            self._call("worker", self._map, began)
            self._profile.consume("worker", "ParallelMap", number, round(self._env.now))

    def _runner(self) -> Process:
        """The thread of the parallel map: it fetches input into free slots and starts their calls."""
        for number in range(10**9):
            while number - self._taken >= self.calls:  # a slot is free again once its result was taken
                self._room = self._env.event()
                yield self._room
            began, seen = self._env.now, self._is_recorded
            yield from self._input("runner")
            called = self._env.now
            yield self._cores.compute(self.costs.hand_over)
            if seen:
                self._profile.function("runner", number + 1, round(called), round(self._env.now))
                self._profile.produce("runner", "ParallelMap", number, round(began), round(self._env.now))
            self._start(number)

    def _start(self, number: int) -> None:
        """Start a call; its result is there when it ends."""
        done = self._results.setdefault(number, self._env.event())
        call = self._function(number + 1)

        def ended(_: simpy.Event) -> None:
            done.succeed()

        assert call.callbacks is not None
        call.callbacks.append(ended)

    def _input(self, thread: str) -> Process:
        """The map's next input, in this thread. The first one waits until the shuffle buffer is full."""
        began, seen = self._env.now, self._is_recorded
        for _ in range(1 + self._unfilled):
            yield from self._interleaved(thread) if self.costs.cycle else self._read(thread, 0)
        self._unfilled = 0
        if seen and self.costs.shuffle:
            self._call(thread, self._shuffle, began)

    def _interleaved(self, thread: str) -> Process:
        """The next element of the interleave: one of each slot in turn."""
        began, seen = self._env.now, self._is_recorded
        slot = self._asked % self.costs.cycle
        self._asked += 1
        element = yield self._slots[slot].get()
        yield self._cores.compute(1)
        if seen:
            self._call(thread, self._interleave, began)
            self._profile.consume(thread, "ParallelInterleave", element, round(self._env.now))

    def _reader(self, slot: int) -> Process:
        """The thread of a slot of the interleave: it reads one element ahead."""
        for number in range(1, 10**9):
            began, seen, element = self._env.now, self._is_recorded, (slot << 32) + number
            yield from self._read(f"slot{slot}", slot)
            yield self._env.timeout(1)  # the event of the worker is around the one of its source
            if seen:
                self._profile.produce(f"slot{slot}", "ParallelInterleave", element, round(began), round(self._env.now))
            yield self._slots[slot].put(element)

    def _read(self, thread: str, source: int) -> Process:
        began, seen = self._env.now, self._is_recorded
        yield self._cores.compute(self.costs.source)
        if seen:
            self._call(thread, self._sources[source], began)

    def _function(self, step: int) -> simpy.Event:
        """A call of the map's function on a thread of the pool."""
        thread = self._pool.pop() if self._pool else self._new_thread()
        began, seen = self._env.now, self._is_recorded
        mean, deviation = self.costs.function, self.costs.variation * self.costs.function
        call = self._cores.compute(max(0.1 * mean, self._random.gauss(mean, deviation)))

        def ended(_: simpy.Event) -> None:
            if seen:
                self._profile.executor(f"pool{thread}", step, round(began), round(self._env.now), op="Work")
            self._pool.append(thread)

        assert call.callbacks is not None
        call.callbacks.append(ended)
        return call

    def _tuner(self) -> Process:
        """AUTOTUNE: it looks on while a shuffle buffer is filled, so that the first look that sees calls may come late."""
        wait = FIRST_LOOK_US
        while not self._taken:
            yield self._env.timeout(wait)
            wait *= 2
        if self.calls < self.costs.calls:
            self.calls, self.grown_us = self.costs.calls, self._env.now
            self._make_room()

    def _make_room(self) -> None:
        room, self._room = self._room, None
        if room is not None:
            room.succeed()

    def _call(self, thread: str, iterator: int, began: float) -> None:
        self._profile.call(thread, iterator, round(began), round(self._env.now))

    def _new_thread(self) -> int:
        self._threads += 1
        return self._threads
