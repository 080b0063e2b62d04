"""The fast attribution equals the one written down moment by moment, on recorded runs and on random timelines."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import networkx as nx
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.graph import analyse, assemble, slowest_calls
from advisor.graph.attribution import Blame, attribute
from advisor.graph.event_nesting import Ints
from advisor.graph.nodes import Forest, Node
from advisor.graph.thread_states import Activity, Timeline
from advisor.model.catalog import ASYNC
from advisor.model.codec import decode
from advisor.model.recording import Recording
from advisor.model.trace import EventKind
from advisor.profile import read_trace
from tests.effort import examples
from tests.graph.attribution_by_states import attribute_by_states

DATA = Path(__file__).parents[1] / "data"
SHARED = Path(__file__).parents[2] / "../shared/profiles"
RUNS = sorted(
    [path.parent for path in DATA.glob("*/recording.json")]
    + list(DATA.glob("*/*.xplane.pb.gz"))
    + [path for path in SHARED.glob("*") if (path / "plugins").is_dir() and path.name != "corrupt-utf8"]
)


def assert_equal(fast: Blame, slow: Blame) -> None:
    assert fast.total_ns == slow.total_ns
    assert fast.waited_for_ns == slow.waited_for_ns
    assert fast.idle_ns == slow.idle_ns
    # a blame of exactly 0 may be left out
    assert {node for node, blame in fast.blame_ns.items() if not blame > 0} == set()
    assert fast.blame_ns == pytest.approx({n: blame for n, blame in slow.blame_ns.items() if blame}, rel=1e-9)


@pytest.mark.long
@pytest.mark.parametrize("run", RUNS, ids=lambda run: run.name.removesuffix(".xplane.pb.gz"))
def test_equal_on_recorded_runs(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever the analysis of a run attributes: the steps and the slowest calls of every pipeline."""
    compared = []

    def both(
        timeline: Timeline, forest: Forest, root: int, intervals: tuple[Ints, Ints], parallelism: Mapping[int, int]
    ) -> Blame:
        slow = attribute_by_states(timeline, forest, root, intervals, parallelism)
        for most_counts in (2**20, 1000):
            assert_equal(attribute(timeline, forest, root, intervals, parallelism, most_counts), slow)
        compared.append(slow.total_ns)
        return slow

    monkeypatch.setattr(assemble, "attribute", both)
    monkeypatch.setattr(slowest_calls, "attribute", both)
    file = run / "recording.json"
    recording = decode(file.read_bytes(), Recording) if file.exists() else None
    analysis = analyse(read_trace(run), recording, run.name)
    called = [pipeline for pipeline in analysis.pipelines if pipeline.slowest_calls and not pipeline.serves_elements]
    assert len(compared) >= len(called)
    if run.is_relative_to(DATA):
        assert sum(compared) > 0


TYPES = ["Map", "Range", "Generator", "Generator", "Prefetch", "ParallelInterleaveV4", "ParallelMapV2", "MapAndBatch"]
KINDS = [EventKind.ITERATOR, EventKind.PRODUCE, EventKind.PRODUCE, EventKind.PRODUCE, EventKind.EXECUTOR]


@st.composite
def forests(draw: st.DrawFn) -> Forest:
    """Trees of random types, mostly one, numbered so that consumers precede their inputs."""
    count = draw(st.integers(2, 6))
    consumers = [-1, 0, *(draw(st.integers(-1, index - 1)) for index in range(2, count))]
    nodes = [Node(index, draw(st.sampled_from(TYPES)), f"d{index}", "") for index in range(count)]
    graph: nx.DiGraph[int] = nx.DiGraph()
    graph.add_nodes_from(range(count))
    for node, consumer in zip(nodes, consumers, strict=True):
        if consumer >= 0:
            graph.add_edge(node.index, consumer)
        node.pipeline = nodes[consumer].pipeline if consumer >= 0 else node.index
    return Forest(nodes, graph, {})


@st.composite
def activities(draw: st.DrawFn, forest: Forest, is_proper: bool) -> Activity:
    """One activity; a proper worker is upstream of the node that it works for, so that no worker waits for itself."""
    kind = draw(st.sampled_from(KINDS))
    is_multi_device = kind == EventKind.ITERATOR and draw(st.booleans())
    tops = forest.nodes
    if is_multi_device:
        tops = [i for node in forest.nodes if node.base == "Generator" for i in forest.inputs(node)] or tops
    elif kind == EventKind.ITERATOR:
        tops = draw(st.sampled_from([tops, tops[:1], tops[:1]]))
    elif kind == EventKind.PRODUCE:
        tops = [node for node in tops if node.base in ASYNC] or tops
    top = draw(st.sampled_from(tops))
    leaf = draw(st.sampled_from(forest.upstream(top) if is_proper else forest.nodes))
    is_in_function = draw(st.sampled_from([False, False, True]))
    return Activity(kind, top.index, leaf.index, is_in_function, is_multi_device)


@st.composite
def cases(draw: st.DrawFn) -> tuple[Timeline, Forest, tuple[Ints, Ints], dict[int, int]]:
    """A consumer that mostly waits, workers that change all the time, some at the same instant, and any intervals."""
    forest = draw(forests())
    is_proper = draw(st.booleans())
    own = forest.upstream(forest.nodes[0])
    leaf = draw(st.sampled_from([node for node in own if node.base in {*ASYNC, "Generator"}] or own))
    waiting = Activity(EventKind.ITERATOR, 0, leaf.index, draw(st.booleans()))
    some = draw(st.lists(activities(forest, is_proper), min_size=1, max_size=20))
    known = list(dict.fromkeys([waiting, *some]))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    last = draw(st.sampled_from([30, 10**6, 10**12]))
    times, codes = [], []
    for thread in range(draw(st.integers(1, 8))):
        length = draw(st.integers(0, 40))
        times.append(np.sort(random.integers(0, last, length)))
        codes.append(random.integers(-1, len(known), length, dtype=np.int32))
        if thread == 0:
            codes[0][random.random(length) < 0.7] = 0
        codes[-1][-1:] = -1  # every call ends
    bounds = np.unique(random.integers(0, last + 1, 2 * draw(st.integers(1, 10))))
    bounds = bounds[: len(bounds) // 2 * 2]
    parallelism = {node.index: draw(st.integers(0, 16)) for node in forest.nodes}
    timeline = Timeline(known, times, codes, [], {}, frozenset(), {})
    return timeline, forest, (bounds[::2], bounds[1::2]), parallelism


@settings(max_examples=examples(300))
@given(case=cases(), most_counts=st.sampled_from([1, 50, 2**20]))
def test_equal_on_random_timelines(
    case: tuple[Timeline, Forest, tuple[Ints, Ints], dict[int, int]], most_counts: int
) -> None:
    """Also where threads work for nodes that they are not upstream of, in circles, as in a damaged file."""
    timeline, forest, intervals, parallelism = case
    fast = attribute(timeline, forest, 0, intervals, parallelism, most_counts)
    assert_equal(fast, attribute_by_states(timeline, forest, 0, intervals, parallelism))
    assert sum(fast.blame_ns.values()) == pytest.approx(fast.total_ns)
