"""Lanes of the window: nothing is lost or invented by down-sampling, and its size is bounded."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.model.trace import EventKind, HostTrace, Thread
from advisor.profile import read_trace
from advisor.profile.host_view import COARSEST_SLOTS, MAX_LEVELS, draw_host
from tests.effort import examples

DATA = Path(__file__).parents[1] / "data"
GPU = Path(__file__).parents[2] / "../shared/profiles/gpu-tf24-many-kernels"


def thread(events, name="python"):
    """`events`: (start, end) in ns."""
    order = sorted(events, key=lambda event: (event[0], -event[1]))
    start, end = (np.array([event[side] for event in order], np.int64) for side in (0, 1))
    zeros = np.zeros(len(order), np.uint64)
    kind = np.full(len(order), EventKind.OP, np.uint8)
    return Thread(1, name, start, end, kind, np.zeros(len(order), np.int32), zeros, zeros)


def host(*threads):
    return HostTrace("h", "", threads, ("Op",), {})


def test_nested_events_become_levels():
    view = draw_host(host(thread([(0, 1_000_000), (100, 900_000), (200_000, 800_000), (300_000, 700_000)])))
    assert [span.level for span in view.lanes[0].spans] == [0, 1, 2]
    assert view.duration_ns == 1_000_000


def test_short_neighbours_are_joined_and_counted():
    events = [(n * 10, n * 10 + 5) for n in range(50_000)]
    view = draw_host(host(thread([*events, (10_000_000, 20_000_000)])))
    joined, alone = view.lanes[0].spans
    assert (joined.num_merged, joined.busy_ns) == (50_000, 250_000)
    assert (alone.num_merged, alone.duration_ns) == (1, 10_000_000)


def test_a_joined_span_has_the_name_that_takes_most_time_in_its_slot():
    """Many short events of one name beside a few longer ones, which together take more; equal neighbours are one span."""
    pattern = [(0, 10, 1), (10, 20, 1), (20, 70, 0), (70, 80, 1)]
    rows = [(at * 100 + start, at * 100 + end, name) for at in range(5_000) for start, end, name in pattern]
    rows += [(10**7 + at * 100, 10**7 + at * 100 + 50, 1) for at in range(5_000)]
    made = thread([(start, end) for start, end, _ in rows])
    labelled = replace(made, label=np.array([name for *_, name in rows], np.int32))
    view = draw_host(HostTrace("h", "", (labelled,), ("Long", "Often"), {}))
    named = [view.names[span.name] for span in view.lanes[0].spans]
    assert named == ["Long", "Often"]
    assert [span.num_merged for span in view.lanes[0].spans] == [20_000, 5_000]


@settings(max_examples=examples(50))
@given(
    st.lists(
        st.tuples(st.integers(0, 10**9), st.integers(1, 10**6)), min_size=1, max_size=300, unique_by=lambda e: e[0]
    )
)
def test_count_and_busy_time_of_separate_events_are_kept(events):
    separate = [(start * 10**7, start * 10**7 + length) for start, length in events]
    view = draw_host(host(thread(separate)))
    (lane,) = view.lanes
    assert sum(span.num_merged for span in lane.spans) == len(separate)
    assert sum(span.busy_ns for span in lane.spans) == sum(end - start for start, end in separate)


@pytest.mark.long
def test_size_is_bounded():
    lanes = [thread([(n * 1_000 + t, n * 1_000 + t + 900) for n in range(20_000)], f"w/{t}") for t in range(100)]
    view = draw_host(host(*lanes), budget=2_000)
    assert view.num_lanes == 100
    assert sum(len(lane.spans) for lane in view.lanes) <= COARSEST_SLOTS * MAX_LEVELS * len(view.lanes)
    assert len({lane.name for lane in view.lanes}) == len(view.lanes)


def test_host_without_events_has_no_view():
    assert draw_host(host()) is None


@pytest.mark.parametrize("name", ["keras_fit", "mirrored"])
def test_lanes_of_a_real_run_lie_inside_it(name):
    trace = read_trace(DATA / name).hosts[0]
    view = draw_host(trace)
    assert any(lane.name == "python" for lane in view.lanes)
    assert all(
        s.start_ns >= 0 and s.start_ns + s.duration_ns <= view.duration_ns for lane in view.lanes for s in lane.spans
    )
    assert not any("/-" in lane.name for lane in view.lanes)


@pytest.mark.skipif(not GPU.is_dir(), reason="the profiles of others are not beside this checkout")
def test_devices_have_lanes():
    view = draw_host(read_trace(GPU).hosts[0])
    streams = [lane for lane in view.lanes if lane.is_device and "Stream #13" in lane.name]
    assert sum(span.num_merged for span in streams[0].spans) > 1_000
