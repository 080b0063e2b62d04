"""What one call per batch saves: the calls, and the starts of the ops."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from advisor.host.calibration.prediction import OP_START_NS
from advisor.model.calibration import Calibration
from advisor.model.pipeline import OpCost
from advisor.predict.batched_calls import left_when_batched, predict_batched
from advisor.testing import batch, map_, pipeline, source

ANALYSIS = pipeline(source(), map_("clean", ms=0.3, op_share=0.7), batch(256), consumer_ms=1, cores=2).analysis
MAPPED = next(it for it in ANALYSIS.main.iterators if any(call.method == "map" for call in it.calls))


def with_ops(calls: int, ops_per_call: int, op_ns: int):
    """The map, whose calls take 100 us beside these ops."""
    op = OpCost("StaticRegexReplace", calls * ops_per_call, calls * ops_per_call * op_ns)
    return replace(MAPPED, busy_ns=calls * 100_000 + op.total_ns, ops=(op,))


def test_only_the_call_is_sure_to_be_saved():
    assert left_when_batched(with_ops(1_000, 1, 100_000), 100, 0.0) == 0.5 + 0.5 / 100
    assert left_when_batched(with_ops(1_000, 1, 100_000), 1, 5_000.0) == 1.0


def test_the_start_of_an_op_is_never_longer_than_the_op():
    assert left_when_batched(with_ops(1_000, 4, 500), 100, 2_000.0) == 1 / 100  # nothing but starts


def test_an_iterator_without_measured_time_stays_as_it_is():
    assert left_when_batched(replace(MAPPED, busy_ns=0, ops=()), 100, 1_000.0) == 1.0


def test_the_longer_the_ops_the_smaller_the_gain():
    gains = []
    for op_ns in (1_000, 100_000, 10_000_000):
        iterator = with_ops(1_000, 4, op_ns)
        prediction = predict_batched(ANALYSIS, ANALYSIS.main, iterator.calls[0], iterator, 256)
        assert prediction is not None and prediction.low <= prediction.value <= prediction.high
        gains.append(left_when_batched(iterator, 256, OP_START_NS.value[0]))
    assert gains == sorted(gains) and gains[0] < 0.1 and gains[-1] > 0.99


def predicted(**costs):
    iterator = with_ops(1_000, 40, 3_000)
    host = replace(ANALYSIS.host, calibration=Calibration(**costs))
    return predict_batched(replace(ANALYSIS, host=host), ANALYSIS.main, iterator.calls[0], iterator, 256)


def test_the_start_of_an_op_is_that_of_the_machine():
    built_in, slow = predicted(), predicted(op_start_ns=2 * OP_START_NS.value[0])
    assert slow.value > 1.2 * built_in.value
    assert (slow.low, slow.high) == (built_in.low, built_in.high), "none of the ops starts, or nothing but starts"
    assert "op_start_ns" in built_in.uncalibrated and "op_start_ns" not in slow.uncalibrated


def test_measuring_the_built_in_start_changes_nothing_but_the_mark():
    built_in, same = predicted(), predicted(op_start_ns=OP_START_NS.value[0])
    assert same.uncalibrated != built_in.uncalibrated
    assert replace(same, uncalibrated=built_in.uncalibrated) == built_in


@given(st.integers(1, 9), st.integers(1, 10**8), st.integers(1, 10**4), st.floats(0, 1e5), st.floats(0, 1e5))
def test_bounds(ops: int, op_ns: int, size: int, one: float, other: float):
    iterator = with_ops(100, ops, op_ns)
    fewer, more = sorted((one, other))
    left, right = (left_when_batched(iterator, size, start_ns) for start_ns in (more, fewer))
    assert 1 / size - 1e-9 <= left <= right + 1e-9 <= 1 + 2e-9
