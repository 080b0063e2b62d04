"""Which steps of a run count, and what is known about them."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.recording import Consumer, ScriptExit, StepSeries
from advisor.prove.measure.run_steps import LoopSteps, RunSteps, median_of, steps_of
from tests.prove.run_recordings import MS, recording


def test_steps_of_the_window_alone_count():
    steps = steps_of(recording([100, 100, 10, 20, 30, 500], [50, 50, 5, 5, 5, 5]))
    assert steps == RunSteps(20 * MS, 0.25, 3, None)


def test_steps_under_the_profiler_do_not_count_where_there_are_others():
    assert steps_of(recording([100, 100, 10, 10, 10, 90, 90, 90], unprofiled=3)).step_ns == 10 * MS


def test_other_loops_count_from_the_beginning_of_the_window():
    made = recording([10] * 8)  # the window begins at 20 ms
    early = StepSeries("c1", (0, 5 * MS), (), (5 * MS, 10 * MS))
    late = StepSeries("c2", tuple(n * MS for n in (10, 30, 34, 38)), (), tuple(n * MS for n in (30, 34, 38, 42)))
    others = tuple(Consumer(f"c{n}", None, kind, None) for n, kind in ((1, "for"), (2, "for"), (3, "next")))
    made = dataclasses.replace(made, consumers=(*others, *made.consumers), steps=(early, *made.steps, late))
    (loop,) = steps_of(made).other_loops
    assert loop == LoopSteps(
        "for", 1, None, 4 * MS
    )  # the second other `for`; the first one and `next` have too few steps


def test_the_pauses_are_those_of_the_epochs_after_the_first_one():
    """The first epoch traces and compiles."""
    made = recording([10] * 6)
    ended_at = ((900 * MS, 300 * MS), (1_900 * MS, 2 * MS), (3_100 * MS, 250 * MS))
    consumers = tuple(dataclasses.replace(consumer, releases=ended_at) for consumer in made.consumers)
    paused = steps_of(dataclasses.replace(made, consumers=consumers)).pauses
    assert paused == ((1_000 * MS, 2 * MS), (1_200 * MS, 250 * MS))
    assert steps_of(made).pauses == ()


def test_keras_does_not_show_its_wait():
    assert steps_of(recording([10] * 6)).wait_share is None


@pytest.mark.parametrize("steps", [0, 2])
def test_too_few_steps_say_nothing(steps):
    assert steps_of(recording([10] * 6, steps=steps)) is None


def test_loop_inside_a_tf_function_has_no_steps_here():
    assert steps_of(dataclasses.replace(recording([10] * 6), steps=())) is None
    assert steps_of(dataclasses.replace(recording([10] * 6), window=None)) is None


def ended(durations_ms, kind="finished", window=False):
    """A run that ended by itself, before its window or, with one, after two steps of it."""
    made = recording(durations_ms, steps=2)
    return dataclasses.replace(made, script_exit=ScriptExit(kind), window=made.window if window else None)


@pytest.mark.parametrize("has_window", [False, True])
def test_a_script_that_ends_before_its_window_has_the_steps_of_its_second_half(has_window):
    steps = steps_of(ended([50] * 100 + [10] * 100, window=has_window))
    assert steps == RunSteps(10 * MS, None, 100, None, is_second_half=True)
    assert steps_of(ended([50] * 100 + [10] * 100, window=has_window), warmup=150).count == 50
    assert steps_of(recording([50] * 100 + [10] * 100)) == RunSteps(50 * MS, None, 3, None)


def test_the_second_half_counts_only_if_it_is_long_enough_and_the_script_has_ended_by_itself():
    lengths = [50] * 100 + [10] * 100
    assert steps_of(ended([10] * 98)) is None
    assert steps_of(ended(lengths), warmup=160) is None, "the rest of the cache is filled in these steps"
    assert steps_of(ended(lengths, "stopped")) is None
    assert steps_of(ended(lengths), is_with_gaps=True) is None, "it need not hold whole epochs"


def test_medians_are_only_reported_for_values_of_every_run():
    runs = (RunSteps(10, 0.5, 3, 1), RunSteps(30, None, 3, 3), RunSteps(20, 0.1, 3, 2))
    assert median_of(runs, lambda run: run.step_ns) == 20
    assert median_of(runs, lambda run: run.wait_share) is None
    assert median_of((), lambda run: run.step_ns) is None
