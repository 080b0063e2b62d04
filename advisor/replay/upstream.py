"""Determines whether an edit changes a recorded call or its upstream calls, and whether two pipelines may share its dataset.

In: the recorder with its kept calls, and the ids of the edited calls.  Out: answers.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

import networkx as nx

from advisor.capture.instrument.recorder import Recorder
from advisor.capture.instrument.replay_log import DATA_SOURCES, ReplayLog
from advisor.model.calls import Call

_STATELESS = frozenset(
    {
        "CsvDataset", "FixedLengthRecordDataset", "SqlDataset", "TFRecordDataset", "TextLineDataset", "batch",
        "choose_from_datasets", "concatenate", "enumerate", "filter", "flat_map", "from_generator", "interleave", "map",
        "padded_batch", "prefetch", "ragged_batch", "range", "rebatch", "repeat", "scan", "shard", "skip", "sparse_batch",
        "take", "take_while", "unbatch", "unique", "window", "with_options", "zip", *DATA_SOURCES,
    }
)  # fmt: skip
"""Methods whose dataset object two pipelines may share, provided that its functions are stateless, too."""


class Upstream:
    """Facts about a call and its upstream calls: the calls made inside its function count as upstream, too.

    Args:
        recorder: The recorder of the calls.
        log: Its replay log.
        targets: Ids of the edited calls.
    """

    def __init__(self, recorder: Recorder, log: ReplayLog, targets: Collection[str]) -> None:
        graph = replayed_calls(recorder, log)
        self._touched = _with_descendants(graph, targets)
        self._keeping_state = _with_descendants(graph, (c.id for c in recorder.calls() if not _is_stateless(c)))

    def is_touched(self, call_id: str) -> bool:
        """Return whether an edit changes the call or one upstream of it."""
        return call_id in self._touched

    def is_free(self, call_id: str) -> bool:
        """Return whether neither the call nor any upstream call keeps state that iterators share."""
        return call_id not in self._keeping_state


def replayed_calls(recorder: Recorder, log: ReplayLog) -> nx.DiGraph[str]:
    """Return the calls of a recorder as a graph: edges run to each call from its inputs and from the calls made inside it.

    Args:
        recorder: A closed recorder, which knows the inputs of each call.
        log: Its replay log, which knows the calls made inside each call.
    """
    graph: nx.DiGraph[str] = nx.DiGraph()
    graph.add_edges_from((input_id, call.id) for call in recorder.calls() for input_id in call.inputs)
    graph.add_edges_from((inner_id, call_id) for call_id, inner in log.inner.items() for inner_id, _ in inner)
    return graph


def _with_descendants(graph: nx.DiGraph[str], call_ids: Iterable[str]) -> frozenset[str]:
    starts = set(call_ids)
    return frozenset(starts.union(*(nx.descendants(graph, call_id) for call_id in starts if call_id in graph)))


def _is_stateless(call: Call) -> bool:
    if call.method == "from_generator" or call.made_by is not None:
        return call.method in _STATELESS
    facts = call.function
    has_state = facts is not None and (facts.is_stateful or bool(facts.random_ops) or bool(facts.python_ops))
    return call.method in _STATELESS and not has_state
