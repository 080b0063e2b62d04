"""Operational analysis of an executed pipeline: what one element at its root costs, where, and what that keeps busy.

In: an `Analysis` and one of its pipelines.  Out: `Demands`: a `ServiceDemand` for each iterator, what the consumer and the
machine have, and the `Limit`s that follow, as they are or after a change.

The laws are those of Denning and Buzen ("The operational analysis of queueing network models", 1978), which hold for what
was measured whatever the distributions are: an iterator's demand is its visit ratio times its time per visit, and no step is
shorter than any demand over what serves it: the threads of a stage, all cores, Python's one lock, the disk. Time in which a
thread is runnable and has no core is nobody's demand, but what too few cores make of the others', and is taken out.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from advisor.model.catalog import base_type
from advisor.model.outlook import Limit, ServiceDemand
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.capacity import CoreUse, core_use, python_share

UNCHANGED: Mapping[str, float] = MappingProxyType({})
FRONT = 0
"""The stage of the consumer's own thread."""
_FREE, _FULL = 0.5, 0.95
"""Shares of the cores that are busy: up to the first nobody is taken to wait for one, from the second on everybody is."""


@dataclass(frozen=True, slots=True)
class Demands:
    """A pipeline and its consumer as a production line. Times in nanoseconds per element at the root (per step)."""

    step_ns: float
    """As measured, mean."""
    consumer_ns: float
    """The consumer's own time, without what it waits for a core where that is known."""
    consumer_cpu_ns: float
    """The consumer's CPU time; of one that computes on an accelerator, what driving that takes."""
    python_share: float
    """Of the iterators' Python time: the part that computes under the lock."""
    core_share: float
    """Share of the time in which threads that wanted a core had one; 1: nobody waited for a core."""
    disk_ns: float
    """Time in which the disk was busy for it; 0 where its speed is not known."""
    sources: frozenset[str]
    """Ids of the iterators at the bottom: what is not asked of them is not read."""
    cores: CoreUse | None
    nodes: tuple[ServiceDemand, ...]
    """In the order of `Pipeline.iterators`."""

    @property
    def cpu_ns(self) -> float:
        """CPU time of the iterators."""
        return sum(node.cpu_ns for node in self.nodes)

    def limits(
        self,
        cost: Mapping[str, float] = UNCHANGED,
        work: Mapping[str, float] = UNCHANGED,
        others_keep: float = 0.5,
    ) -> tuple[Limit, ...]:
        """Every limit of the step, the longest step first, after a change.

        `cost`: iterator id -> what its wait-causing time is multiplied by (0 to 1); `work`: the same for what still has to be
        done somewhere. `others_keep`: share of the cores that others use which they keep.
        """
        stages: dict[int, list[tuple[float, str]]] = {}
        for node in self.nodes:
            left = min(cost.get(node.iterator_id, 1.0), work.get(node.iterator_id, 1.0))
            stages.setdefault(node.stage, []).append((node.busy_ns / node.servers * left, node.iterator_id))
        found = [Limit("consumer", self.consumer_ns + sum(ns for ns, _ in stages.pop(FRONT, ())))]
        found += [Limit("node", sum(ns for ns, _ in parts), max(parts)[1]) for parts in stages.values()]
        if self.cores is not None:
            cpu_ns = self.consumer_cpu_ns + sum(node.cpu_ns * work.get(node.iterator_id, 1.0) for node in self.nodes)
            usable = max(self.cores.usable - others_keep * self.cores.others, min(self.cores.own, self.cores.usable))
            found.append(Limit("cpu", cpu_ns / max(usable, 1e-9)))
        python_ns = sum(node.python_ns * work.get(node.iterator_id, 1.0) for node in self.nodes)
        if self.python_share:
            found.append(Limit("gil", python_ns * self.python_share))
        if self.disk_ns:
            left = max((work.get(iterator_id, 1.0) for iterator_id in self.sources), default=1.0)
            found.append(Limit("disk", self.disk_ns * left))
        return tuple(sorted(found, key=lambda limit: -limit.step_ns))


def demands(analysis: Analysis, pipeline: Pipeline) -> Demands | None:
    """The demands of `pipeline`; None where no steps were measured."""
    if pipeline.span_ns <= 0 or not pipeline.iterators:
        return None
    step_ns = pipeline.step_ns or float(pipeline.span_ns)
    use = core_use(analysis, pipeline)
    stages = _stages(pipeline, use.usable if use is not None else 1.0)
    computing = _computing_share(analysis, pipeline)
    own_share = 1 - pipeline.wait_share
    busy = {it.id: _share(pipeline, it) for it in pipeline.iterators}
    sleeping = {it.id: _python_share_of(pipeline, it) * (1 - computing) for it in pipeline.iterators}
    wanted = {it.id: max(0.0, busy[it.id] - sleeping[it.id]) for it in pipeline.iterators}
    is_on_device = analysis.host is not None and bool(analysis.host.accelerators)
    consumer = 0.0 if is_on_device else own_share
    had = use.own if use is not None and analysis.usage is not None else sum(wanted.values()) + consumer
    # Threads were at work for `asked` and had a core for `had`. Where that is less, they waited, for a core or for others;
    # where it is more, the rest was used for them unseen (scheduling, memory, the consumer's other threads), by each as it works.
    asked = sum(wanted.values()) + consumer
    part = had / asked if asked > 0 else 1.0
    if is_on_device:  # the rest is what driving the device takes
        part = min(1.0, part)
    core_share = 1 - max(0.0, 1 - part) * (_contention(use) if use is not None else 0.0)
    nodes = tuple(
        ServiceDemand(
            it.id,
            (it.elements or 0) / pipeline.num_elements if pipeline.num_elements else 0.0,
            busy_ns=(sleeping[it.id] + wanted[it.id] * core_share) * step_ns,
            cpu_ns=wanted[it.id] * part * step_ns,
            python_ns=_python_share_of(pipeline, it) * step_ns,
            servers=stages[it.id][1],
            stage=stages[it.id][0],
        )
        for it in pipeline.iterators
    )
    return Demands(
        step_ns=step_ns,
        consumer_ns=own_share * step_ns * (core_share if consumer else 1.0),
        consumer_cpu_ns=max(0.0, had - sum(wanted.values()) * part) * step_ns,
        python_share=python_share(analysis, pipeline) and computing,
        core_share=core_share,
        disk_ns=_disk_share(analysis) * step_ns,
        sources=frozenset(it.id for it in pipeline.iterators) - {it.parent_id for it in pipeline.iterators},
        cores=use,
        nodes=nodes,
    )


def _contention(use: CoreUse) -> float:
    """Of the time in which threads at work had no core: the share in which they waited for one that this process itself used.

    Nobody measures that per thread. With half of the cores idle there is always one free; with none, there is nothing else to
    wait for. Between the two it is taken to grow evenly. What other processes take away they take from what is left, too.
    """
    used = use.own + use.others
    crowding = min(1.0, max(0.0, (used / use.usable - _FREE) / (_FULL - _FREE)))
    return crowding * use.own / used if used > 0 else 0.0


def _share(pipeline: Pipeline, iterator: Iterator) -> float:
    """Time at work over the time of the window, summed over threads."""
    return iterator.busy_ns / pipeline.span_ns


def _python_share_of(pipeline: Pipeline, iterator: Iterator) -> float:
    return min(iterator.python_ns, iterator.busy_ns) / pipeline.span_ns


def _computing_share(analysis: Analysis, pipeline: Pipeline) -> float:
    """Of the time inside Python ops: 1 where it computes, 0 where it sleeps."""
    return 1.0 if python_share(analysis, pipeline) > 0 else 0.0


def _disk_share(analysis: Analysis) -> float:
    """Share of the time in which the disk was busy with what the process read; 0: unknown, or all came from the page cache."""
    usage, host = analysis.usage, analysis.host
    if usage is None or host is None or not usage.read_bytes or usage.wall_ns <= 0 or not host.disk_read_bytes_per_s:
        return 0.0
    return min(1.0, usage.read_bytes / (usage.wall_ns / 1e9) / host.disk_read_bytes_per_s)


def _stages(pipeline: Pipeline, cores: float) -> dict[str, tuple[int, float]]:
    """Iterator id -> (stage, threads of it).

    A prefetch has one thread, which does all the synchronous work below it. A parallel map runs its function on as many
    threads as its parallelism says (as many as there are cores, where AUTOTUNE may still raise it) and fetches its input with
    one of its own. What an interleave opens runs on its threads. A function may use several threads for one element, so no
    stage has fewer threads than were seen busy at once.
    """
    found: dict[str, tuple[int, float]] = {}
    below: dict[str, tuple[int, float]] = {}
    number = FRONT
    for it in pipeline.iterators:  # parents before children
        if not it.is_async:
            found[it.id] = below[it.id] = below.get(it.parent_id or "", (FRONT, 1.0))
            continue
        number += 2
        found[it.id] = (number - 1, _threads(it, cores))
        below[it.id] = found[it.id] if "Interleave" in it.name else (number, 1.0)
    busy: dict[int, float] = {}
    for it in pipeline.iterators:
        stage, servers = found[it.id]
        busy[stage] = busy.get(stage, 0.0) + it.busy_ns / servers / pipeline.span_ns
    time = {FRONT: max(pipeline.wait_share, 1e-9)}  # the rest of the consumer's thread is the consumer's
    return {
        key: (stage, servers * max(1.0, busy[stage] / time.get(stage, 1.0))) for key, (stage, servers) in found.items()
    }


def _threads(iterator: Iterator, cores: float) -> float:
    """How many threads may do an asynchronous iterator's own work at once."""
    if base_type(iterator.name) == "Prefetch":
        return 1.0
    if not iterator.parallelism or iterator.parallelism < 1:
        return math.inf  # not told: no limit that could be relied on
    return max(float(iterator.parallelism), math.floor(cores) if iterator.is_autotuned else 1.0)
