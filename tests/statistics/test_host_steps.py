"""Steps: what is one, and which of them are outliers. Times in microseconds."""

from __future__ import annotations

import pytest

from tests.profile.made_profile import ProfileBuilder
from tests.statistics.made_profiles import statistics_of


def test_a_loop_inside_a_function_waits_for_the_scans_input(tmp_path):
    """AutoGraph makes a Scan of the loop: its own call contains the loop's body, which is no waiting."""
    profile = ProfileBuilder()
    caller, worker = profile.host.line("tf_data_reduce_dataset/1"), profile.host.line("tf_data_prefetch/1")
    for start in (0, 100, 200):
        caller.event("ReduceIterator::Root", start, start + 99, id=1)
        worker.event("ReduceIterator::Root::Prefetch::Scan", start, start + 98, id=2, parent_id=1)
        worker.event("ReduceIterator::Root::Prefetch::Scan::MapAndBatch", start + 1, start + 31, id=3, parent_id=2)
    statistics = statistics_of(profile, tmp_path)
    assert statistics.hosts[0].source == "iterator"
    assert statistics.overview.num_steps == 2
    assert statistics.input.input_share == pytest.approx(0.3)
    assert statistics.device.other_share == pytest.approx(0.7)


def test_the_steps_of_an_epoch_inside_a_function_are_its_elements(tmp_path):
    """The call that was open when the window began left no event, its elements did."""
    profile = ProfileBuilder()
    python, worker = profile.host.line("python"), profile.host.line("tf_data_prefetch/1")
    for epoch in range(3):
        zero = epoch * 100
        if epoch:
            python.event("train_epoch", zero, zero + 90, tf_function_call="notTraced-nonXla")
        for start in range(zero, zero + 80, 10):
            worker.event("ReduceIterator::Root::Prefetch::Scan", start, start + 9, id=2, parent_id=1)
            worker.event("ReduceIterator::Root::Prefetch::Scan::BatchV2", start + 1, start + 4, id=3, parent_id=2)
    statistics = statistics_of(profile, tmp_path)
    assert (statistics.hosts[0].source, statistics.overview.num_steps) == ("iterator", 23)
    assert statistics.overview.step_min_ns == 10_000


def test_a_function_that_is_the_step_stays_one(tmp_path):
    """A loop in another function (an evaluation, say) does not cut it."""
    profile = ProfileBuilder()
    python, worker = profile.host.line("python"), profile.host.line("tf_data_prefetch/1")
    for start in range(0, 1000, 100):
        python.event("train_step", start, start + 90, tf_function_call="notTraced-nonXla")
    python.event("evaluate", 1000, 1200, tf_function_call="notTraced-nonXla")
    for start in range(1000, 1200, 10):
        worker.event("ReduceIterator::Root::Prefetch::Scan::BatchV2", start + 1, start + 4, id=3, parent_id=2)
    statistics = statistics_of(profile, tmp_path)
    assert (statistics.hosts[0].source, statistics.overview.num_steps) == ("function", 10)


def test_an_outlier_names_what_ran(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("python")
    start = 0
    for number in range(30):
        length = 500 if number == 17 else 100
        line.event("train", start, start + length, step_num=number, _r=1)
        line.event("train_op:MatMul", start + 1, start + 90, "MatMul")
        if number == 17:
            line.event("save/SaveV2:SaveV2", start + 95, start + 490, "SaveV2")
        start += length
    (outlier,) = statistics_of(profile, tmp_path).device.outliers
    assert (outlier.number, outlier.duration_ns) == (17, 500_000)
    assert outlier.ran_then == ("save/SaveV2:SaveV2",)
    assert outlier.slower_then == ()


def test_an_outlier_tells_what_only_took_longer(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("python")
    start = 0
    for number in range(30):
        length = 1500 if number == 9 else 100  # so much longer that it looks like something else
        line.event("train", start, start + length, step_num=number, _r=1)
        line.event("ExecutorState::Process", start, start + length - 5)
        line.event("train_op:MatMul", start + 1, start + length - 10, "MatMul")
        start += length
    (outlier,) = statistics_of(profile, tmp_path).device.outliers
    assert (outlier.ran_then, outlier.slower_then) == ((), ("train_op:MatMul",))


def test_outliers_do_not_hide_each_other(tmp_path):
    """With the mean and the standard deviation, only the longest of these would be found."""
    profile = ProfileBuilder()
    line = profile.host.line("python")
    start = 0
    for number in range(400):
        length = 500 + 40 * (number // 20) if number % 20 == 9 else 100 + number % 7
        line.event("train", start, start + length, step_num=number, _r=1)
        if length >= 500:
            line.event("save/SaveV2:SaveV2", start + 95, start + length - 10, "SaveV2")
        start += length
    outliers = statistics_of(profile, tmp_path).device.outliers
    assert [step.number for step in outliers] == list(range(389, 0, -20))
    assert {step.ran_then for step in outliers} == {("save/SaveV2:SaveV2",)}


def test_steps_that_vary_little_have_no_outliers(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("python")
    start = 0
    for number in range(60):
        length = 140 if number % 20 == 9 else 100
        line.event("train", start, start + length, step_num=number, _r=1)
        start += length
    assert statistics_of(profile, tmp_path).device.outliers == ()


def test_even_steps_have_no_outliers(tmp_path):
    profile = ProfileBuilder()
    line = profile.host.line("python")
    for number in range(30):
        line.event("train", number * 100, number * 100 + 90 + number % 3, step_num=number, _r=1)
    assert statistics_of(profile, tmp_path).device.outliers == ()


@pytest.mark.parametrize("stats", [{"tf_function_call": "notTraced-nonXla"}, {"step_num": 3, "_r": 1}])
@pytest.mark.parametrize("count", [1, 2])
def test_an_only_step_lasts_until_the_device_is_done(stats, count, tmp_path):
    """The call only launches the kernels: without their time, the request for the element would be half of the step."""
    profile = ProfileBuilder()
    python, stream = profile.host.line("python"), profile.plane("/device:GPU:0").line("Stream #1(Compute)")
    for start in range(100, 100 + 400 * count, 400):
        python.event("train", start, start + 40, **stats)
        python.event("Iterator::Root", start, start + 20, id=1)
        stream.event("kernel", start + 30, start + 200, tf_op="dense/MatMul:MatMul")
    statistics = statistics_of(profile, tmp_path)
    if count == 1:
        assert statistics.overview.step_ns == 200_000
        assert statistics.input.input_share == pytest.approx(0.1)
    else:
        assert statistics.overview.step_min_ns == 40_000, "the lengths of several steps stay what they are"
