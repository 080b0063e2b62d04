"""The bottlenecks of a run over time, and what is said about them."""

from __future__ import annotations

import re

import pytest

from advisor.live.bottlenecks import MAX_PROBLEMS, MAX_STRETCHES
from advisor.live.view import describe, describe_finding, line, summary
from advisor.live.watched_run import WatchedRun
from tests.live.samples import START, S, consumer, finding, sample, window
from tests.live.test_watched_run import shown

LOAD, BATCH = "train.py:3 .map(load)", "train.py:4 .batch(8)"


def watched(*windows, seconds=100):
    """A run of that many seconds, and the stretch that each window began."""
    run = WatchedRun()
    for second in range(seconds):
        run.add(sample(second, consumer(10 * second + 10, 10, 10.0, 7.0)))
    began = []
    for each, bottleneck in windows:
        run.bottlenecks.count(each)
        began.append(run.bottlenecks.add(each, bottleneck))
    return run, began


def without_clock(text):
    return re.sub(r"\d\d:\d\d:\d\d", "T", text)


def test_windows_with_the_same_bottleneck_are_one_stretch():
    run, began = watched(
        (window(10, 100, 120), finding(LOAD)),
        (window(20, 200, 220), finding(LOAD, 0.5)),
        (window(30, 300, 320), finding(BATCH)),
    )
    assert [stretch is not None for stretch in began] == [True, False, True]
    first, second = run.bottlenecks.stretches
    assert (first.first_step, first.last_step, first.windows) == (100, 220, 2)
    assert (first.began_ns, first.latest_ns) == (START + 10 * S, START + 20 * S)
    assert first.finding.wait_share == 0.5
    assert run.bottlenecks.current is second and second.first_step == 300


def test_what_steps_that_hardly_wait_wait_for_does_not_matter():
    run, _ = watched((window(10, 100, 120), finding(LOAD, 0.01)), (window(20, 200, 220), finding(BATCH, 0.02)))
    (stretch,) = run.bottlenecks.stretches
    assert without_clock(describe(stretch, run)) == (
        "Since step 100 (T), input is not the bottleneck: steps wait for it 2 % of a step."
    )


def test_consumers_have_bottlenecks_of_their_own():
    run, began = watched(
        (window(10, 100, 120), finding(LOAD)),
        (window(20, 5, 9, consumer_id="c2"), finding(BATCH)),
        (window(30, 300, 320), finding(LOAD)),
    )
    assert [stretch is not None for stretch in began] == [True, True, False]
    assert [(stretch.consumer_id, stretch.windows) for stretch in run.bottlenecks.stretches] == [("c2", 1), ("c1", 2)]
    assert run.bottlenecks.current.finding.bottleneck == LOAD


def test_the_summary_dates_each_bottleneck_and_states_the_cost():
    run, _ = watched(
        (window(10, 100, 120), finding(LOAD, 0.123)),
        (window(30, 300, 320, writing_s=0.25), finding(BATCH, 0.8, blame_share=0.75)),
    )
    lines = [without_clock(line) for line in summary(run)]
    assert (
        f"In steps 100 to 120 (T), the bottleneck was {LOAD}, with 90 % of the wait, which was 12.3 % of a step."
        in lines
    )
    assert f"Since step 300 (T), the bottleneck is {BATCH}, with 75 % of the wait, which is 80 % of a step." in lines
    (cost,) = [line for line in lines if "profiled windows took" in line]
    assert cost.startswith("2 profiled windows took 4.8 % of the run (4.75 s, of which 750 ms to write profiles); ")
    assert cost.endswith("analysing them took 2 s of a core, at low priority.")


def test_the_live_table_shows_the_latest_bottleneck():
    run, _ = watched((window(10, 100, 120), finding(LOAD)))
    assert f"bottleneck: {LOAD}, 90 % of the wait, steps wait 70 %" in shown(run)
    assert "bottleneck" not in shown(watched()[0])


def test_a_wait_that_only_windows_see_is_shown_from_them():
    """As for iterators of `tf.distribute`, of which there are no gap times."""
    run = WatchedRun()
    for second in range(40):
        run.add(sample(second, consumer(10 * second + 10, 10, 10.0)))
    assert " in a window" not in shown(run) and "waiting" not in line(run) + summary(run)[0]
    run.bottlenecks.add(window(10, 100, 120), finding(LOAD, 0.7))
    run.bottlenecks.add(window(20, 200, 220), finding(LOAD, 0.4))
    assert "40 % in a window" in shown(run)
    assert "40 % of it waiting for input in the latest window" in line(run)
    assert "40 % of the time in the latest window waiting for input" in summary(run)[0]


def test_a_wait_that_the_samples_tell_is_not_taken_from_a_window():
    run, _ = watched((window(10, 100, 120), finding(LOAD, 0.4)))
    assert "70 % (70 %)" in shown(run) and "in a window" not in shown(run) + line(run) + summary(run)[0]


def test_problems_are_told_once():
    broken = finding(problem="A window could not be analysed (ValueError: no).")
    run, began = watched(*[(window(n, n, n + 1), broken) for n in range(3)])
    assert began == [None] * 3 and run.bottlenecks.current is None
    assert summary(run).count("A window could not be analysed (ValueError: no).") == 1
    missing = window(9, 1, 2, problem="The process was being profiled already.")
    run.bottlenecks.count(missing)
    assert "The process was being profiled already." in summary(run)


def test_a_loop_without_visible_steps_is_dated_by_the_clock():
    run, _ = watched((window(10, 0, 0), finding(LOAD)), (window(20, 0, 0), finding(BATCH)))
    first, second = [without_clock(line) for line in summary(run) if "bottleneck" in line]
    assert first.startswith("At T, the bottleneck was") and second.startswith("Since T, the bottleneck is")


def test_memory_is_bounded():
    run, _ = watched(*[(window(n, n, n + 1), finding(f"train.py:{n} .map(f)")) for n in range(3 * MAX_STRETCHES)])
    assert len(run.bottlenecks.stretches) == MAX_STRETCHES
    assert run.bottlenecks.stretches[-1].finding.bottleneck == f"train.py:{3 * MAX_STRETCHES - 1} .map(f)"
    for number in range(20):
        run.bottlenecks.add(window(1, 1, 2), finding(problem=f"Problem {number}."))
    assert len(run.bottlenecks.problems) == MAX_PROBLEMS


@pytest.mark.parametrize(
    ("bottleneck", "text"),
    [
        (finding(), f"50 steps, 10 ms per step, 70 % of it waiting for input, bottleneck {LOAD} (90 % of the wait)"),
        (finding(wait_share=0.01), "50 steps, 10 ms per step, 1 % of it waiting for input"),
        (finding(problem="No step was seen."), "No step was seen."),
        (
            finding("\x1b[2Jtrain.py:1"),
            "50 steps, 10 ms per step, 70 % of it waiting for input, bottleneck \\x1b[2Jtrain.py:1 (90 % of the wait)",
        ),
    ],
)
def test_one_window_as_a_line(bottleneck, text):
    assert describe_finding(bottleneck) == text


def test_time_inside_windows_is_a_share_of_the_run():
    run, _ = watched((window(1, 1, 2), finding()), seconds=10)
    assert run.elapsed_ns == 10 * S
    assert run.window_share == pytest.approx(0.25)
