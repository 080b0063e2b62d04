"""Reads tf.data's own performance model of the running iterators, as the difference between two points in time.

In: the iterators of the consumers.  Out: `IteratorModel`s. The API is private; if TensorFlow does not have it, there are none.
"""

from __future__ import annotations

from typing import Any

from advisor.capture.instrument.consumers import Track, Tracks
from advisor.model.recording import IteratorModel, ModelNode


def model_nodes(tracks: Tracks) -> dict[str, tuple[int, Any]]:
    """Return the models of all running iterators.

    Returns:
        Consumer id -> (identity of its iterator, its model proto). Consumers without a model are left out.
    """
    models = {}
    for track in tracks.all():
        iterator = track.iterator() if track.iterator is not None else None
        proto = None if iterator is None else _proto(iterator)
        if proto is not None:
            models[track.id] = (id(iterator), proto)
    return models


def elements_produced(track: Track) -> tuple[int, int] | None:
    """Return (identity of the consumer's iterator, elements that it has produced); None if there is no model of it.

    A distributed iterator has one iterator per device, each of which produces one element per step.
    """
    iterator = track.iterator() if track.iterator is not None else None
    proto = None if iterator is None else _proto(_of_first_device(iterator))
    if proto is None or proto.output not in proto.nodes:
        return None
    return id(iterator), int(proto.nodes[proto.output].num_elements)


def model_deltas(tracks: Tracks, start: dict[str, tuple[int, Any]]) -> tuple[IteratorModel, ...]:
    """Return the current models minus those at the start.

    Args:
        tracks: The consumers.
        start: Result of an earlier call of `model_nodes`. The model of an iterator that did not exist then is returned as it is.
    """
    models = []
    for consumer_id, (identity, proto) in model_nodes(tracks).items():
        earlier = start.get(consumer_id)
        is_delta = earlier is not None and earlier[0] == identity
        earlier_nodes = {} if earlier is None or not is_delta else dict(earlier[1].nodes)
        nodes = tuple(_node(key, node, earlier_nodes.get(key)) for key, node in sorted(proto.nodes.items()))
        models.append(IteratorModel(consumer_id, int(proto.output), nodes, is_delta))
    return tuple(models)


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
        bytes_consumed=increase("bytes_consumed"),
        processing_time_ns=increase("processing_time"),
        buffered_elements=int(node.buffered_elements),
        buffered_bytes=int(node.buffered_bytes),
        ratio=float(node.ratio),
        parameters={str(p.name): float(p.value) for p in node.parameters},
    )


__all__ = ["Track", "model_deltas", "model_nodes"]
