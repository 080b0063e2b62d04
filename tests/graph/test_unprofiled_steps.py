"""Step time and wait come from the steps without the profiler."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.graph.analysis import HostPart, combine
from advisor.graph.unprofiled_steps import use_unprofiled_steps
from advisor.model.pipeline import Iterator, Pipeline, StepStats
from advisor.model.recording import Consumer, Host, Recording, ScriptExit, StepSeries, Window

MS = 1_000_000
PROFILED = Pipeline(
    id="p0",
    host="h",
    iterators=(Iterator(id="p0.0", parent_id=None, name="Map", long_name="Iterator::Root::Map"),),
    is_main=True,
    steps=StepStats(20, 30 * MS, 30 * MS, 30 * MS, 30 * MS, 30 * MS, wait_median_ns=24 * MS, wait_mean_ns=24 * MS),
    wait_ns=20 * 24 * MS,
    span_ns=20 * 30 * MS,
)


def recording(
    unprofiled_ms: float, profiled_ms: float, unprofiled_wait_ms: float | None, profiled_wait_ms: float
) -> Recording:
    """40 unprofiled steps, a gap, 20 profiled ones."""
    starts, ends, waits = [], [], []
    now = 1_000 * MS
    for count, step, wait in ((40, unprofiled_ms, unprofiled_wait_ms), (20, profiled_ms, profiled_wait_ms)):
        for _ in range(count):
            starts.append(now)
            now += int(step * MS)
            ends.append(now)
            waits.append(int((wait or 0) * MS))
        now += 5 * MS
    window = Window(starts[40], ends[59], 5, 20, "stable", starts[0], ends[39], 40)
    series = StepSeries("c0", tuple(starts), tuple(waits) if unprofiled_wait_ms is not None else (), tuple(ends))
    return Recording(
        target="train.py",
        host=Host("h", 2.0, 2, 8 << 30, 4 << 30),
        script_exit=ScriptExit("stopped"),
        consumers=(Consumer("c0", None, "for", None, is_main=True),),
        steps=(series,),
        window=window,
    )


def test_the_printed_step_is_the_unprofiled_one():
    pipeline, overhead = use_unprofiled_steps(PROFILED, recording(10, 30, 5, 24))
    assert pipeline.steps is not None and (pipeline.steps.count, pipeline.steps.median_ns) == (40, 10 * MS)
    assert pipeline.wait_share == pytest.approx(0.5), "measured, not the 80 % under the profiler"
    assert pipeline.elements_per_s == pytest.approx(100) and overhead == pytest.approx(2.0)


@pytest.mark.parametrize(
    ("firsts", "count", "share"),
    [
        ((0, 15, 30, 45), 30, 0.5 + 2 / 30 * 0.5),
        ((5, 20, 35, 50), 30, 0.5 + 2 / 30 * 0.5),
        ((0, 40), 40, 0.5 + 3 / 40 * 0.5),
        ((0, 45), 40, 0.5 + 3 / 40 * 0.5),
        ((0, 15, 31), 40, 0.5 + 3 / 40 * 0.5),
        ((), 40, 0.5 + 3 / 40 * 0.5),
    ],
    ids=["whole", "between", "one", "longer", "unequal", "unknown"],
)
def test_steps_of_whole_epochs_are_used(firsts, count, share):
    """Every fifteenth step does nothing but wait: three of the first forty, and two of the first thirty."""
    run = recording(10, 30, 5, 24)
    (series,) = run.steps
    waits = [10 * MS if number % 15 == 0 and number < 40 else wait for number, wait in enumerate(series.wait_ns)]
    run = replace(run, steps=(replace(series, wait_ns=tuple(waits), epoch_firsts=firsts),))
    pipeline, _ = use_unprofiled_steps(PROFILED, run)
    assert pipeline.steps is not None and pipeline.steps.count == count
    assert pipeline.wait_share == pytest.approx(share)


@pytest.mark.parametrize(("profiled", "count"), [(20, 20), (3, 3), (2, 40), (1, 40)])
def test_marked_steps_are_used_unless_they_are_too_few(profiled, count):
    """Keras 2 marks its steps; a window on slow ones may hold a single whole one, and Python has timed more."""
    steps = replace(PROFILED.steps, count=profiled)
    part = HostPart("h", "h.xplane.pb", (replace(PROFILED, steps=steps),), has_marks=True)
    verdict = combine((part,), recording(10, 30, 5, 24), "train.py").verdict
    assert verdict.steps is not None and verdict.steps.count == count
    assert verdict.wait_steps == ("unprofiled" if count == 40 else "profiled")


def test_what_python_does_around_an_iterator_is_no_wait():
    """Under the profiler `next` takes 25.5 ms where the iterator takes 24, and all of a step three times as long: a third of the
    1.5 ms is taken off the unprofiled wait too."""
    pipeline, _ = use_unprofiled_steps(PROFILED, recording(10, 30, 5, 25.5))
    assert pipeline.wait_share == pytest.approx(0.45)
    hidden, _ = use_unprofiled_steps(PROFILED, recording(10, 30, 0.4, 25.5))
    assert hidden.wait_share == 0


def test_a_pipeline_alone_has_nothing_but_waiting():
    alone = replace(recording(10, 30, 5, 25), is_pipeline_alone=True)
    pipeline, _ = use_unprofiled_steps(PROFILED, alone)
    assert pipeline.wait_share == 1


def test_without_waits_the_share_lies_between_what_the_profiler_may_have_done():
    """80 % of 30 ms under the profiler, 10 ms without: 80 %, if it made all of a step longer alike; 40 % if only the waiting."""
    pipeline, _ = use_unprofiled_steps(PROFILED, recording(10, 30, None, 0))
    assert pipeline.steps is not None and pipeline.steps.median_ns == 10 * MS
    assert pipeline.wait_share == pytest.approx(0.6, abs=1e-6)


def test_without_waits_and_with_a_profiler_that_costs_nothing_the_share_is_kept():
    pipeline, _ = use_unprofiled_steps(PROFILED, recording(30, 30, None, 0))
    assert pipeline.wait_share == pytest.approx(0.8, abs=1e-6)


def test_too_few_unprofiled_steps_change_nothing():
    few = recording(10, 30, 5, 24)
    assert few.window is not None
    window = replace(few.window, plain_end_ns=few.window.plain_start_ns + 25 * MS)
    assert use_unprofiled_steps(PROFILED, replace(few, window=window)) == (PROFILED, None)
    window = replace(few.window, plain_start_ns=0, plain_end_ns=0, plain_steps=0)
    assert use_unprofiled_steps(PROFILED, replace(few, window=window)) == (PROFILED, None)


def slow_recording(
    waits_ms: tuple[float, ...] | None, *, unprofiled: slice = slice(3, 6), profiled: int = 6
) -> Recording:
    """Steps of 20 s: the profile holds one of them and its request, which lasts 5 s, and so no step between two requests."""
    starts = [1_000 * MS + number * 20_000 * MS for number in range(7)]
    ends = [start + 20_000 * MS for start in starts]
    timed = starts[unprofiled], ends[unprofiled]
    unprofiled_span = (timed[0][0], timed[1][-1], len(timed[0])) if timed[0] else (0, 0, 0)
    window = Window(starts[profiled], ends[profiled], 3, 1, "seconds", *unprofiled_span)
    series = StepSeries("c0", tuple(starts), tuple(int(w * MS) for w in waits_ms or ()), tuple(ends))
    return replace(recording(1, 1, None, 0), steps=(series,), window=window)


NO_WHOLE_STEP = replace(
    PROFILED,
    iterators=(
        Iterator("p0.0", None, "Map", "Iterator::Root::Map", num_calls=1, blame_ns=5_000 * MS, blame_share=1.0),
    ),
    steps=None,
    span_ns=0,
    wait_ns=5_000 * MS,
    max_call_ns=5_000 * MS,
    mean_call_ns=5_000 * MS,
)


def test_a_profile_without_a_whole_step_attributes_the_waits_that_python_saw():
    waits = (18_000, 9_000, 9_000, 2_000, 4_000, 6_000, 5_000)
    pipeline, overhead = use_unprofiled_steps(NO_WHOLE_STEP, slow_recording(waits))
    assert pipeline.steps is not None and (pipeline.steps.count, pipeline.steps.median_ns) == (3, 20_000 * MS)
    assert pipeline.wait_share == pytest.approx(0.2) and overhead is None
    assert (pipeline.steps.wait_share_low, pipeline.steps.wait_share_high) == (pytest.approx(0.1), pytest.approx(0.3))
    assert pipeline.iterators[0].blame_ns == pytest.approx(pipeline.wait_ns), "the blame adds up to the wait"
    assert pipeline.elements_per_s == pytest.approx(0.05)


def test_where_python_sees_no_wait_the_requests_in_the_profile_are_it():
    pipeline, _ = use_unprofiled_steps(NO_WHOLE_STEP, slow_recording(None))
    assert pipeline.steps is not None and pipeline.steps.count == 3
    assert pipeline.wait_share == pytest.approx(0.25)


def test_a_script_of_few_steps_is_judged_by_all_but_the_first_and_the_profiled_one():
    """It ended before the stretch without the profiler was long enough."""
    waits = (18_000, 1_000, 99, 3_000, 2_000, 4_000, 10_000)
    early = slow_recording(waits, unprofiled=slice(0), profiled=2)
    pipeline, _ = use_unprofiled_steps(NO_WHOLE_STEP, early)
    assert pipeline.steps is not None and pipeline.steps.count == 5
    assert pipeline.wait_share == pytest.approx(0.2)
    enough = replace(PROFILED, steps=StepStats(3, *[20_000 * MS] * 5))
    assert use_unprofiled_steps(enough, early) == (enough, None)
