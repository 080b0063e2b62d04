"""What the last buffer shows about the wait for input: of Keras, of few steps, and where no step was measured."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.graph.buffer_readings import buffer_readings
from advisor.graph.verdict import judge
from advisor.model.pipeline import Pipeline, StepStats, Verdict
from advisor.model.recording import Consumer, Host, Recording, ScriptExit, Window
from advisor.model.window_readings import BufferLevels
from advisor.testing import batch, map_, pipeline, prefetch, source

MS = 1_000_000
WAITING = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis.pipelines[0]
BUSY = pipeline(source(), map_("decode", ms=0.1), batch(32), prefetch(), consumer_ms=20, cores=8).analysis.pipelines[0]


def levels(elements: list[int], capacity: int = 4, per_step: int = 1, is_at_steps: bool = True) -> BufferLevels:
    """One reading per 100 ms."""
    count = range(len(elements))
    return BufferLevels(
        "c0",
        "Prefetch",
        is_at_steps,
        time_ns=tuple(place * 100 * MS for place in count),
        steps=tuple(count),
        elements_taken=tuple(1 + place * per_step for place in count),
        elements=tuple(elements),
        capacity=(capacity,) * len(elements),
    )


def recording(buffer: BufferLevels | None, **more: object) -> Recording:
    return Recording(
        "train.py",
        Host("h", 2.0, 2, 8 << 30, 4 << 30),
        ScriptExit("stopped"),
        consumers=(Consumer("c0", None, "keras.fit", None, is_main=True),),
        buffers=() if buffer is None else (buffer,),
        **more,  # type: ignore[arg-type]
    )


def of_steps(made: Pipeline, count: int) -> Pipeline:
    """The pipeline with so many measured steps; 0: none."""
    share = made.wait_share
    steps = StepStats(count, *[100 * MS] * 5) if count else None
    return replace(made, is_main=True, consumer=None, steps=steps, span_ns=count * 100 * MS,
                   wait_ns=round(count * 100 * MS * share), max_call_ns=29_300)  # fmt: skip


def verdict_of(made: Pipeline, count: int, buffer: BufferLevels | None, wait_steps: str = "profiled") -> Verdict:
    return judge((of_steps(made, count),), recording(buffer), wait_steps)


def test_a_buffer_that_is_full_at_every_step_is_a_verdict_where_no_step_was_measured() -> None:
    verdict = verdict_of(BUSY, 0, levels([4] * 12))
    assert (verdict.level, verdict.is_input_bound, verdict.limit, verdict.certainty) == (
        "none",
        False,
        "model",
        "medium",
    )
    assert verdict.input_wait_share is None and verdict.max_speedup is None
    assert verdict.sentence == (
        "Input is not the problem: the prefetch buffer was full at 12 of 12 steps, so the pipeline is faster than the training. "
        "The profile contains no whole step, so the share of the step time spent waiting is unknown. The longest request for an "
        "element took 29.3 us."
    )


def test_a_buffer_of_incomplete_batches_is_never_full() -> None:
    """`MapAndBatch` counts a batch whose first element is there, so a wait beside a "full" buffer is no contradiction."""
    incomplete = replace(levels([1] * 12, capacity=1), transformation="MapAndBatch")
    assert buffer_readings(None, recording(incomplete)) is None
    beside = verdict_of(WAITING, 5, incomplete)
    assert beside.buffer is None and "full" not in beside.sentence
    assert beside == verdict_of(WAITING, 5, None)
    sometimes = buffer_readings(None, recording(replace(incomplete, elements=(0, 0, 0, 1) * 3)))
    assert sometimes is not None and (sometimes.readings, sometimes.full, sometimes.empty) == (12, 0, 9)


def test_an_empty_one_says_that_the_training_waits_and_nothing_is_predicted_from_it() -> None:
    verdict = verdict_of(WAITING, 0, levels([0] * 12))
    assert (verdict.level, verdict.is_input_bound) == ("moderate", True)
    assert verdict.is_tentative, "without the share, nothing can be predicted"
    assert "Input is the problem: the prefetch buffer was empty at 12 of 12 steps" in verdict.sentence


@pytest.mark.parametrize(
    ("elements", "clause"),
    [
        ([4, 0] * 6, "The prefetch buffer was full at 6 and empty at 6 of 12 steps."),
        ([4] * 10 + [3, 3], "The prefetch buffer was full at 10 of 12 steps."),
        ([0] * 10 + [1, 2], "The prefetch buffer was empty at 10 of 12 steps."),
    ],
)
def test_a_buffer_that_is_sometimes_full_decides_nothing(elements: list[int], clause: str) -> None:
    verdict = verdict_of(WAITING, 0, levels(elements))
    assert (verdict.level, verdict.certainty) == ("unknown", "none")
    assert verdict.sentence.endswith(clause)


def test_one_reading_in_ten_may_differ() -> None:
    assert verdict_of(BUSY, 0, levels([4] * 11 + [3])).level == "none"
    assert verdict_of(WAITING, 0, levels([0] * 11 + [1])).level == "moderate"


def test_two_readings_say_nothing() -> None:
    verdict = verdict_of(BUSY, 0, levels([4, 4]))
    assert verdict.level == "unknown" and verdict.buffer is None


def test_few_readings_are_a_tentative_verdict() -> None:
    assert verdict_of(BUSY, 0, levels([4] * 5)).certainty == "low"


@pytest.mark.parametrize(
    ("count", "wait_steps", "is_told"),
    [
        (1, "profiled", True),
        (4, "unprofiled", True),
        (40, "estimated", True),
        (40, "profiled", True),
        (40, "unprofiled", False),
    ],
)
def test_the_buffer_is_told_where_the_wait_is_not_seen_or_the_steps_are_few(
    count: int, wait_steps: str, is_told: bool
) -> None:
    verdict = verdict_of(BUSY, count, levels([4] * 12), wait_steps)
    assert ("The prefetch buffer was full at 12 of 12 steps." in verdict.sentence) == is_told
    assert verdict.buffer is not None and verdict.buffer.full == 12, "the fields are always there"
    assert verdict.level == "none"


def test_a_contradiction_is_named() -> None:
    assert (
        "But the prefetch buffer was full at 12 of 12 steps"
        in verdict_of(WAITING, 40, levels([4] * 12), "estimated").sentence
    )
    assert "hardly faster than the training" in verdict_of(BUSY, 40, levels([0] * 12), "estimated").sentence


def test_a_buffer_that_holds_less_than_a_step_takes_is_not_full() -> None:
    """With steps_per_execution=8, a step takes 8 elements; two that are ready do not show that it never waits."""
    made = of_steps(BUSY, 0)
    for capacity, full in ((2, 0), (8, 12)):
        readings = buffer_readings(made, recording(levels([capacity] * 12, capacity, per_step=8)))
        assert readings is not None and (readings.full, readings.empty) == (full, 0)
    at_any_time = buffer_readings(made, recording(levels([2] * 12, 2, per_step=8, is_at_steps=False)))
    assert at_any_time is not None and at_any_time.full == 12, "between two steps that Python does not see"
    assert "at 12 of 12 readings" in verdict_of(BUSY, 0, levels([2] * 12, 2, is_at_steps=False)).sentence


def test_readings_without_the_profiler_are_preferred() -> None:
    buffer = levels([0] * 6 + [4] * 6)
    window = Window(0, 500 * MS, 2, 6, "steps", plain_start_ns=600 * MS, plain_end_ns=1_100 * MS, plain_steps=6)
    readings = buffer_readings(of_steps(BUSY, 0), recording(buffer, window=window))
    assert readings is not None and (readings.readings, readings.full) == (6, 6)
    short = replace(window, plain_start_ns=1_050 * MS)
    every = buffer_readings(of_steps(BUSY, 0), recording(buffer, window=short))
    assert every is not None and every.readings == 12


def test_a_pipeline_alone_has_no_step_that_its_buffer_could_be_compared_with() -> None:
    alone = recording(levels([0] * 12), is_pipeline_alone=True)
    assert judge((of_steps(WAITING, 40),), alone).buffer is None
    verdict = judge((of_steps(WAITING, 0),), alone)
    assert verdict.level == "unknown" and verdict.buffer is None


def test_the_report_holds_the_readings() -> None:
    from advisor.report.report_json import _verdict

    buffer = _verdict(verdict_of(BUSY, 0, levels([4] * 11 + [0]))).buffer
    assert buffer is not None
    assert (buffer.transformation, buffer.readings, buffer.full, buffer.empty) == ("Prefetch", 12, 11, 1)
    assert (buffer.capacity, buffer.is_at_steps) == (4, True)
