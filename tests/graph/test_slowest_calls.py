"""The slowest calls of a root: order, the guide's sums inside one call, and the wait attributed to the last nanosecond."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.engine import load_rules
from advisor.model.pipeline import Pipeline
from advisor.model.settings import Settings
from advisor.workflows.analyze import analyze_run

DATA = Path(__file__).parents[1] / "data"


def pipelines(name: str) -> tuple[Pipeline, ...]:
    return analyze_run(DATA / name, load_rules([], Settings()), Settings()).analysis.pipelines


@pytest.mark.parametrize("name", ["keras_fit", "interleave_map", "zip_filter", "mirrored"])
def test_calls_are_ranked_and_their_columns_fit(name):
    all_pipelines = pipelines(name)
    assert any(pipeline.slowest_calls for pipeline in all_pipelines)
    for pipeline in all_pipelines:
        durations = [call.duration_ns for call in pipeline.slowest_calls]
        assert durations == sorted(durations, reverse=True)
        if durations:
            assert durations[0] == pipeline.max_call_ns
        for call in pipeline.slowest_calls:
            columns = (call.num_calls, call.total_ns, call.self_ns, call.blame_ns)
            assert {len(column) for column in columns} == {len(pipeline.iterators)}
            assert call.num_calls[0] >= 1
            assert call.total_ns[0] == call.duration_ns


def test_all_of_a_slow_call_is_attributed_and_through_the_buffer():
    (pipeline,) = pipelines("interleave_map")
    call = pipeline.slowest_calls[0]
    assert sum(call.blame_ns) == pytest.approx(call.duration_ns, abs=len(call.blame_ns))
    by_self = max(zip(call.self_ns, pipeline.iterators, strict=True), key=lambda pair: pair[0])[1]
    by_blame = max(zip(call.blame_ns, pipeline.iterators, strict=True), key=lambda pair: pair[0])[1]
    assert (by_self.name, by_blame.name) == ("Prefetch", "Map")
