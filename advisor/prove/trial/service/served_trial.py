"""Reads the held script's pipeline through a service that the user runs, with workers on other machines.

In: the recorded calls, the place of `distribute`, the dispatcher's address.  Out: `ServiceTried`.

1. Which workers can be reached from here, and whether they run the same TensorFlow.
2. Elements per second that arrive here while nothing else is done, and the CPU time that receiving one takes.
3. The rows of one pass as a multiset, compared with those of a local pass.

Workers may end, and the dispatcher may be restarted, at any time: no wait is without end, and what is missing is said.
"""

from __future__ import annotations

import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.host.calibration.offload import (
    PROBE_S,
    SERVICE_PART_S,
    SERVICE_PARTS,
    SERVICE_WARMUP_S,
    STALL_PASSES,
    STALL_S,
)
from advisor.host.calibration.proof import SAMPLED_ELEMENTS
from advisor.model.edits import Edit
from advisor.model.errors import AdvisorError
from advisor.model.offload_result import OFF, ServedMeasurement, ServiceMeasurement
from advisor.model.units import format_count, format_many
from advisor.offload.dispatcher import Dispatcher, listed, reachable
from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.prove.trial.elements.multisets import compared, compared_after_loss
from advisor.prove.trial.service.service_messages import ServiceTried, TryService
from advisor.prove.trial.service.service_pipeline import (
    Report,
    ServicePipeline,
    TimedDataset,
    WorkerRefuses,
    raising_worker_refuses,
    take,
)
from advisor.prove.trial.service.service_versions import difference, graph_version, own_version, probe
from advisor.prove.trial.watched_reading import Pulse, Stalled, watched


class ServedTrial:
    """One reading of a running service."""

    def __init__(
        self, recorder: Recorder, request: TryService, edits: tuple[Edit, ...], files: Path, report: Report
    ) -> None:
        """Prepare; nothing is asked.

        Args:
            recorder: A closed recorder with a replay log.
            request: What to read, with the call id of this run.
            edits: Its edits, with the call ids of this run.
            files: An existing temporary folder.
            report: Receives the progress.
        """
        self._request, self._report = request, report
        own = files / "served"
        own.mkdir(exist_ok=True)
        self._pipeline = ServicePipeline(recorder, request.after_id, request.policy, edits, own)
        self._dispatcher = Dispatcher(request.address)
        self._workers: tuple[str, ...] = ()
        self._versions = ""
        self._notes: list[str] = []

    def measure(self) -> ServiceTried:
        """Read and compare.

        Raises:
            AdvisorError: There is no dispatcher, it has no workers, or no elements come.
            CannotReplay: The dataset cannot be rebuilt.
        """
        self._find_workers()
        self._compare_versions()
        try:
            delivered_per_s, client_cpu_s = self._rate()
        except WorkerRefuses as error:
            return self._tried(self._refused(ServiceMeasurement(), str(error)))
        except Stalled:
            raise AdvisorError(
                f"No element came through the dispatcher at {self._dispatcher.name} for {STALL_S.value:.0f} s"
                f"{self._lost_clause()}."
            ) from None
        local_rate, local_cpu_s = self._local()
        sample = collect(self._pipeline.dataset(), Bounds(SAMPLED_ELEMENTS.value, 5.0))
        measured = ServiceMeasurement(
            local_elements_per_s=local_rate,
            local_cpu_s=local_cpu_s,
            element_bytes=sample.size_bytes / max(1, len(sample.rows)),
        )
        return self._tried(self._compared(measured), delivered_per_s, client_cpu_s)

    def _tried(
        self, measured: ServiceMeasurement, delivered_per_s: float | None = None, client_cpu_s: float | None = None
    ) -> ServiceTried:
        served = ServedMeasurement(measured, len(self._workers), self._lost(), delivered_per_s, client_cpu_s)
        return ServiceTried(served, tuple(self._notes))

    def _refused(self, measured: ServiceMeasurement, error: str) -> ServiceMeasurement:
        """The objection; workers of another release are its likely cause."""
        objection = self._pipeline.objection(error)
        if self._versions:
            objection = replace(objection, reason=f"{objection.reason}. {self._versions}")
        return replace(measured, objection=objection)

    # -- the workers

    def _find_workers(self) -> None:
        known = self._dispatcher.wait_for_workers(lambda: self._report("waiting for workers", 0, None))
        self._workers = reachable(known)
        absent = [worker for worker in known if worker not in self._workers]
        if absent:
            self._notes.append(
                f"{len(absent)} of {format_many(len(known), 'registered worker')} cannot be reached from here "
                f"({listed(absent)}): ended, or started with an address that is valid on its own machine only."
            )

    def _compare_versions(self) -> None:
        """Note whether a worker runs another TensorFlow."""
        versions: list[int] = []
        pulse = Pulse()

        def ask() -> None:
            with raising_worker_refuses():
                for element in probe(self._request.address):
                    versions.append(graph_version(element))
                    pulse.beat()
                    if len(versions) >= len(self._workers):
                        return

        try:
            watched(ask, lambda: pulse.last, self._say, PROBE_S.value)
        except WorkerRefuses as error:
            self._notes.append(f"The TensorFlow of the workers could not be determined: {str(error).rstrip('.')}.")
        except Stalled:
            self._notes.append(
                f"Only {len(versions)} of {format_many(len(self._workers), 'worker')} answered when asked for their TensorFlow."
            )
        self._versions = difference(versions, *own_version())
        if self._versions:
            self._notes.append(self._versions)

    def _lost(self) -> tuple[str, ...]:
        there = reachable(self._workers)
        return tuple(worker for worker in self._workers if worker not in there)

    def _lost_clause(self) -> str:
        """What has ended meanwhile, as the end of a sentence."""
        try:
            self._dispatcher.workers()
        except AdvisorError:
            return ": the dispatcher no longer answers"
        lost = self._lost()
        if not lost:
            return ""
        return f": {len(lost)} of {format_many(len(self._workers), 'worker')} can no longer be reached ({listed(lost)})"

    # -- rates

    def _rate(self) -> tuple[float, float]:
        """Return elements per second through the service, and the CPU seconds that one takes here."""
        pulse = Pulse()

        def read() -> tuple[float, float]:
            dataset = self._pipeline.distributed(self._pipeline.dataset().repeat(), self._request.address)
            with raising_worker_refuses():
                iterator = iter(dataset)
                take(iterator, SERVICE_WARMUP_S.value, pulse.beat)
                cpu_s = time.process_time()
                count, seconds = take(iterator, SERVICE_PARTS.value * SERVICE_PART_S.value, pulse.beat)
            return count / seconds, (time.process_time() - cpu_s) / count

        return watched(read, lambda: pulse.last, self._say, STALL_S.value)

    def _local(self) -> tuple[float, float]:
        self._say()
        iterator = iter(self._pipeline.dataset().repeat())
        take(iterator, SERVICE_WARMUP_S.value)
        cpu_s = time.process_time()
        count, seconds = take(iterator, SERVICE_PARTS.value * SERVICE_PART_S.value)
        return count / seconds, (time.process_time() - cpu_s) / count

    def _say(self) -> None:
        self._report("reading from the service", 0, None)

    # -- comparison

    def _stalled(self, arrived: int, wanted: int) -> str:
        """What is known after a pass that stopped without an end."""
        workers = format_many(len(self._workers), "worker")
        if arrived >= wanted:
            return (
                f"All {format_count(wanted)} elements of the pass through {workers} arrived, but its end never "
                f"did{self._lost_clause()}. Nothing was compared."
            )
        return (
            f"The pass through {workers} stopped after {format_count(arrived)} of "
            f"{format_count(wanted)} elements{self._lost_clause()}. The rest was lost with the workers that "
            "held it, or is never sent; nothing was compared."
        )

    def _compared(self, measured: ServiceMeasurement) -> ServiceMeasurement:
        """Compare one pass through all workers with two local ones."""
        self._report("comparing", 0, None)
        began = time.perf_counter()
        passes = self._pipeline.local_passes()
        if isinstance(passes, str):
            return replace(measured, comparison=passes)
        local, again = passes
        pass_s = (time.perf_counter() - began) / 2
        limit_s = max(STALL_S.value, STALL_PASSES.value * pass_s)
        clocks: list[TimedDataset] = []

        def read() -> Any:  # noqa: ANN401
            clock = TimedDataset(self._pipeline.distributed(self._pipeline.one_pass(), self._request.address))
            clocks.append(clock)
            return self._pipeline.rows(clock, 2 * STALL_S.value + STALL_PASSES.value * pass_s)  # with a restart

        workers = len(self._workers)
        times = workers if self._request.policy == OFF else 1
        measured = replace(measured, compared_workers=workers, local_elements=len(local.rows))
        try:
            served = watched(
                read, lambda: clocks[0].last if clocks else 0.0, lambda: self._report("comparing", 0, None), limit_s
            )
        except WorkerRefuses as error:
            return self._refused(measured, str(error))
        except Stalled:
            arrived = clocks[0].arrived if clocks else 0
            sentence = self._stalled(arrived, times * len(local.rows))
            return replace(measured, service_elements=arrived, comparison=sentence)
        lost = self._lost()
        if lost and not served.error:
            is_same, sentence = compared_after_loss(local, again, served, times, workers, lost)
        elif served.error:
            return self._refused(measured, served.error)
        else:
            is_same, sentence = compared(local, again, served, times, workers)
        return replace(
            measured,
            service_elements=len(served.rows),
            is_same=is_same,
            comparison=sentence,
            end_delay_s=clocks[0].delay_s if served.is_complete else None,
        )
