"""The verdict by tf.data's gap times, of runs whose profile does not show the wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.graph.gap_readings import gap_readings
from advisor.graph.verdict import judge
from advisor.model.pipeline import Pipeline, Verdict
from advisor.model.recording import Recording, Window
from advisor.model.window_readings import GapWaits
from tests.graph.test_buffer_readings import BUSY, MS, WAITING, levels, of_steps, recording

LENGTH_MS = 4_000
NOT_STARTED = "TensorFlow's profiler could not be started (AlreadyExistsError: Another profiler is running.)."


def gaps(*waits_ms: int, consumer_id: str = "c0") -> GapWaits:
    """Steps of 4 s, one after the other, with these waits."""
    starts = range(0, len(waits_ms) * LENGTH_MS * MS, LENGTH_MS * MS)
    return GapWaits(
        consumer_id,
        tuple(starts),
        tuple(start + LENGTH_MS * MS for start in starts),
        tuple(wait * MS for wait in waits_ms),
    )


def recorded(*waits_ms: int, buffer: list[int] | None = None, **more: object) -> Recording:
    return recording(None if buffer is None else levels(buffer), gap_waits=(gaps(*waits_ms),), **more)


def verdict_of(recording: Recording, made: Pipeline = WAITING, count: int = 0) -> Verdict:
    return judge((of_steps(made, count),), recording)


@pytest.mark.parametrize(
    ("wait_ms", "level", "is_bound", "word"),
    [
        (3_000, "high", True, "Input is the problem: 75 %"),
        (400, "moderate", True, "Input costs some time: 10 %"),
        (100, "none", False, "Input is not the problem: 2.5 %"),
    ],
)
def test_the_verdict_where_no_step_was_profiled(wait_ms: int, level: str, is_bound: bool, word: str) -> None:
    verdict = verdict_of(recorded(*[wait_ms] * 12))
    assert (verdict.level, verdict.is_input_bound) == (level, is_bound)
    assert verdict.sentence == (
        f"{word} of 4 s (mean of 12 steps without the profiler) was spent waiting for the input pipeline, by tf.data's gap "
        "times. The profile contains no whole step."
    )
    assert verdict.gaps is not None and verdict.gaps.wait_share == wait_ms / LENGTH_MS
    assert verdict.is_tentative == is_bound, (
        "no profiled step shows what the wait consists of, so nothing may be predicted"
    )
    assert verdict.input_wait_share is None and verdict.max_speedup is None and verdict.steps is None


def test_few_steps_are_a_tentative_verdict_and_two_are_none() -> None:
    assert verdict_of(recorded(100, 100, 100)).certainty == "low"
    verdict = verdict_of(recorded(100, 100))
    assert verdict.level == "unknown" and verdict.gaps is None


def test_a_buffer_that_agrees_is_told() -> None:
    verdict = verdict_of(recorded(*[3_000] * 12, buffer=[0] * 12))
    assert verdict.level == "high"
    assert verdict.sentence.endswith("The prefetch buffer was empty at 12 of 12 steps.")


@pytest.mark.parametrize(("wait_ms", "elements", "fill"), [(3_000, 4, "full"), (0, 0, "empty")])
def test_a_buffer_that_contradicts_leaves_it_open(wait_ms: int, elements: int, fill: str) -> None:
    verdict = verdict_of(recorded(*[wait_ms] * 12, buffer=[elements] * 12))
    assert (verdict.level, verdict.is_input_bound, verdict.certainty) == ("unknown", False, "none")
    assert verdict.sentence.startswith("It is unclear whether input is the problem: ")
    assert f"but the prefetch buffer was {fill} at 12 of 12 steps" in verdict.sentence
    assert verdict.gaps is not None and verdict.buffer is not None


def test_without_a_profile_the_gaps_are_the_verdict() -> None:
    window = Window(0, 1, 2, 6, "steps", plain_start_ns=0, plain_end_ns=12 * LENGTH_MS * MS, plain_steps=12)
    unprofiled = recorded(*[3_000] * 12, unprofiled=NOT_STARTED, window=window)
    verdict = judge((), unprofiled)
    assert (verdict.level, verdict.is_input_bound, verdict.is_tentative) == ("high", True, True)
    assert verdict.sentence.startswith("Input is the problem: 75 % of 4 s (mean of 12 steps without the profiler)")
    assert verdict.sentence.endswith(f"No profile was taken, so what the steps wait for is unknown. {NOT_STARTED}")
    no_request = judge((), replace(unprofiled, unprofiled=""))
    assert no_request.level == "high" and "The profile shows no request for an element" in no_request.sentence
    assert judge((), replace(unprofiled, gap_waits=())).level == "unknown"
    assert judge((), replace(unprofiled, is_pipeline_alone=True)).level == "unknown"


def test_profiled_steps_decide_without_the_gaps() -> None:
    for made in (WAITING, BUSY):
        for count in (1, 40):
            without = judge((of_steps(made, count),), recording(None))
            assert verdict_of(recorded(*[1_500] * 12), made, count) == without


def test_steps_beside_the_profiler_do_not_count() -> None:
    window = Window(
        start_ns=6 * LENGTH_MS * MS,
        end_ns=12 * LENGTH_MS * MS,
        warmup_steps=2,
        steps=6,
        closed_by="steps",
        plain_start_ns=2 * LENGTH_MS * MS,
        plain_end_ns=6 * LENGTH_MS * MS,
        plain_steps=4,
    )
    waits = [3_000] * 2 + [1_000] * 4 + [2_000] * 6
    readings = gap_readings(None, recorded(*waits, window=window))
    assert readings is not None and (readings.steps, readings.wait_share) == (4, 0.25)
    short = replace(window, plain_end_ns=4 * LENGTH_MS * MS)
    readings = gap_readings(None, recorded(*waits, window=short))
    assert readings is not None and readings.steps == 6
    assert readings.wait_share == pytest.approx((6 + 4) / 24)
    readings = gap_readings(None, recorded(*waits, window=short, unprofiled=NOT_STARTED))
    assert readings is not None and readings.steps == 12


def test_the_waits_of_another_consumer_do_not_count() -> None:
    assert gap_readings(None, replace(recorded(), gap_waits=(gaps(1, 1, 1, consumer_id="c1"),))) is None
    assert gap_readings(None, None) is None


def test_the_report_holds_them() -> None:
    from advisor.report.report_json import _verdict

    gaps = _verdict(verdict_of(recorded(*[3_000] * 12))).gaps
    assert gaps is not None and (gaps.steps, gaps.step_time_ms, gaps.wait_share) == (12, 4_000, 0.75)
    assert _verdict(verdict_of(recorded(), count=40)).gaps is None
