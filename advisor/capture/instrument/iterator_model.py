"""Reads tf.data's own performance model of the running iterators, as the difference between two points in time.

In: the iterators of the consumers.  Out: `IteratorModel`s. The API is private; if TensorFlow does not have it, there are none.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.model.catalog import BOOKKEEPING, base_type
from advisor.model.window_readings import IteratorModel, ModelNode

_ENDS_APART_NS = 1_000_000_000
"""Reading a model took 8 us in the median of 50, and 1.7 ms at most (two cores, a pipeline of four iterators)."""
_NO_WORK = BOOKKEEPING | {"AssertCardinality", "Repeat", "Skip", "Take"}
"""Types of iterators that pass elements on as they are."""


Identity = tuple[int, int]
"""Number of the consumer's iterator, and its address: a later one may be at the address of one that no longer exists."""


def model_nodes(consumers: Consumers) -> dict[str, tuple[Identity, Any]]:
    """Return the models of all running iterators.

    Returns:
        Consumer id -> (identity of its iterator, its model proto). Consumers without a model are left out.
    """
    models = {}
    for consumer in consumers.all():
        iterator = consumer.iterator() if consumer.iterator is not None else None
        proto = None if iterator is None else _proto(iterator)
        if proto is not None:
            models[consumer.id] = (_identity(consumer, iterator), proto)
    return models


def elements_produced(consumer: ConsumerSteps) -> tuple[Identity, int] | None:
    """Return (identity of the consumer's iterator, elements that it has produced); None if there is no model of it.

    A distributed iterator has one iterator per device, each of which produces one element per step.
    """
    iterator = consumer.iterator() if consumer.iterator is not None else None
    proto = None if iterator is None else _proto(_of_first_device(iterator))
    if proto is None or proto.output not in proto.nodes:
        return None
    return _identity(consumer, iterator), int(proto.nodes[proto.output].num_elements)


def note_end(consumer: ConsumerSteps, iterator: Any, now_ns: int) -> None:  # noqa: ANN401
    """Keep the model of an iterator that has no more elements, at most once per second.

    In short epochs the iterator of the moment has often produced nothing when a window closes.

    Args:
        consumer: The consumer.
        iterator: Its iterator.
        now_ns: The time.
    """
    if now_ns - consumer.ended_model_ns >= _ENDS_APART_NS:
        consumer.ended_model, consumer.ended_model_ns = _proto(iterator) or consumer.ended_model, now_ns


def model_deltas(
    consumers: Consumers, start: dict[str, tuple[Identity, Any]], since_ns: int = 0
) -> tuple[IteratorModel, ...]:
    """Return the current models minus those at the start.

    Args:
        consumers: The consumers.
        start: Result of an earlier call of `model_nodes`. The model of an iterator that did not exist then is returned as it is,
            and so is that of the last iterator that has ended, if the present one has produced nothing.
        since_ns: Unix time of the start, in ns; iterators that ended before it do not count.
    """
    models = []
    running = model_nodes(consumers)
    ended = {
        consumer.id: consumer.ended_model
        for consumer in consumers.all()
        if consumer.ended_model is not None and consumer.ended_model_ns >= since_ns
    }
    for consumer_id in dict.fromkeys((*running, *ended)):
        now, earlier = running.get(consumer_id), start.get(consumer_id)
        is_of_ended = (now is None or not _has_elements(now[1])) and consumer_id in ended
        proto: Any = ended[consumer_id] if is_of_ended or now is None else now[1]
        is_delta = not is_of_ended and earlier is not None and now is not None and earlier[0] == now[0]
        earlier_nodes = {} if earlier is None or not is_delta else dict(earlier[1].nodes)
        nodes = tuple(_node(key, node, earlier_nodes.get(key)) for key, node in sorted(proto.nodes.items()))
        models.append(IteratorModel(consumer_id, int(proto.output), nodes, is_delta))
    return tuple(models)


@dataclass(frozen=True, slots=True)
class LastBuffer:
    """The buffer of the asynchronous iterator nearest to the consumer."""

    transformation: str
    elements: float
    capacity: float
    is_last: bool
    """Whether nothing between it and the consumer does any work."""
    elements_taken: int
    """Elements that the whole iterator has delivered."""


def last_buffer(proto: Any) -> LastBuffer | None:  # noqa: ANN401
    """Return the buffer nearest to the consumer in a model of a running iterator; None if there is none."""
    key, seen, is_last = int(proto.output), 0, True
    while key in proto.nodes and seen < len(proto.nodes):
        node, seen = proto.nodes[key], seen + 1
        sizes = [float(item.value) for item in node.parameters if str(item.name) in ("buffer_size", "parallelism")]
        if sizes and max(sizes) >= 1:
            taken = int(proto.nodes[proto.output].num_elements)
            return LastBuffer(str(node.name), float(node.buffered_elements), max(sizes), is_last, taken)
        if not node.inputs:
            break
        is_last = is_last and base_type(str(node.name)) in _NO_WORK
        key = int(node.inputs[0])
    return None


def model_now(consumer: ConsumerSteps) -> Any | None:  # noqa: ANN401
    """Return the model proto of a consumer's iterator; None if there is none."""
    iterator = consumer.iterator() if consumer.iterator is not None else None
    return None if iterator is None else _proto(iterator)


def buffer_now(consumer: ConsumerSteps) -> LastBuffer | None:
    """Return the last buffer of a consumer's iterator; None if there is no model of it, or no buffer at its end."""
    proto = model_now(consumer)
    buffer = None if proto is None else last_buffer(proto)
    return buffer if buffer is not None and buffer.is_last else None


def _has_elements(proto: Any) -> bool:  # noqa: ANN401
    return proto.output in proto.nodes and proto.nodes[proto.output].num_elements > 0


def _identity(consumer: ConsumerSteps, iterator: Any) -> Identity:  # noqa: ANN401
    return consumer.iterators, id(iterator)


def _of_first_device(iterator: Any) -> Any:  # noqa: ANN401
    """Return the iterator of the first device of a distributed iterator; other iterators as they are.

    The attributes are private: the workers' iterators, that of one worker, and those of its devices.
    """
    for name in ("_iterators", "_iterator", "_device_iterators"):
        inner = getattr(iterator, name, None)
        if isinstance(inner, list | tuple):
            inner = inner[0] if inner else None
        iterator = iterator if inner is None else inner
    return iterator


def _proto(iterator: Any) -> Any:  # noqa: ANN401
    try:
        from tensorflow.python.data.experimental.ops.iterator_model_ops import get_model_proto

        return get_model_proto(iterator)
    except Exception:  # private, missing in some versions, fails without autotuning and for device iterators
        return None


def _node(key: int, node: Any, earlier: Any) -> ModelNode:  # noqa: ANN401
    def increase(field: str) -> int:
        return int(getattr(node, field)) - (int(getattr(earlier, field)) if earlier is not None else 0)

    return ModelNode(
        id=int(key),
        name=str(node.name),
        inputs=tuple(int(i) for i in node.inputs),
        num_elements=increase("num_elements"),
        bytes_produced=increase("bytes_produced"),
        processing_time_ns=increase("processing_time"),
        buffered_elements=int(node.buffered_elements),
        buffered_bytes=int(node.buffered_bytes),
        ratio=float(node.ratio),
        parameters={str(p.name): float(p.value) for p in node.parameters},
    )


__all__ = [
    "LastBuffer", "buffer_now", "elements_produced", "last_buffer", "model_deltas", "model_nodes", "model_now",
]  # fmt: skip
