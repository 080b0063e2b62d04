"""The recorded calls as graphs: which calls consume which, and which calls are made inside which.

In: the calls of a recording.  Out: `RecordedGraph`. This is the one place where calls are followed to their inputs. This module
imports networkx, so it is not imported while a script trains (`lineage` is for that), nor by commands that read no recording.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain, takewhile

import networkx as nx

from advisor.model.calls import Call
from advisor.model.lineage import Lineage


class RecordedGraph:
    """The calls of one recording, and the paths between them."""

    def __init__(self, calls: tuple[Call, ...]) -> None:
        self.calls = calls
        self.by_id: Mapping[str, Call] = {call.id: call for call in calls}
        self.lineage = Lineage(calls)
        self._place = {call_id: place for place, call_id in enumerate(self.by_id)}
        self._dataflow: nx.DiGraph[str] = nx.DiGraph()
        """Edges run from an input to its consumer. The predecessors of a call are in the order of its inputs."""
        self._made_inside: nx.DiGraph[str] = nx.DiGraph()
        """Edges run from a call to the calls made inside its function, or by the call itself."""
        self._dataflow.add_nodes_from(self.by_id)
        self._made_inside.add_nodes_from(self.by_id)
        for call in self.by_id.values():
            self._dataflow.add_edges_from((i, call.id) for i in call.inputs if i in self.by_id)
            owners = (call.nested_in, call.made_by)
            self._made_inside.add_edges_from((i, call.id) for i in owners if i in self.by_id and i != call.id)
        self._requests = self._dataflow.reverse(copy=False)
        self._upstream: dict[str, tuple[Call, ...]] = {}

    def upstream(self, call: Call) -> tuple[Call, ...]:
        """Return the call and everything that its elements come from, nearest first."""
        known = self._upstream.get(call.id)
        if known is None:
            layers = nx.bfs_layers(self._requests, [call.id])
            known = self._upstream[call.id] = tuple(self.by_id[i] for layer in layers for i in layer)
        return known

    def line(self, call: Call) -> tuple[Call, ...]:
        """Return a call and what is upstream of it, nearest first, up to a call that has no input or several."""
        upstream = self.upstream(call)
        inner = tuple(takewhile(lambda other: len(other.inputs) == 1, upstream))
        return upstream[: len(inner) + 1]

    def upstream_of_all(self, calls: Iterable[Call]) -> tuple[Call, ...]:
        """Return several calls and everything that their elements come from, nearest to any of them first."""
        layers = nx.bfs_layers(self._requests, [call.id for call in calls])
        return self._in_order(layers)  # networkx starts with several nodes in the order of a set

    def downstream(self, call: Call) -> frozenset[str]:
        """Return the ids of all calls that consume the elements of a call, directly or through others."""
        return frozenset(nx.descendants(self._dataflow, call.id))

    def downstream_first(self, call: Call) -> Iterator[Call]:
        """Yield everything downstream of a call and then the call, each after all of its consumers."""
        return (self.by_id[i] for i in nx.dfs_postorder_nodes(self._dataflow, call.id))

    def line_after(self, call: Call) -> tuple[Call, ...] | None:
        """Return the calls downstream of a call, nearest first; None if it or one of them has several consumers."""
        ids = list(nx.dfs_preorder_nodes(self._dataflow, call.id))
        if any(self._dataflow.out_degree(i) > 1 for i in ids):
            return None
        return tuple(self.by_id[i] for i in ids[1:])

    def is_consumed(self, call: Call) -> bool:
        """Return whether another call consumes the dataset."""
        return self._dataflow.out_degree(call.id) > 0

    def end_of(self, call: Call) -> Call:
        """Return the last call of the dataset that a call belongs to; of several datasets, the one built on it first."""
        order = nx.dfs_preorder_nodes(self._dataflow, call.id)
        return next(self.by_id[i] for i in order if not self._dataflow.out_degree(i))

    def path(self, call: Call, downstream: Call) -> tuple[Call, ...] | None:
        """Return the calls on a shortest path from `call` (exclusive) to one that consumes it; None if they are not connected."""
        try:
            ids = nx.shortest_path(self._dataflow, call.id, downstream.id)
        except nx.NetworkXNoPath:
            return None
        return tuple(self.by_id[i] for i in ids[1:])

    def always_through(self, call: Call, downstream: Call, stops: frozenset[str]) -> bool:
        """Return whether every path from `call` to a call that consumes it leads through one of `stops`, or ends there.

        For one stop, this asks whether it dominates `downstream`; caches in both branches of a `zip` do so only together.

        Args:
            call: Where the paths start.
            downstream: Where they end.
            stops: Ids of calls.
        """
        if downstream.id in stops:
            return True
        return not nx.has_path(nx.restricted_view(self._dataflow, stops, ()), call.id, downstream.id)

    def nested(self, call: Call) -> tuple[Call, ...]:
        """Return the calls made inside a call, at any depth, those of one depth in the order of the recording."""
        _, *layers = nx.bfs_layers(self._made_inside, [call.id])
        return self._in_order(layers)

    def _in_order(self, layers: Iterable[list[str]]) -> tuple[Call, ...]:
        """The calls of each layer in the order of the recording."""
        ids = chain.from_iterable(sorted(layer, key=self._place.__getitem__) for layer in layers)
        return tuple(self.by_id[i] for i in ids)
