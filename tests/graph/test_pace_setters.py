"""Which work sets the pace: by hand-made iterators of known utilisation."""

from __future__ import annotations

import pytest

from advisor.graph.critical_path import find_bottleneck
from advisor.graph.pace_setters import pace_of
from advisor.model.pipeline import Iterator
from advisor.model.recording import Host
from advisor.model.window_readings import Usage

SPAN_NS = 1_000_000_000


def node(number, name, busy_s, parent=None, blame=0.0, **more):
    parent_id = None if parent is None else f"p0.{parent}"
    busy_ns = round(busy_s * SPAN_NS)
    return Iterator(
        f"p0.{number}", parent_id, name, name, busy_ns=busy_ns, blame_share=blame, blame_ns=round(blame * 1e9), **more
    )


def after_interleave(map_busy_s, slots_busy_s, name="Map", slots=4, **more):
    """Root, a map, an interleave and its source."""
    return [
        node(0, "Root", 0.0),
        node(1, name, map_busy_s, parent=0, blame=0.6, **more),
        node(2, "ParallelInterleaveV4", 0.0, parent=1, is_async=True, parallelism=slots),
        node(3, "TFRecord", slots_busy_s, parent=2, blame=0.4),
    ]


@pytest.mark.parametrize(
    ("map_busy_s", "slots_busy_s", "paces"),
    [
        (0.6, 3.9, True),
        (0.6, 3.0, False),  # the slots wait for room in the buffer
        (0.96, 3.9, False),  # both are busy
    ],
)
def test_busy_slots_set_the_pace_of_a_sequential_map(map_busy_s, slots_busy_s, paces):
    iterators = after_interleave(map_busy_s, slots_busy_s)
    pace = pace_of(iterators[1], iterators, SPAN_NS)
    assert (pace is not None) is paces
    bottleneck = find_bottleneck(iterators, {}, None, None, SPAN_NS)
    assert bottleneck.iterator_id == ("p0.3" if paces else "p0.1")
    assert ("its 4 parallel calls were busy 97.5 % of the time, so it sets the pace" in bottleneck.why) is paces
    assert bottleneck.blame_share == (0.4 if paces else 0.6), "the share of the wait stays what it is"


def test_calls_of_a_parallel_map_are_as_busy_as_their_number_lets_them_be():
    few = after_interleave(1.8, 3.9, "ParallelMapV2", is_async=True, parallelism=2)
    many = after_interleave(1.8, 3.9, "ParallelMapV2", is_async=True, parallelism=8)
    assert pace_of(few[1], few, SPAN_NS) is not None  # 90 % of two calls
    assert pace_of(many[1], many, SPAN_NS) is not None
    busy = after_interleave(1.95, 3.9, "ParallelMapV2", is_async=True, parallelism=2)
    assert pace_of(busy[1], busy, SPAN_NS) is None


def test_other_nodes_of_the_same_thread_count():
    iterators = after_interleave(0.6, 3.9)
    iterators[1:1] = [node(9, "BatchV2", 0.35, parent=0)]
    iterators[2] = node(1, "Map", 0.6, parent=9, blame=0.6)
    assert pace_of(iterators[2], iterators, SPAN_NS) is None, "0.95 of the thread's time"


def test_a_map_inside_the_slots_is_not_compared_with_others():
    iterators = [
        node(0, "Root", 0.0),
        node(1, "ParallelInterleaveV4", 0.0, parent=0, is_async=True, parallelism=4),
        node(2, "Map", 0.5, parent=1, blame=0.9),
        node(3, "Prefetch", 0.0, parent=2, is_async=True),
        node(4, "TFRecord", 0.99, parent=3, blame=0.1),
    ]
    assert pace_of(iterators[2], iterators, SPAN_NS) is None


def test_while_all_cores_are_busy_less_work_anywhere_helps():
    iterators = after_interleave(0.6, 3.9)
    host = Host("h", 2, 2, 1 << 34, 1 << 33)
    for cpu_s, expected in ((1.9, "p0.1"), (1.0, "p0.3")):
        usage = Usage(SPAN_NS, round(cpu_s * SPAN_NS))
        assert find_bottleneck(iterators, {}, usage, host, SPAN_NS).iterator_id == expected


def test_without_a_span_nothing_is_known():
    iterators = after_interleave(0.6, 3.9)
    assert find_bottleneck(iterators, {}, None, None).iterator_id == "p0.1"
