"""The held script's pipeline up to the place of `distribute`, rebuilt here and read through a dispatcher.

In: the recorded calls, the place, edits.  Out: datasets, their rows, rates; what workers refuse becomes an `Objection`.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

from advisor.capture.instrument.recorder import Recorder
from advisor.host.calibration.offload import COMPARED_PASS_S, COMPARED_ROWS
from advisor.model.calls import INFINITE_CARDINALITY, Call
from advisor.model.edits import Edit, InsertAfter, Remove, SetArgument
from advisor.model.errors import AdvisorError
from advisor.model.offload_result import PROCESSING_MODES, Objection
from advisor.offload.worker_errors import objection_of
from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.prove.trial.elements.equivalence import is_batched
from advisor.prove.trial.elements.streams import Stream, tensorflow_message
from advisor.prove.trial.sibling_datasets import upstream_ids
from advisor.replay.replay import CannotReplay, Replay
from advisor.rewrite.shared_calls import spread

_PADDING = frozenset({"padded_batch", "bucket_by_sequence_length"})
"""Methods that pad each element to the longest one of its batch, which is another one if they come in another order."""
Report = Callable[[str, int, int | None], None]


class WorkerRefuses(Exception):
    """The workers, or the dispatcher, cannot run the pipeline."""


class ServicePipeline:
    """The datasets of one place."""

    def __init__(self, recorder: Recorder, after_id: str, policy: str, edits: tuple[Edit, ...], files: Path) -> None:
        """Prepare; nothing is built.

        Args:
            recorder: A closed recorder with a replay log.
            after_id: The call after which the elements leave the workers, of this run.
            policy: `dynamic` or `off`.
            edits: Edits of calls before it, with the call ids of this run.
            files: An existing folder of the trial's own.
        """
        self._recorder, self._after_id, self._policy, self._files = recorder, after_id, policy, files
        self._edits = spread(edits, {call.id: call for call in recorder.calls()})
        self._number = 0
        place = recorder.call(after_id)
        self._compared_id = place.inputs[0] if place is not None and place.method in _PADDING else after_id
        self._is_sent_in_batches = any(
            isinstance(edit, InsertAfter) and edit.call_id == after_id and edit.method == "batch" for edit in edits
        )

    def dataset(self) -> Any:  # noqa: ANN401
        """Return the dataset at the place, rebuilt.

        Raises:
            CannotReplay: It cannot be.
        """
        return self._rebuilt(self._after_id, ())

    def _rebuilt(self, call_id: str, more: tuple[Edit, ...]) -> Any:  # noqa: ANN401
        """Return the dataset of a call with the edits and with more of them.

        Raises:
            CannotReplay: It cannot be.
        """
        self._number += 1
        files = self._files / f"side{self._number}"
        files.mkdir(exist_ok=True)
        return Replay(self._recorder, (*self._edits, *more), files=files).dataset(call_id)

    def one_pass(self) -> Any:  # noqa: ANN401
        """Return the dataset without endless repetition; it may still be endless.

        If the elements leave the workers in padded batches, it is the dataset before these. Batches of data that are repeated
        without end are never incomplete, so the last one of the pass is kept.

        Raises:
            CannotReplay: It cannot be rebuilt like this.
        """
        upstream = upstream_ids(self._recorder, self._compared_id)
        repeats = [
            Remove(call.id)
            for call in self._recorder.calls()
            if call.id in upstream
            and call.method == "repeat"
            and call.nested_in is None
            and call.made_by is None
            and call.arguments.get("count") in (None, -1)
        ]
        removed = {edit.call_id for edit in repeats}
        kept = [
            SetArgument(call.id, "drop_remainder", False)
            for call in self._recorder.calls()
            if call.id in upstream
            and call.arguments.get("drop_remainder") is True
            and removed & upstream_ids(self._recorder, call.id)
        ]
        return self._rebuilt(self._compared_id, (*repeats, *kept))

    def distributed(self, dataset: Any, address: str, compression: str | None = "AUTO") -> Any:  # noqa: ANN401
        """Return the dataset read through the dispatcher at `grpc://HOST:PORT`.

        Args:
            dataset: The dataset to run on the workers.
            address: The dispatcher, as `grpc://HOST:PORT`.
            compression: As in `tf.data.experimental.service.distribute`: `AUTO`, or None for uncompressed elements.

        Raises:
            WorkerRefuses: It cannot be registered there.
        """
        import tensorflow as tf

        mode = PROCESSING_MODES[self._policy]
        with raising_worker_refuses():
            return dataset.apply(tf.data.experimental.service.distribute(mode, address, compression=compression))

    def rows(self, dataset: Any, seconds: float = COMPARED_PASS_S.value) -> Stream:  # noqa: ANN401
        """Return the rows of one pass, or its elements if they are no batches.

        Args:
            dataset: One of the datasets, or a `TimedDataset`.
            seconds: The longest time for all of them.
        """
        bounds = Bounds(COMPARED_ROWS.value, seconds)
        if self._is_sent_in_batches or is_batched(self._recorder, self._compared_id):
            with contextlib.suppress(TypeError, ValueError):
                dataset = dataset.unbatch()
        return collect(dataset, bounds)

    def local_passes(self) -> tuple[Stream, Stream] | str:
        """Return the rows of two local passes, or in a sentence why there are none to compare with."""
        padded = self._padded_before()
        if padded is not None:
            where = f" at line {padded.site.line}" if padded.site is not None else ""
            return (
                f"{padded.method}{where} pads each element to the longest one of its batch, which is another one on workers: the "
                "elements were not compared."
            )
        try:
            dataset = self.one_pass()
        except CannotReplay as error:
            return f"The elements of one pass were not compared: {error}"
        if int(dataset.cardinality()) == INFINITE_CARDINALITY:
            return "The dataset is endless, so its elements were not compared."
        local = self.rows(dataset)
        if local.error:
            return f"The script's own pipeline fails: {local.error}."
        if not local.is_complete:
            return (
                f"One pass has more than {len(local.rows)} elements, or takes longer than {COMPARED_PASS_S.value:.0f} s: the "
                "elements were not compared."
            )
        return local, self.rows(self.one_pass())

    def _padded_before(self) -> Call | None:
        """A call that pads before what is compared; those inside functions run as a whole on one worker."""
        upstream = upstream_ids(self._recorder, self._compared_id)
        return next(
            (
                call
                for call in self._recorder.calls()
                if call.id in upstream and call.method in _PADDING and call.nested_in is None and call.made_by is None
            ),
            None,
        )

    def objection(self, error: str) -> Objection:
        """Return an error of the workers as an objection to the move."""
        upstream = upstream_ids(self._recorder, self._after_id)
        calls = (call for call in self._recorder.calls() if call.id in upstream)
        return objection_of(error, self._recorder.call(self._after_id), calls)


class TimedDataset:
    """Iterates over a dataset, and notes when elements arrived."""

    def __init__(self, dataset: Any) -> None:  # noqa: ANN401
        self._dataset = dataset
        self.arrived = 0
        """Elements so far."""
        self.last = time.perf_counter()
        """When the last one came; at first, when this object was made."""
        self.delay_s = 0.0
        """How long the end came after the last element."""

    def unbatch(self) -> TimedDataset:
        """Do the same for the rows of the batches."""
        self._dataset = self._dataset.unbatch()
        return self

    def __iter__(self) -> Iterator[Any]:
        self.last = time.perf_counter()
        for element in self._dataset:
            self.arrived += 1
            self.last = time.perf_counter()
            yield element
            self.last = time.perf_counter()
        self.delay_s = time.perf_counter() - self.last


def take(iterator: Iterable[Any], seconds: float, on_element: Callable[[], None] = lambda: None) -> tuple[int, float]:
    """Take elements for some seconds, two at least.

    Args:
        iterator: Where the elements come from.
        seconds: Seconds after which no further element is taken; an element that takes longer is waited for.
        on_element: Called after each element.

    Returns:
        (number of elements, seconds that they took).

    Raises:
        AdvisorError: There are none.
    """
    elements = iter(iterator)
    began, count = time.perf_counter(), 0
    while (elapsed := time.perf_counter() - began) < seconds or count < 2:
        try:
            next(elements)
        except StopIteration:
            raise AdvisorError("The pipeline produces no elements, so nothing can be measured.") from None
        count += 1
        on_element()
    return count, elapsed


@contextlib.contextmanager
def raising_worker_refuses() -> Iterator[None]:
    """Turn errors of TensorFlow into `WorkerRefuses`."""
    try:
        yield
    except (AdvisorError, KeyboardInterrupt, BrokenPipeError):
        raise
    except Exception as error:
        raise WorkerRefuses(tensorflow_message(error)) from error
