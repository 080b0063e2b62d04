"""Runs the held script's pipeline through a real dispatcher and real workers of tf.data service, and measures it.

In: the recorded calls, the place of `distribute`.  Out: `ServiceMeasurement`.

1. One worker: elements per second of its CPU time, with both kinds of compression, and the CPU time of the client (this process)
   and of the dispatcher per element. The dataset is repeated, so that no end of a pass is measured.
2. The same dataset read here without the service: what the service itself costs.
3. Two workers: the rows of one pass as a multiset, compared with those of a local pass. A `repeat` before the place is left out
   of this comparison.

The worker processes decide what the legality check could not: an error of theirs becomes the objection.
"""

from __future__ import annotations

import time
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.host.calibration.offload import SERVICE_PART_S, SERVICE_PARTS, SERVICE_WARMUP_S
from advisor.host.calibration.proof import SAMPLED_ELEMENTS
from advisor.model.edits import Edit
from advisor.model.offload_result import OFF, ServiceMeasurement, ServiceRate
from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.prove.trial.elements.multisets import compared
from advisor.prove.trial.service.service_messages import MeasureService
from advisor.prove.trial.service.service_pipeline import (
    Report,
    ServicePipeline,
    TimedDataset,
    WorkerRefuses,
    raising_worker_refuses,
    take,
)
from advisor.prove.trial.service.service_processes import ServiceProcesses

_COMPRESSIONS: tuple[tuple[str, str | None], ...] = (("AUTO", "AUTO"), ("none", None))


class ServiceTrial:
    """One measurement."""

    def __init__(
        self, recorder: Recorder, request: MeasureService, edits: tuple[Edit, ...], files: Path, report: Report
    ) -> None:
        """Prepare; nothing is started.

        Args:
            recorder: A closed recorder with a replay log.
            request: What to measure, with the call id of this run.
            edits: Its edits, with the call ids of this run.
            files: An existing temporary folder.
            report: Receives the progress.
        """
        self._request, self._report = request, report
        self._files = files / "service"
        self._files.mkdir(exist_ok=True)
        self._pipeline = ServicePipeline(recorder, request.after_id, request.policy, edits, self._files)

    def measure(self) -> ServiceMeasurement:
        """Start the processes, measure, and end them.

        Raises:
            AdvisorError: A process cannot be started.
            CannotReplay: The dataset cannot be rebuilt.
        """
        with ServiceProcesses(
            self._request.server, self._files, lambda: self._report("starting workers", 0, None)
        ) as processes:
            processes.start_dispatcher()
            processes.start_worker()
            try:
                rates = tuple(self._rate(processes, *compressions) for compressions in _COMPRESSIONS)
            except WorkerRefuses as error:
                return ServiceMeasurement(objection=self._pipeline.objection(str(error)))
            local_rate, local_cpu_s = self._local()
            measured = ServiceMeasurement(rates=rates, local_elements_per_s=local_rate, local_cpu_s=local_cpu_s)
            sample = collect(self._pipeline.dataset(), Bounds(SAMPLED_ELEMENTS.value, 5.0))
            measured = replace(measured, element_bytes=sample.size_bytes / max(1, len(sample.rows)))
            return self._compared(measured, processes)

    # -- rates

    def _rate(self, processes: ServiceProcesses, name: str, compression: str | None) -> ServiceRate:
        dataset = self._pipeline.distributed(self._pipeline.dataset().repeat(), processes.address, compression)
        worker, dispatcher = processes.workers[0], processes.dispatcher
        assert dispatcher is not None
        with raising_worker_refuses():
            iterator = iter(dataset)
            self._take(iterator, SERVICE_WARMUP_S.value)
            parts: list[tuple[int, float, float]] = []
            client_s, dispatcher_s = time.process_time(), dispatcher.cpu_s()
            for _ in range(SERVICE_PARTS.value):
                worker_s = worker.cpu_s()
                elements, seconds = self._take(iterator, SERVICE_PART_S.value)
                parts.append((elements, seconds, worker.cpu_s() - worker_s))
            client_s, dispatcher_s = time.process_time() - client_s, dispatcher.cpu_s() - dispatcher_s
            del iterator
        count, cpu_s = sum(part[0] for part in parts), sum(part[2] for part in parts)
        per_core = [elements / used for elements, _, used in parts if used > 0] or [0.0]
        return ServiceRate(
            compression=name,
            elements_per_s=count / sum(part[1] for part in parts),
            elements_per_core_s=count / cpu_s if cpu_s > 0 else 0.0,
            elements_per_core_s_low=min(per_core),
            elements_per_core_s_high=max(per_core),
            client_cpu_s=client_s / count,
            dispatcher_cpu_s=dispatcher_s / count,
            elements=count,
            seconds=sum(part[1] for part in parts),
        )

    def _local(self) -> tuple[float, float]:
        """Return elements per second, and CPU seconds per element, of the dataset read in this process."""
        iterator = iter(self._pipeline.dataset().repeat())
        self._take(iterator, SERVICE_WARMUP_S.value)
        cpu_s = time.process_time()
        elements, seconds = self._take(iterator, SERVICE_PARTS.value * SERVICE_PART_S.value)
        return elements / seconds, (time.process_time() - cpu_s) / elements

    def _take(self, iterator: Iterator[Any], seconds: float) -> tuple[int, float]:
        self._report("measuring", 0, None)
        return take(iterator, seconds)

    # -- comparison

    def _compared(self, measured: ServiceMeasurement, processes: ServiceProcesses) -> ServiceMeasurement:
        """Compare one pass through two workers with two local ones."""
        self._report("comparing", 0, None)
        passes = self._pipeline.local_passes()
        if isinstance(passes, str):
            return replace(measured, comparison=passes)
        local, again = passes
        processes.start_worker()
        self._report("comparing", 0, None)
        try:
            clock = TimedDataset(self._pipeline.distributed(self._pipeline.one_pass(), processes.address))
            served = self._pipeline.rows(clock)
        except WorkerRefuses as error:
            return replace(measured, objection=self._pipeline.objection(str(error)))
        if served.error:
            return replace(measured, objection=self._pipeline.objection(served.error))
        workers = len(processes.workers)
        times = workers if self._request.policy == OFF else 1
        is_same, sentence = compared(local, again, served, times, workers)
        return replace(
            measured,
            compared_workers=workers,
            local_elements=len(local.rows),
            service_elements=len(served.rows),
            is_same=is_same,
            comparison=sentence,
            end_delay_s=clock.delay_s if served.is_complete else None,
        )
