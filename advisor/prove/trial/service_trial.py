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

import contextlib
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.host.calibration.offload import (
    COMPARED_PASS_S,
    COMPARED_ROWS,
    SERVICE_PART_S,
    SERVICE_PARTS,
    SERVICE_WARMUP_S,
)
from advisor.host.calibration.proof import SAMPLED_ELEMENTS
from advisor.model.errors import AdvisorError
from advisor.model.finding import Edit, Remove
from advisor.model.offload import (
    FILES,
    OFF,
    OP,
    PROCESSING_MODES,
    PYTHON,
    REFUSED,
    SERVICE,
    Objection,
    ServiceMeasurement,
    ServiceRate,
)
from advisor.model.recording import INFINITE_CARDINALITY
from advisor.prove.trial.element_digests import Bounds, collect
from advisor.prove.trial.equivalence import is_batched
from advisor.prove.trial.multisets import compared
from advisor.prove.trial.service_messages import MeasureService
from advisor.prove.trial.service_processes import ServiceProcesses
from advisor.prove.trial.sibling_datasets import upstream_ids
from advisor.prove.trial.streams import Stream, tensorflow_message
from advisor.replay.replay import Replay
from advisor.rewrite.shared_calls import spread

Report = Callable[[str, int, int | None], None]
_COMPRESSIONS: tuple[tuple[str, str | None], ...] = (("AUTO", "AUTO"), ("none", None))
_CAUSES = (
    (re.compile(r"Could not find callback|pyfunc_"), PYTHON),
    (re.compile(r"Op type not registered"), OP),
    (re.compile(r"No such file|not found|NOT_FOUND|Permission denied", re.IGNORECASE), FILES),
)


class _WorkerRefuses(Exception):
    """The workers, or the dispatcher, cannot run the pipeline."""


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
        self._recorder, self._request, self._report = recorder, request, report
        self._edits = spread(edits, {call.id: call for call in recorder.calls()})
        self._files = files / "service"
        self._files.mkdir(exist_ok=True)
        self._number = 0

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
                rates = tuple(self._rate(processes, *each) for each in _COMPRESSIONS)
            except _WorkerRefuses as error:
                return ServiceMeasurement(objection=self._objection(str(error)))
            local_rate, local_cpu_s = self._local()
            measured = ServiceMeasurement(rates=rates, local_elements_per_s=local_rate, local_cpu_s=local_cpu_s)
            sample = collect(self._dataset(), Bounds(SAMPLED_ELEMENTS.value, 5.0))
            measured = replace(measured, element_bytes=sample.size_bytes / max(1, len(sample.rows)))
            return self._compared(measured, processes)

    # -- datasets

    def _dataset(self, *more: Remove) -> Any:  # noqa: ANN401
        """Return the dataset at the place, rebuilt."""
        self._number += 1
        files = self._files / f"side{self._number}"
        files.mkdir(exist_ok=True)
        return Replay(self._recorder, (*self._edits, *more), files=files).dataset(self._request.after_id)

    def _one_pass(self) -> Any:  # noqa: ANN401
        """Return the dataset without endless repetition; it may still be endless."""
        upstream = upstream_ids(self._recorder, self._request.after_id)
        repeats = [
            Remove(call.id)
            for call in self._recorder.calls()
            if call.id in upstream
            and call.method == "repeat"
            and call.nested_in is None
            and call.made_by is None
            and call.arguments.get("count") in (None, -1)
        ]
        return self._dataset(*repeats)

    def _through_service(
        self,
        dataset: Any,  # noqa: ANN401
        processes: ServiceProcesses,
        compression: str | None = "AUTO",
    ) -> Any:  # noqa: ANN401
        import tensorflow as tf

        mode = PROCESSING_MODES[self._request.policy]
        with _refusals():
            return dataset.apply(
                tf.data.experimental.service.distribute(mode, processes.address, compression=compression)
            )

    # -- rates

    def _rate(self, processes: ServiceProcesses, name: str, compression: str | None) -> ServiceRate:
        dataset = self._through_service(self._dataset().repeat(), processes, compression)
        worker, dispatcher = processes.workers[0], processes.dispatcher
        assert dispatcher is not None
        with _refusals():
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
        iterator = iter(self._dataset().repeat())
        self._take(iterator, SERVICE_WARMUP_S.value)
        cpu_s = time.process_time()
        elements, seconds = self._take(iterator, SERVICE_PARTS.value * SERVICE_PART_S.value)
        return elements / seconds, (time.process_time() - cpu_s) / elements

    def _take(self, iterator: Iterator[Any], seconds: float) -> tuple[int, float]:
        """Take elements for some seconds, two at least; return their number and the time."""
        self._report("measuring", 0, None)
        began, count = time.perf_counter(), 0
        while (elapsed := time.perf_counter() - began) < seconds or count < 2:
            try:
                next(iterator)
            except StopIteration:
                raise AdvisorError("The pipeline produces no elements, so nothing can be measured.") from None
            count += 1
        return count, elapsed

    # -- comparison

    def _compared(self, measured: ServiceMeasurement, processes: ServiceProcesses) -> ServiceMeasurement:
        """Compare one pass through two workers with two local ones."""
        dataset = self._one_pass()
        if int(dataset.cardinality()) == INFINITE_CARDINALITY:
            return replace(measured, comparison="The dataset is endless, so its elements were not compared.")
        self._report("comparing", 0, None)
        local = self._pass(dataset)
        if local.error:
            return replace(measured, comparison=f"The script's own pipeline fails: {local.error}.")
        if not local.is_complete:
            return replace(
                measured,
                comparison=f"One pass has more than {len(local.rows)} elements, or takes longer than "
                f"{COMPARED_PASS_S.value:.0f} s: the elements were not compared.",
            )
        again = self._pass(self._one_pass())
        processes.start_worker()
        self._report("comparing", 0, None)
        try:
            clock = _LastElement(self._through_service(self._one_pass(), processes))
            served = self._pass(clock)
        except _WorkerRefuses as error:
            return replace(measured, objection=self._objection(str(error)))
        if served.error:
            return replace(measured, objection=self._objection(served.error))
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

    def _pass(self, dataset: Any) -> Stream:  # noqa: ANN401
        """Return the rows of one pass, or its elements if they are no batches."""
        bounds = Bounds(COMPARED_ROWS.value, COMPARED_PASS_S.value)
        if is_batched(self._recorder, self._request.after_id):
            with contextlib.suppress(TypeError, ValueError):
                dataset = dataset.unbatch()
        return collect(dataset, bounds)

    def _objection(self, error: str) -> Objection:
        call = self._recorder.call(self._request.after_id)
        cause = next((cause for pattern, cause in _CAUSES if pattern.search(error)), SERVICE)
        return Objection(
            REFUSED,
            cause,
            call.method if call is not None else "",
            f"fails on a worker process: {error.rstrip('.')}",
            call.site if call is not None else None,
            self._request.after_id,
        )


class _LastElement:
    """Iterates over a dataset, and notes how long its end came after its last element."""

    def __init__(self, dataset: Any) -> None:  # noqa: ANN401
        self._dataset = dataset
        self.delay_s = 0.0

    def unbatch(self) -> _LastElement:
        """Do the same for the rows of the batches."""
        self._dataset = self._dataset.unbatch()
        return self

    def __iter__(self) -> Iterator[Any]:
        last = time.perf_counter()
        for element in self._dataset:
            yield element
            last = time.perf_counter()
        self.delay_s = time.perf_counter() - last


@contextlib.contextmanager
def _refusals() -> Iterator[None]:
    """Turn an error of TensorFlow into the answer of the workers."""
    try:
        yield
    except (AdvisorError, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        raise _WorkerRefuses(tensorflow_message(error)) from error
