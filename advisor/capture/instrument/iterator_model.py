"""tf.data's own model of the running iterators, as the difference between two instants.

In: the tracks' iterators.  Out: `IteratorModel`s. The API is private: without it there are none.
"""

from __future__ import annotations

from typing import Any

from advisor.capture.instrument.consumers import Track, Tracks
from advisor.model.recording import IteratorModel, ModelNode


def model_nodes(tracks: Tracks) -> dict[str, tuple[int, Any]]:
    """consumer id -> (identity of its iterator, its model proto), of those that have a running iterator with a model."""
    found = {}
    for track in tracks.all():
        iterator = track.iterator() if track.iterator is not None else None
        proto = None if iterator is None else _proto(iterator)
        if proto is not None:
            found[track.id] = (id(iterator), proto)
    return found


def model_deltas(tracks: Tracks, start: dict[str, tuple[int, Any]]) -> tuple[IteratorModel, ...]:
    """The models now, minus those at the start where the iterator is still the same one."""
    models = []
    for consumer_id, (identity, proto) in model_nodes(tracks).items():
        before = start.get(consumer_id)
        is_delta = before is not None and before[0] == identity
        old = {} if before is None or not is_delta else dict(before[1].nodes)
        nodes = tuple(_node(key, node, old.get(key)) for key, node in sorted(proto.nodes.items()))
        models.append(IteratorModel(consumer_id, int(proto.output), nodes, is_delta))
    return tuple(models)


def _proto(iterator: Any) -> Any:  # noqa: ANN401
    try:
        from tensorflow.python.data.experimental.ops.iterator_model_ops import get_model_proto

        return get_model_proto(iterator)
    except Exception:  # private, absent in some versions, refused with autotune off or for device iterators
        return None


def _node(key: int, node: Any, old: Any) -> ModelNode:  # noqa: ANN401
    def grown(field: str) -> int:
        return int(getattr(node, field)) - (int(getattr(old, field)) if old is not None else 0)

    return ModelNode(
        id=int(key),
        name=str(node.name),
        inputs=tuple(int(i) for i in node.inputs),
        num_elements=grown("num_elements"),
        bytes_produced=grown("bytes_produced"),
        bytes_consumed=grown("bytes_consumed"),
        processing_time_ns=grown("processing_time"),
        buffered_elements=int(node.buffered_elements),
        buffered_bytes=int(node.buffered_bytes),
        ratio=float(node.ratio),
        parameters={str(p.name): float(p.value) for p in node.parameters},
    )


__all__ = ["Track", "model_deltas", "model_nodes"]
