"""Aligns tf.data's own performance models of running iterators with the nodes of a pipeline.

In: the recording, the pipeline's root, and its calls.  Out: `Models`: element size and unprofiled cost per node.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from advisor.graph.node_calls import calls_of
from advisor.graph.nodes import Forest, Node
from advisor.host.calibration.analysis import FEW_MODELLED
from advisor.model.calls import Call
from advisor.model.recording import Recording
from advisor.model.window_readings import IteratorModel, ModelNode

MAX_CALLS_WITHOUT_ITERATOR = 20
"""Maximum number of calls without an iterator between a consumer and the pipeline's last iterator."""


class Models:
    """The models of one pipeline, where recorded: one of the profiled window and one of the unprofiled stretch."""

    def __init__(self, forest: Forest, root: Node, recording: Recording | None, calls: Mapping[str, Call]) -> None:
        """Align the models with the nodes of one pipeline.

        Args:
            forest: The executed graph.
            root: Root of the executed pipeline.
            recording: The recording with tf.data's models; None if there is none.
            calls: Dataset name -> recorded call.
        """
        self.window = self._unprofiled = None
        if recording is not None:
            ids = {call.id for node in forest.upstream(root) for call in calls_of(forest, node, calls)}
            consumers = {c.id: executed_call(calls, c.call_id, ids) is not None for c in recording.consumers}
            self.window = _of_consumers(recording.models, consumers)
            self._unprofiled = _of_consumers(recording.plain_models, consumers)
        self._nodes = _aligned(forest, root, self.window)
        self._unprofiled_nodes = _aligned(forest, root, self._unprofiled)

    def element_bytes(self, node: Node, calls: Sequence[Call]) -> int | None:
        """Return the mean size in bytes of a node's elements: measured, or else from the static shapes of its calls."""
        for model in (self._nodes.get(node.index), self._unprofiled_nodes.get(node.index)):
            if model is not None and model.num_elements and model.bytes_produced:
                return model.bytes_produced // model.num_elements
        return calls[-1].element_bytes if calls else None

    def unprofiled_ns(self, node: Node) -> float | None:
        """Return a node's own work per element in nanoseconds without the profiler; None if unknown."""
        model = self._unprofiled_nodes.get(node.index)
        if model is None or model.num_elements < FEW_MODELLED.value or model.processing_time_ns <= 0:
            return None
        return model.processing_time_ns / model.num_elements


def executed_call(calls: Mapping[str, Call], call_id: str | None, ids: set[str]) -> str | None:
    """Return the call or the nearest one upstream that has an iterator; `with_options`, for example, has none.

    Args:
        calls: Call id -> recorded call.
        call_id: The call to start from.
        ids: Ids of the calls that have an iterator.
    """
    seen = 0
    while call_id is not None and call_id not in ids and seen < MAX_CALLS_WITHOUT_ITERATOR:
        call = calls.get(call_id)
        call_id = call.inputs[0] if call is not None and len(call.inputs) == 1 else None
        seen += 1
    return call_id if call_id in ids else None


def _of_consumers(models: Sequence[IteratorModel], consumers: Mapping[str, bool]) -> IteratorModel | None:
    """The model whose consumer reads from this pipeline."""
    return next((model for model in models if consumers.get(model.consumer_id)), None)


def _aligned(forest: Forest, root: Node, model: IteratorModel | None) -> dict[int, ModelNode]:
    """Walk both trees together and pair inputs of the same type in order; nodes without a counterpart are left out."""
    if model is None:
        return {}
    nodes = {node.id: node for node in model.nodes}
    aligned: dict[int, ModelNode] = {}
    pairs = [(root, nodes.get(model.output))]
    while pairs:
        node, partner = pairs.pop()
        if partner is None or node.index in aligned:
            continue
        aligned[node.index] = partner
        rest = [nodes[i] for i in partner.inputs if i in nodes]
        for child in forest.inputs(node):
            match = next((m for m in rest if m.name == child.type), None)
            if match is not None:
                rest.remove(match)
                pairs.append((child, match))
    return aligned
