"""Operational analysis of an executed pipeline: the cost of one element at its root, per iterator and resource.

In: an `Analysis` and one of its pipelines.  Out: `Demands`: a `ServiceDemand` for each iterator, the capacity of the consumer and
the machine, and the resulting `Limit`s, at present or after a change.

The laws are those of Denning and Buzen ("The operational analysis of queueing network models", 1978), which hold for measured
data with any distribution. An iterator's demand is its visit ratio times its time per visit. A step cannot be shorter than any
demand divided by the capacity that serves it: the threads of a stage, all cores, the GIL, the disk. Time in which a runnable
thread waits for a core is not a demand but a consequence of contention, and is excluded.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType

from advisor.host.calibration.prediction import FREE_CORES_SHARE, FULL_CORES_SHARE, OTHERS_KEEP
from advisor.model.catalog import base_type
from advisor.model.outlook import Limit, ServiceDemand
from advisor.model.pipeline import Analysis, Iterator, Pipeline
from advisor.predict.capacity import CoreUse, core_use, python_share

UNCHANGED: Mapping[str, float] = MappingProxyType({})
FRONT = 0
"""The stage of the consumer's own thread."""


@dataclass(frozen=True, slots=True)
class Demands:
    """The demands of a pipeline and its consumer, in nanoseconds per element at the root (per step)."""

    step_ns: float
    """Measured mean step time."""
    consumer_ns: float
    """The consumer's own time, without its wait for a core if that is known."""
    consumer_cpu_ns: float
    """The consumer's CPU time; for a consumer on an accelerator, the CPU time to drive it."""
    python_share: float
    """Share of the iterators' Python time that computes with the GIL."""
    core_share: float
    """Share of the time in which runnable threads had a core; 1 if no thread waited for a core."""
    disk_ns: float
    """Time in which the disk was busy; 0 if its speed is unknown."""
    sources: frozenset[str]
    """Ids of the iterators without inputs, which read the data."""
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
        others_keep: float = OTHERS_KEEP.value[1],
    ) -> tuple[Limit, ...]:
        """Return every limit of the step after a change, longest step first.

        Args:
            cost: Iterator id -> factor (0 to 1) for the time that others wait for it.
            work: Iterator id -> factor (0 to 1) for the work that remains.
            others_keep: Share of the cores used by other processes that they keep.
        """
        stages: dict[int, list[tuple[float, str]]] = {}
        for node in self.nodes:
            left = min(cost.get(node.iterator_id, 1.0), work.get(node.iterator_id, 1.0))
            stages.setdefault(node.stage, []).append((node.busy_ns / node.servers * left, node.iterator_id))
        limits = [Limit("consumer", self.consumer_ns + sum(ns for ns, _ in stages.pop(FRONT, ())))]
        limits += [Limit("node", sum(ns for ns, _ in parts), max(parts)[1]) for parts in stages.values()]
        if self.cores is not None:
            cpu_ns = self.consumer_cpu_ns + sum(node.cpu_ns * work.get(node.iterator_id, 1.0) for node in self.nodes)
            usable = max(self.cores.usable - others_keep * self.cores.others, min(self.cores.own, self.cores.usable))
            limits.append(Limit("cpu", cpu_ns / max(usable, 1e-9)))
        python_ns = sum(node.python_ns * work.get(node.iterator_id, 1.0) for node in self.nodes)
        if self.python_share:
            limits.append(Limit("gil", python_ns * self.python_share))
        if self.disk_ns:
            left = max((work.get(iterator_id, 1.0) for iterator_id in self.sources), default=1.0)
            limits.append(Limit("disk", self.disk_ns * left))
        return tuple(sorted(limits, key=lambda limit: -limit.step_ns))


def demands(analysis: Analysis, pipeline: Pipeline) -> Demands | None:
    """Compute the demands of a pipeline; None if no steps were measured."""
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
    is_on_device = has_consumer_elsewhere(analysis)
    consumer = 0.0 if is_on_device else own_share
    had = use.own if use is not None and analysis.usage is not None else sum(wanted.values()) + consumer
    # Threads worked for `asked` and had a core for `had`. If `had` is less, they waited, for a core or for something else. If
    # it is more, the rest is unrecorded overhead (scheduling, memory, other threads of the consumer), distributed in proportion
    # to work.
    asked = sum(wanted.values()) + consumer
    part = had / asked if asked > 0 else 1.0
    if is_on_device:  # the rest drives the device
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


def has_consumer_elsewhere(analysis: Analysis) -> bool:
    """Whether the consumer computes on an accelerator, or is a wait in place of one, so that it takes no core of the host."""
    is_imagined = analysis.recording is not None and analysis.recording.as_if_step_ns is not None
    return is_imagined or (analysis.host is not None and bool(analysis.host.accelerators))


def _contention(use: CoreUse) -> float:
    """Share of the threads' time without a core in which they waited for a core that this process itself used.

    This is not measured per thread. The share is reduced by the cores that other processes use.
    """
    used = use.own + use.others
    return crowding(use) * use.own / used if used > 0 else 0.0


def crowding(use: CoreUse) -> float:
    """Return which share of the time a thread that can run has to wait for a core, 0 to 1.

    With half of the cores idle, a core is always free; with none idle, there always is another thread that could use it. In
    between, linear growth is assumed.

    Args:
        use: The use of cores.
    """
    used = (use.own + use.others) / use.usable
    return min(1.0, max(0.0, (used - FREE_CORES_SHARE.value) / (FULL_CORES_SHARE.value - FREE_CORES_SHARE.value)))


def _share(pipeline: Pipeline, iterator: Iterator) -> float:
    """Busy time relative to the window, summed over threads."""
    return iterator.busy_ns / pipeline.span_ns


def _python_share_of(pipeline: Pipeline, iterator: Iterator) -> float:
    return min(iterator.python_ns, iterator.busy_ns) / pipeline.span_ns


def _computing_share(analysis: Analysis, pipeline: Pipeline) -> float:
    """1 if Python ops compute, 0 if they sleep."""
    return 1.0 if python_share(analysis, pipeline) > 0 else 0.0


def _disk_share(analysis: Analysis) -> float:
    """Share of the time in which the disk was busy for the process; 0 if unknown or if all reads hit the page cache."""
    usage, host = analysis.usage, analysis.host
    if usage is None or host is None or not usage.read_bytes or usage.wall_ns <= 0 or not host.disk_read_bytes_per_s:
        return 0.0
    return min(1.0, usage.read_bytes / (usage.wall_ns / 1e9) / host.disk_read_bytes_per_s)


def _stages(pipeline: Pipeline, cores: float) -> dict[str, tuple[int, float]]:
    """Iterator id -> (stage, number of threads of the stage).

    A prefetch has one thread, which does all the synchronous work upstream of it. A parallel map runs its function on as many
    threads as its parallelism (with AUTOTUNE, at least as many as there are cores) and fetches its input in a separate thread.
    The datasets of an interleave run on its threads. A function may use several threads for one element, so a stage has at
    least as many threads as were busy on average.
    """
    stage_of: dict[str, tuple[int, float]] = {}
    below: dict[str, tuple[int, float]] = {}
    number = FRONT
    for it in pipeline.iterators:  # parents before children
        if not it.is_async:
            stage_of[it.id] = below[it.id] = below.get(it.parent_id or "", (FRONT, 1.0))
            continue
        number += 2
        stage_of[it.id] = (number - 1, _threads(it, cores))
        below[it.id] = stage_of[it.id] if "Interleave" in it.name else (number, 1.0)
    busy: dict[int, float] = {}
    for it in pipeline.iterators:
        stage, servers = stage_of[it.id]
        busy[stage] = busy.get(stage, 0.0) + it.busy_ns / servers / pipeline.span_ns
    time = {FRONT: max(pipeline.wait_share, 1e-9)}  # the consumer uses the rest of its thread
    return {
        key: (stage, servers * max(1.0, busy[stage] / time.get(stage, 1.0)))
        for key, (stage, servers) in stage_of.items()
    }


def _threads(iterator: Iterator, cores: float) -> float:
    """Maximum number of threads that do an asynchronous iterator's own work in parallel."""
    if base_type(iterator.name) == "Prefetch":
        return 1.0
    if not iterator.parallelism or iterator.parallelism < 1:
        return math.inf  # unknown
    return max(float(iterator.parallelism), math.floor(cores) if iterator.is_autotuned else 1.0)
