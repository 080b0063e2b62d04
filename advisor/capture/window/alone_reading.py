"""Reads the training's pipeline for a second without training, when the script is about to be stopped after its window.

In: the consumer, in its thread, at a step boundary.  Out: `AloneReading`. There is none if reading on could be noticed outside
the script (Python generators and functions, tf.data service), if steps wait for input, or if too few elements came.

The elements that are in the pipeline's buffers come at once, so they are not counted. If the data end, they are read once more,
as in the next epoch of the training, and the start of that epoch counts.
"""

from __future__ import annotations

import contextlib
import math
import time
from collections.abc import Iterable, Iterator, Sequence
from statistics import median
from typing import Any

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.capture.instrument.iterator_model import model_now
from advisor.host.calibration.capture import LATEST_STEPS
from advisor.host.calibration.window import (
    READ_ALONE_BYTES,
    READ_ALONE_ELEMENTS,
    READ_ALONE_MAX_S,
    READ_ALONE_MIN_S,
    READ_ALONE_S,
    READ_ALONE_WAIT_SHARE,
)
from advisor.model.calls import Call
from advisor.model.catalog import SHUFFLES, base_type
from advisor.model.lineage import Lineage
from advisor.model.recording import AloneReading, BufferLevels

_OUTSIDE = ("DataService", "Generator")
"""Beginnings of the types of iterators whose elements come from outside TensorFlow."""
_OUTSIDE_METHODS = frozenset({"from_dataset_id", "from_generator"})


def read_alone(consumer: ConsumerSteps, calls: tuple[Call, ...], levels: Sequence[BufferLevels]) -> AloneReading | None:
    """Read on from the consumer's iterator. The script must not go on afterwards: it would miss these elements.

    Args:
        consumer: The consumer, whose thread this is.
        calls: All recorded calls.
        levels: How full its last buffer was; empty if that is unknown.

    Returns:
        What was read; None if nothing may or need be read, or if too little came.
    """
    from tensorflow.python.data.ops.iterator_ops import OwnedIterator

    iterator = consumer.iterator() if consumer.iterator is not None else None
    if not isinstance(iterator, OwnedIterator) or waits(consumer, levels) or not stays_inside(consumer, calls):
        return None
    proto = model_now(consumer)
    if proto is None or any(str(node.name).startswith(_OUTSIDE) for node in proto.nodes.values()):
        return None
    buffered = buffered_elements(proto)
    if buffered is None:
        return None
    # A second iterator has buffers of its own, while the script keeps those of the first.
    has_room = sum(int(node.buffered_bytes) for node in proto.nodes.values()) <= READ_ALONE_BYTES.value
    dataset = getattr(iterator, "_dataset", None) if has_room else None
    return counted(_arrivals_ns(_elements(iterator, dataset), math.ceil(buffered)), math.ceil(buffered))


def _elements(iterator: Iterator[Any], dataset: Iterable[Any] | None) -> Iterator[None]:
    """Read the rest of an iterator, and then its dataset again and again, as long as there are elements."""
    is_more = True
    while is_more:
        is_more = False
        for _ in iterator:
            is_more = dataset is not None
            yield
        iterator = iter(dataset or ())


def _arrivals_ns(elements: Iterator[None], buffered: int) -> list[int]:
    """Read for about a second; return when reading began and when each element had come."""
    arrivals = [time.perf_counter_ns()]
    wanted = buffered + 1 + READ_ALONE_ELEMENTS.value
    with contextlib.suppress(Exception):  # an error in data that the training has not reached
        for _ in elements:
            arrivals.append(time.perf_counter_ns())
            elapsed_s = (arrivals[-1] - arrivals[0]) / 1e9
            if elapsed_s >= (READ_ALONE_S.value if len(arrivals) > wanted else READ_ALONE_MAX_S.value):
                break
    return arrivals


def counted(arrivals_ns: Sequence[int], buffered: int) -> AloneReading | None:
    """Leave out the elements that were ready when reading began.

    Args:
        arrivals_ns: When reading began, and when each element had come.
        buffered: How many elements were ready.

    Returns:
        The rest; None if it is too short.
    """
    rest = arrivals_ns[buffered + 1 :]
    if len(rest) <= READ_ALONE_ELEMENTS.value or rest[-1] - rest[0] < READ_ALONE_MIN_S.value * 1e9:
        return None
    return AloneReading(len(rest) - 1, rest[-1] - rest[0])


def buffered_elements(proto: Any) -> float | None:  # noqa: ANN401
    """Return how many elements of the whole pipeline its buffers hold, without those of shuffle buffers, which stay full.

    Args:
        proto: tf.data's model of the running iterator.

    Returns:
        The number, which need not be an integer; None if the iterator has delivered nothing.
    """
    root = proto.nodes.get(proto.output)
    if root is None or not root.num_elements:
        return None
    return float(
        sum(
            node.buffered_elements * root.num_elements / node.num_elements
            for node in proto.nodes.values()
            if node.num_elements and base_type(str(node.name)) not in SHUFFLES
        )
    )


def waits(consumer: ConsumerSteps, levels: Iterable[BufferLevels]) -> bool:
    """Return whether the latest steps of a consumer waited for input, as far as it is known."""
    latest = LATEST_STEPS.value
    wait_ns = sum(consumer.waits[-latest:])
    total_ns = sum(consumer.ends[-latest:]) - sum(consumer.starts[-latest:])
    if wait_ns and not consumer.kind.startswith("keras."):
        return wait_ns > READ_ALONE_WAIT_SHARE.value * total_ns
    return any(level.elements and median(level.elements) == 0 for level in levels)


def stays_inside(consumer: ConsumerSteps, calls: tuple[Call, ...]) -> bool:
    """Return whether the elements are known to come from TensorFlow's own transformations, without Python code."""
    upstream = Lineage(calls).upstream(consumer.call_id) if consumer.call_id is not None else ()
    return bool(upstream) and not any(_may_reach_outside(call) for call in upstream)


def _may_reach_outside(call: Call) -> bool:
    function = call.function
    has_python = function is not None and (bool(function.python_ops) or not function.is_traced)
    return has_python or call.method in _OUTSIDE_METHODS
