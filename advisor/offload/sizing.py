"""How many workers a training needs, and what limits it beyond them.

In: an `Analysis`, the `Movability` and the `ServiceMeasurement` of its pipeline.  Out: `Sizing`. Only arithmetic.

    workers = ceil(rate that the training would consume / rate of one worker)

The first is the rate of the steps without their wait for input. The second is elements per second of CPU time of a real worker
process, times the cores of a worker. It is measured in CPU time because the worker shared this machine with its client, which it
will not do later. If most of this machine's cores were idle meanwhile, the worker waited for something else, such as storage: its
rate is then the one that was measured, whatever the cores. What the client can receive is an upper limit: its own CPU time per
element, and its network.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

from advisor.host.calibration.offload import (
    CLIENT_CORE_SHARE,
    CLIENT_LINK_BYTES_PER_S,
    DISPATCHER_CORES,
    IDLE_SHARE,
    LATE_END_S,
    LESS_WORK,
    LINK_SHARE,
    MODEL_WAIT_SHARE,
)
from advisor.host.calibration.proof import WORTHWHILE
from advisor.model.offload_result import Movability, ServiceMeasurement, ServiceRate, Sizing
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import (
    NS_PER_S,
    format_bytes,
    format_count,
    format_many,
    format_ns,
    format_rate,
    format_ratio,
    format_share,
)
from advisor.predict.call_index import graph_of
from advisor.predict.structure import consumed_call

NEEDED, NO_GAIN, UNKNOWN = "workers", "no gain", "unknown"


@dataclass(frozen=True, slots=True)
class Machines:
    """The machines that the workers and the trainer will have."""

    worker_cores: float | None = None
    """Cores of a worker; None: as many as this machine has."""
    network_bytes_per_s: float = CLIENT_LINK_BYTES_PER_S.value
    """The trainer's link."""


def size(analysis: Analysis, movability: Movability, measured: ServiceMeasurement, machines: Machines) -> Sizing:
    """Return how many workers the training needs.

    Args:
        analysis: The analysis of the training.
        movability: Whether and where its pipeline can move.
        measured: What one worker process did here.
        machines: The machines that will be used.
    """
    main = analysis.main
    if main is None or not measured.rates:
        return Sizing(UNKNOWN, "The number of workers is unknown: nothing was measured through the service.")
    host_cores = analysis.host.cores if analysis.host is not None else 1.0
    cores = machines.worker_cores or host_cores
    rate = faster(measured.rates)
    worker = _worker_rates(rate, cores, host_cores)
    per_step = _elements_per_step(analysis, main, movability)
    wanted = _wanted(main, per_step)
    client_bytes = None if wanted is None else wanted * measured.element_bytes
    base = Sizing(
        UNKNOWN,
        "",
        wanted_per_s=wanted,
        worker_per_s=worker[0],
        worker_cores=cores,
        compression=rate.compression,
        client_bytes_per_s=client_bytes,
        notes=(*_notes(measured, rate), *([_WAITING] if _is_waiting(rate, host_cores) else [])),
    )
    if main.wait_share < MODEL_WAIT_SHARE.value and main.steps is not None:
        sentence = (
            "More workers will not help: the model is the limit. Training waits for input during "
            f"{format_share(main.wait_share)} of a step."
        )
        return _with(base, NO_GAIN, sentence, "model")
    if wanted is None:
        return _with(
            base,
            UNKNOWN,
            "The number of workers is unknown: training did nothing but wait for its input, or its steps were not timed.",
        )
    if worker[0] <= 0:
        return _with(
            base, UNKNOWN, "The number of workers is unknown: the worker's CPU time was too short to be measured."
        )
    now = main.elements_per_s * (per_step or 1.0)
    return _of_limits(base, now, movability, rate, host_cores, machines, wanted, measured)


def _of_limits(
    base: Sizing,
    now: float,
    movability: Movability,
    rate: ServiceRate,
    host_cores: float,
    machines: Machines,
    wanted: float,
    measured: ServiceMeasurement,
) -> Sizing:
    """Compare what is wanted with the limits of the client and its network, and divide by the rate of a worker."""
    limits = {"network": math.inf, "client": math.inf}
    if measured.element_bytes > 0:
        limits["network"] = LINK_SHARE.value * machines.network_bytes_per_s / measured.element_bytes
    if rate.client_cpu_s > 0:
        limits["client"] = CLIENT_CORE_SHARE.value * host_cores / rate.client_cpu_s
    if rate.dispatcher_cpu_s > 0:
        limits["dispatcher"] = DISPATCHER_CORES.value / rate.dispatcher_cpu_s
    name = min(limits, key=lambda key: limits[key])
    reachable = min(wanted, limits[name])
    if reachable <= now * WORTHWHILE.value:
        why = _limit_text(name, limits[name], measured, rate, machines)
        return _with(base, NO_GAIN, f"More workers will not help: {why}", name, reachable)
    cores = base.worker_cores or 1.0
    rates = _worker_rates(rate, cores, host_cores)
    counts = [max(1, math.ceil(reachable / possible_rate)) for possible_rate in rates if possible_rate > 0]
    workers, low, high = (*counts, *[counts[0]] * 2)[:3]
    limit, tail = "", ""
    if reachable < wanted:
        limit, tail = name, f" More will not help: {_limit_text(name, limits[name], measured, rate, machines)}"
    if movability.max_workers is not None and workers > movability.max_workers:
        limit = "source"
        tail = (
            f" The source has only {format_many(movability.max_workers, 'part')} (files or elements), and further workers get no "
            "data: write the data into more files."
        )
        workers, low, high = (min(count, movability.max_workers) for count in (workers, low, high))
    spread = "" if low == high else f" ({low} to {high})"
    sentence = (
        f"It takes {format_many(workers, 'worker')}{spread} with {format_count(cores)} cores each: training would consume "
        f"{format_rate(wanted)} without waiting, and a worker prepares {format_rate(rates[0])}.{tail}"
    )
    made = _with(base, NEEDED, sentence, limit, reachable)
    return replace(made, workers=workers, workers_low=low, workers_high=high)


_WAITING = (
    "The worker left most of this machine's cores idle, so it waits for something else, such as storage. Its rate counts as that "
    "of a worker with any number of cores; more parallel calls of `interleave` or `map` would raise it without other machines."
)


def _is_waiting(rate: ServiceRate, host_cores: float) -> bool:
    """Whether worker, client and dispatcher together left most of this machine idle, so that no core limits the rate."""
    worker = 1 / rate.elements_per_core_s if rate.elements_per_core_s > 0 else 0.0
    used = rate.elements_per_s * (worker + rate.client_cpu_s + rate.dispatcher_cpu_s)
    return rate.elements_per_s > 0 and used < IDLE_SHARE.value * host_cores


def _worker_rates(rate: ServiceRate, cores: float, host_cores: float) -> tuple[float, float, float]:
    """Return the elements per second of a worker: the value, the most, and the least."""
    if _is_waiting(rate, host_cores):
        return (rate.elements_per_s,) * 3
    return rate.elements_per_core_s * cores, rate.elements_per_core_s_high * cores, rate.elements_per_core_s_low * cores


def speedup_at(analysis: Analysis, movability: Movability, delivered_per_s: float) -> float | None:
    """Return the ratio of step times, before / after, that a service promises.

    Args:
        analysis: The analysis of the training.
        movability: Where its pipeline moves.
        delivered_per_s: Elements per second that the service delivers.

    Returns:
        None if the training's own rate is unknown.
    """
    main = analysis.main
    per_step = _elements_per_step(analysis, main, movability) if main is not None else None
    wanted = _wanted(main, per_step) if main is not None else None
    if main is None or per_step is None or wanted is None:
        return None
    return min(wanted, delivered_per_s) / (main.elements_per_s * per_step)


def faster(rates: tuple[ServiceRate, ...]) -> ServiceRate:
    """Return the rate whose worker and client together take less CPU time; of equal ones, the first, TensorFlow's default."""
    best = rates[0]
    for rate in rates[1:]:
        if _cost(rate) < (1 - LESS_WORK.value) * _cost(best):
            best = rate
    return best


def _cost(rate: ServiceRate) -> float:
    worker = 1 / rate.elements_per_core_s if rate.elements_per_core_s > 0 else math.inf
    return worker + rate.client_cpu_s


def _wanted(main: Pipeline, per_step: float | None) -> float | None:
    """Elements per second that the training would take from the workers if it never waited; None if that is unknown."""
    if main.steps is None or main.wait_share >= 1 or main.elements_per_s <= 0 or per_step is None:
        return None
    return main.elements_per_s / (1 - main.wait_share) * per_step


def _elements_per_step(analysis: Analysis, main: Pipeline, movability: Movability) -> float | None:
    """How many elements from the workers make one that the training reads: those of a batch made here; None if unknown.

    Elements that a repair sends together count as one.
    """
    consumed, graph = consumed_call(analysis, main), graph_of(analysis)
    place = graph.by_id.get(movability.after_id)
    path = graph.path(place, consumed) if place is not None and consumed is not None else None
    if path is None:
        return None
    count = 1.0
    for call in path:
        size_of_batch = call.arguments.get("batch_size")
        if call.method == "batch" and isinstance(size_of_batch, int) and not isinstance(size_of_batch, bool):
            count *= size_of_batch
        elif call.method not in _ONE_TO_ONE:
            return None
    return count / movability.sent_together


_ONE_TO_ONE = frozenset({"cache", "enumerate", "map", "prefetch", "repeat", "shuffle", "take", "with_options"})
"""Transformations that emit an element for each that they read."""


def _limit_text(name: str, limit: float, measured: ServiceMeasurement, rate: ServiceRate, machines: Machines) -> str:
    if name == "network":
        gigabits = machines.network_bytes_per_s * 8 / 1e9
        return (
            f"the network of the client is the limit. With elements of {format_bytes(measured.element_bytes)} (uncompressed), a "
            f"link of {gigabits:g} Gbit/s carries {format_rate(limit)}: send smaller elements (uint8 instead of float32), or "
            "raise --network."
        )
    if name == "dispatcher":
        return (
            "the dispatcher is the limit. It hands out every part of the source itself, which takes "
            f"{_time(rate.dispatcher_cpu_s)} of its CPU time per element, so that there are at most {format_rate(limit)}: let "
            "the parts be files with many elements."
        )
    return (
        f"the client is the limit. Receiving an element takes {_time(rate.client_cpu_s)} of its CPU time, so that its cores take "
        f"{format_rate(limit)}."
    )


def _time(seconds: float) -> str:
    return format_ns(seconds * NS_PER_S)


def _notes(measured: ServiceMeasurement, rate: ServiceRate) -> tuple[str, ...]:
    """What the service costs compared with the local pipeline."""
    notes = []
    if measured.end_delay_s is not None and measured.end_delay_s >= LATE_END_S.value:
        notes.append(
            f"Through the service, the end of a pass came {_time(measured.end_delay_s)} after its last element."
        )
    if not measured.local_cpu_s or rate.elements_per_core_s <= 0:
        return tuple(notes)
    whole = 1 / rate.elements_per_core_s + rate.client_cpu_s + rate.dispatcher_cpu_s
    notes.append(
        f"With the service, an element takes {format_ratio(whole / measured.local_cpu_s)} the CPU time of the local pipeline "
        f"({_time(whole)} instead of {_time(measured.local_cpu_s)}), {_time(rate.client_cpu_s)} of it in the trainer."
    )
    return tuple(notes)


def _with(base: Sizing, verdict: str, sentence: str, limit: str = "", reachable: float | None = None) -> Sizing:
    return replace(base, verdict=verdict, sentence=sentence, limit=limit, reachable_per_s=reachable)
