"""Reads the training's pipeline for a second without training, when the script is about to be stopped after its window.

In: the consumer, in its thread, at a step boundary.  Out: `AloneReading`. There is none if reading on could block or be noticed
outside the script (only reviewed transformations and ops are read on), if steps wait for input, or if too little came in time.

The elements that are in the pipeline's buffers come at once, so they are not counted. If the data end, whole epochs are counted,
as a shuffle buffer is emptied at memory speed before the end and filled after it.
"""

from __future__ import annotations

import math
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass, field
from statistics import median
from typing import Any

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.capture.instrument.iterator_model import model_now
from advisor.host.calibration.capture import LATEST_STEPS
from advisor.host.calibration.window import (
    READ_ALONE_BYTES,
    READ_ALONE_ELEMENTS,
    READ_ALONE_MAX_S,
    READ_ALONE_MIN_S,
    READ_ALONE_S,
    READ_ALONE_SHUFFLE_SHARE,
    READ_ALONE_WAIT_SHARE,
)
from advisor.model import catalog, op_effects
from advisor.model.calls import Call
from advisor.model.catalog import CACHES, SHUFFLES, base_type
from advisor.model.lineage import Lineage
from advisor.model.window_readings import AloneReading, BufferLevels

_METHODS = frozenset(
    {
        *catalog.TRANSFORMATIONS,
        *catalog.SOURCE_METHODS,
        *catalog.READERS,
        *catalog.EXPERIMENTAL_FUNCTIONS,
        "CsvDataset",
        "RandomDataset",
    }
) - {"from_generator"}
"""Calls whose elements come from memory, files or random numbers."""
_DATASET_OPS = (op_effects.REPEATABLE_DATASET_OPS | set(op_effects.DATASET_OPS_JUDGED_AS_CALLS)) - {"Generator"}
"""Types of dataset ops that functions may contain; what they do is judged by their calls, which are recorded too."""
_MADE_BY_TENSORFLOW = frozenset({"_TensorSliceDataset", "_VariantDataset"})
"""Types of datasets that TensorFlow makes inside a recorded call: of the names of files, and of the elements of a window."""
_STAY_FULL = SHUFFLES | CACHES
_OUTSIDE = ("DataService", "Generator")
"""Beginnings of the types of iterators whose elements come from outside TensorFlow."""


def read_alone(
    consumer: ConsumerSteps,
    calls: tuple[Call, ...],
    levels: Sequence[BufferLevels],
    unwatched: Callable[[], AbstractContextManager[None]],
) -> AloneReading | None:
    """Read on from the consumer's iterator. The script must not go on afterwards: it would miss these elements.

    A thread of its own reads, so that an element that never comes does not keep the script from being stopped.

    Args:
        consumer: The consumer, whose thread this is.
        calls: All recorded calls.
        levels: How full its last buffer was; empty if that is unknown.
        unwatched: Context in which the hooks do not follow what the thread consumes.

    Returns:
        What was read; None if nothing may or need be read, or if too little came.
    """
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator

    iterator = consumer.iterator() if consumer.iterator is not None else None
    if not isinstance(iterator, OwnedIterator) or waits(consumer, levels) or not stays_inside(consumer, calls):
        return None
    dataset, proto = getattr(iterator, "_dataset", None), model_now(consumer)
    if dataset is None or call_id_of(dataset) != consumer.call_id or proto is None:
        return None
    if any(str(node.name).startswith(_OUTSIDE) for node in proto.nodes.values()):
        return None
    buffered = buffered_elements(proto)
    if buffered is None:
        return None
    # A second iterator has buffers of its own, while the script keeps those of the first.
    own_bytes = sum(
        int(node.buffered_bytes) for node in proto.nodes.values() if base_type(str(node.name)) not in CACHES
    )
    has_room = own_bytes <= READ_ALONE_BYTES.value
    arrivals = read_in_thread(iterator, dataset if has_room else (), math.ceil(buffered), unwatched)
    reading = counted(arrivals, math.ceil(buffered))
    if reading is None or arrivals.ends_ns:
        return reading
    from_shuffles = shuffle_change(proto, model_now(consumer))
    return reading if from_shuffles <= READ_ALONE_SHUFFLE_SHARE.value * reading.elements else None


@dataclass
class Arrivals:
    """When elements came and when the data ended, as `time.perf_counter_ns`."""

    elements_ns: list[int] = field(default_factory=list)
    """The start, then the arrival of each element."""
    ends_ns: list[tuple[int, int]] = field(default_factory=list)
    """(number of elements until then, time) of each end of the data."""
    cpu_ns: list[int] = field(default_factory=list)
    """CPU time of the process at each of `elements_ns`, as `time.process_time_ns`; empty: not measured."""

    def is_enough(self, buffered: int) -> bool:
        """Whether enough has come after the elements that were ready, or the time is over.

        Args:
            buffered: Number of elements that were ready.
        """
        elapsed_s = (time.perf_counter_ns() - self.elements_ns[0]) / 1e9
        if elapsed_s < READ_ALONE_S.value:
            return False
        if self.ends_ns:
            is_whole = len(self.ends_ns) > 1 and self.ends_ns[-1][0] == len(self.elements_ns) - 1
            return is_whole or elapsed_s >= READ_ALONE_MAX_S.value
        return len(self.elements_ns) > buffered + 1 + READ_ALONE_ELEMENTS.value or elapsed_s >= READ_ALONE_MAX_S.value


def read_in_thread(
    iterator: Iterator[Any],
    dataset: Iterable[Any],
    buffered: int,
    unwatched: Callable[[], AbstractContextManager[None]],
) -> Arrivals:
    """Read the rest of an iterator, then its dataset again and again, in another thread.

    Args:
        iterator: The iterator.
        dataset: What to read after its end; empty: nothing.
        buffered: Number of elements that are ready.
        unwatched: As in `read_alone`.

    Returns:
        What came within `READ_ALONE_MAX_S`. The thread is left behind if it waits for an element then.
    """
    arrivals, is_over = Arrivals([time.perf_counter_ns()], cpu_ns=[time.process_time_ns()]), threading.Event()

    def read() -> None:
        current = iterator
        try:
            with unwatched():
                while not is_over.is_set() and not arrivals.is_enough(buffered):
                    try:
                        next(current)
                    except StopIteration:
                        count = len(arrivals.elements_ns) - 1
                        is_empty = bool(arrivals.ends_ns) and arrivals.ends_ns[-1][0] == count
                        arrivals.ends_ns.append((count, time.perf_counter_ns()))
                        if is_empty or arrivals.is_enough(buffered):
                            return
                        current = iter(dataset)
                    else:
                        arrivals.cpu_ns.append(time.process_time_ns())  # first, as the other list may be read meanwhile
                        arrivals.elements_ns.append(time.perf_counter_ns())
        except Exception:  # an error in data that the training has not reached
            return

    thread = threading.Thread(target=read, name="advisor-alone", daemon=True)
    thread.start()
    thread.join(READ_ALONE_MAX_S.value)
    is_over.set()
    return Arrivals(list(arrivals.elements_ns), list(arrivals.ends_ns), list(arrivals.cpu_ns))


def counted(arrivals: Arrivals, buffered: int) -> AloneReading | None:
    """Leave out the elements that were ready when reading began; if the data ended, all but whole epochs.

    Args:
        arrivals: What came, and when.
        buffered: How many elements were ready.

    Returns:
        The rest; None if it is too short.
    """
    if arrivals.ends_ns:
        (first, began_ns), (last, ended_ns) = arrivals.ends_ns[0], arrivals.ends_ns[-1]
        taken_ns = ended_ns - began_ns
    else:
        first, last = buffered + 1, len(arrivals.elements_ns) - 1
        taken_ns = arrivals.elements_ns[last] - arrivals.elements_ns[first] if first <= last else 0
    elements = last - first
    if elements < READ_ALONE_ELEMENTS.value or taken_ns < READ_ALONE_MIN_S.value * 1e9:
        return None
    return AloneReading(elements, taken_ns, arrivals.cpu_ns[last] - arrivals.cpu_ns[first] if arrivals.cpu_ns else None)


def shuffle_change(before: Any, after: Any) -> float:  # noqa: ANN401
    """Return by how many elements of the whole pipeline shuffle buffers were emptied or filled: those cost nothing, or twice.

    Args:
        before: tf.data's model of the iterator.
        after: The same later; None if there is none.
    """
    if after is None:
        return math.inf
    held = [_shuffled(model) for model in (before, after)]
    return sum(abs(held[1].get(key, 0.0) - held[0].get(key, 0.0)) for key in {*held[0], *held[1]})


def _shuffled(proto: Any) -> dict[int, float]:  # noqa: ANN401
    """Elements of the whole pipeline in each shuffle buffer. `repeat` makes the iterators of each epoch anew, with other keys."""
    delivered = proto.nodes[proto.output].num_elements
    return {
        key: node.buffered_elements * delivered / max(1, node.num_elements)
        for key, node in proto.nodes.items()
        if base_type(str(node.name)) in SHUFFLES
    }


def buffered_elements(proto: Any) -> float | None:  # noqa: ANN401
    """Return how many elements of the whole pipeline its buffers hold, without those of shuffle buffers and caches, which stay.

    Args:
        proto: tf.data's model of the running iterator.

    Returns:
        The number, which need not be an integer; 0 if it has delivered nothing yet, as at the start of an epoch; None if the
        model has no root.
    """
    root = proto.nodes.get(proto.output)
    if root is None:
        return None
    return float(
        sum(
            node.buffered_elements * root.num_elements / node.num_elements
            for node in proto.nodes.values()
            if node.num_elements and base_type(str(node.name)) not in _STAY_FULL
        )
    )


def waits(consumer: ConsumerSteps, levels: Iterable[BufferLevels]) -> bool:
    """Return whether most of the latest steps of a consumer waited for input, as far as it is known.

    The median leaves out steps at the start of an epoch, which are for the verdict to judge.

    Args:
        consumer: The consumer.
        levels: How full its last buffer was, for a consumer whose wait Python does not see.
    """
    latest = LATEST_STEPS.value
    steps = zip(consumer.starts[-latest:], consumer.ends[-latest:], consumer.waits[-latest:], strict=True)
    shares = [wait / (end - start) for start, end, wait in steps if end > start]
    if any(shares) and not consumer.kind.startswith("keras."):
        return median(shares) > READ_ALONE_WAIT_SHARE.value
    return any(level.elements and median(level.elements) == 0 for level in levels)


def stays_inside(consumer: ConsumerSteps, calls: tuple[Call, ...]) -> bool:
    """Return whether the elements are known to come from reviewed transformations and ops, without Python code or writes."""
    upstream = Lineage(calls).upstream(consumer.call_id) if consumer.call_id is not None else ()
    return bool(upstream) and all(map(_is_reviewed, upstream))


def _is_reviewed(call: Call) -> bool:
    function = call.function
    if call.method not in _METHODS or not _MADE_BY_TENSORFLOW.issuperset(call.unrecorded) or _writes_files(call):
        return False
    if function is None:
        return True
    if function.python_ops or not function.is_traced or function.stateful_ops is None:
        return False
    return all(map(_is_reviewed_op, set(function.stateful_ops).difference(function.random_ops)))


def _writes_files(call: Call) -> bool:
    """Whether the transformation itself writes files while it is read."""
    return call.method == "snapshot" or (call.method == "cache" and call.arguments.get("filename") not in (None, ""))


def _is_reviewed_op(op: str) -> bool:
    kind = op_effects.dataset_type(op)
    return op_effects.reason_against(op) is None if kind is None else kind in _DATASET_OPS
