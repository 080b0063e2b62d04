"""Finds the graph of the recorded calls of an analysis; it is built once.

In: an `Analysis`.  Out: its `RecordedGraph`.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from advisor.model.pipeline import Analysis

if TYPE_CHECKING:
    from advisor.model.recorded_graph import RecordedGraph

_MOST_KEPT = 4
"""Number of graphs that are cached."""

_graphs: OrderedDict[int, RecordedGraph] = OrderedDict()
"""By identity of the tuple of calls. The graph references the tuple, so that its identity is not reused."""


def graph_of(analysis: Analysis) -> RecordedGraph:
    """Return the graph of the calls of an analysis. The most recent graphs are cached."""
    key = id(analysis.calls)
    graph = _graphs.get(key)
    if graph is None or graph.calls is not analysis.calls:
        from advisor.model.recorded_graph import RecordedGraph  # `advisor rules` needs no networkx

        graph = _graphs[key] = RecordedGraph(analysis.calls)
        while len(_graphs) > _MOST_KEPT:
            _graphs.popitem(last=False)
    return graph
