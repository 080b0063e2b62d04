"""Sums of one iterator's calls over the window."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.graph.short_ops import FunctionRuns
from advisor.graph.sums import NodeSums

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
