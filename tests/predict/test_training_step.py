"""What rules ask of the training step: its wait, its ops, what a step takes."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.profile_statistics import Breakdown, OpRow, Overview, RunEnvironment, Statistics
from advisor.predict import input_share, is_fed, is_short, last_batch, op_work, rows_per_step, step_site
from advisor.testing import batch, cpu, map_, op, pipeline, prefetch, source


def analysis_of(*stages, **more):
    return pipeline(source(), *(stages or (batch(32), prefetch())), consumer_ms=10, **more).analysis


def profile_of_one_step(**breakdown: int):
    """As of other people's profiles: too few steps for a verdict."""
    analysis = analysis_of()
    environment = RunEnvironment(1, ("host",), "GPU", "", 1, 1, None)
    overview = Overview(1, 100, 100, 100, Breakdown(**breakdown), None, None, None, None, None, None, (), environment)
    verdict = replace(analysis.verdict, input_wait_share=None)
    return replace(analysis, verdict=verdict, statistics=Statistics(overview=overview))


def test_the_verdicts_wait_counts_where_there_is_one():
    waiting = analysis_of(map_("augment", ms=5, random=True), batch(32), prefetch())
    assert input_share(waiting) == waiting.verdict.input_wait_share > 0.9
    assert not is_fed(waiting)
    assert is_fed(analysis_of())


def test_else_the_profiles_own_without_copies_to_the_device():
    copying = profile_of_one_step(input_ns=30, to_device_ns=28, device_compute_ns=70)
    assert input_share(copying) == pytest.approx(0.02)
    assert is_fed(copying)
    assert not is_fed(profile_of_one_step(input_ns=30, device_compute_ns=70))


def test_a_program_without_steps_is_not_said_to_wait():
    bare = replace(profile_of_one_step(), statistics=None)
    assert input_share(bare) is None
    assert is_fed(bare)


def test_ops_count_by_their_part_of_all_ops():
    analysis = analysis_of(
        device=cpu(op("MatMul", 10, us=600), op("Relu", 20, us=100), op("Dataset", 5, us=900), other=0.5)
    )
    work = op_work(analysis)
    assert work.per_step == pytest.approx(30)
    assert work.step_share == pytest.approx(0.5)
    products = op_work(analysis, lambda row: row.type == "MatMul")
    assert products.mean_ns == pytest.approx(600_000)
    assert products.step_share == pytest.approx(0.5 * 6 / 8)
    assert op_work(analysis, lambda row: row.type == "Conv2D") is None
    assert op_work(analysis_of()) is None


def test_an_op_is_short_by_its_median():
    interrupted = OpRow("host", "Mul", "", 10, 90_000, 90_000, False, 1.0, 1.0, 1.0, 1.0, median_self_ns=2_000.0)
    assert is_short(interrupted, 2_000) and not is_short(interrupted, 1_999)
    assert not is_short(replace(interrupted, is_eager=True), 2_000)
    without = replace(interrupted, median_self_ns=None)
    assert is_short(without, 9_000) and not is_short(without, 8_999)


def test_what_a_step_takes():
    assert rows_per_step(analysis_of(batch(8), batch(4))) == 4
    assert rows_per_step(analysis_of(keras={"steps_per_execution": 16})) == 512
    assert rows_per_step(analysis_of(map_("decode", ms=0.1))) is None
    analysis = analysis_of(batch(8), prefetch())
    assert last_batch(analysis).arguments["batch_size"] == 8
    assert step_site(analysis).file == "train.py"
