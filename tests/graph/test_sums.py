"""Sums of one iterator's calls over the window."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.graph.nodes import fold
from advisor.graph.short_ops import FunctionRuns
from advisor.graph.sums import NodeSums
from advisor.graph.thread_states import build_timeline
from tests.graph.simulated import map_after_prefetch

MS = 1_000_000


@pytest.mark.parametrize(
    ("calls_ms", "refill_ms"),
    [
        ([100, 0.02, 0.02, 0.02], 100),  # the first call fills the buffer
        ([2, 0.02, 0.02, 0.02], 0),  # so quickly that it may be unpacking
        ([90, 100, 110, 95], 0),  # each call takes long: reading or unpacking
        ([], 0),
    ],
)
def test_few_long_calls_fill_a_buffer(calls_ms, refill_ms):
    calls = [np.array([call * MS]).astype(np.int64) for call in calls_ms]
    assert NodeSums(calls_ns=calls).refill_ns() == refill_ms * MS


def test_the_time_of_executors_does_not_contain_the_passing_on_of_results():
    assert NodeSums(runs=3, function_ns=50, done_ns=20).function_runs() == FunctionRuns(3, 30)
    # `sum_up` has subtracted it already if there are Python ops
    assert NodeSums(runs=3, function_ns=50, done_ns=20, python_ns=5).function_runs() == FunctionRuns(3, 50)


def test_runs_of_functions_are_counted_once():
    """`RunAsync` contains a `FunctionRun`, and neither belongs to a node below."""
    profile = map_after_prefetch(map_us=50, range_us=5, steps=20)
    for start in (5, 60):
        profile.function("worker", 0, start + 1, start + 2)
    host = profile.host()
    forest = fold(host)
    runs = {node.type: sums.runs for node, sums in zip(forest.nodes, build_timeline(host, forest).sums, strict=True)}
    assert runs == {"Root": 0, "Prefetch": 0, "Map": 20, "Range": 0}
