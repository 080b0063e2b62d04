"""When a running script is asked for another window."""

from __future__ import annotations

import pytest

from advisor.host.calibration.live import MAX_WINDOWS, WINDOW_PATIENCE_S
from advisor.live.window_plan import WindowPlan
from advisor.model.live import SlowPeriod
from tests.live.samples import MS, START, S, window

DUE = 60


def at(second):
    return START + second * S


def slow(is_over=False, wait_ns=(5.0 * MS, 25.0 * MS), consumer_id="c1"):
    before, since = wait_ns
    return SlowPeriod(consumer_id, 1, 2, 9 if is_over else None, START, 1, 10.0 * MS, 30.0 * MS, before, since)


def due(plan, seconds):
    """The seconds at which a window is asked for, each of which comes at once and costs 2.5 s."""
    opened = []
    for second in seconds:
        if plan.is_due(at(second)):
            opened.append(second)
            plan.done(window(second, 0, 0))
    return opened


def test_windows_come_at_their_interval():
    assert due(WindowPlan(DUE), range(200)) == [60, 123, 186]  # counted from the end of the previous one


def test_without_an_interval_there_are_none_unless_steps_wait_longer():
    assert due(WindowPlan(None), range(10_000)) == []


def test_a_slow_period_has_one_window_at_once():
    plan = WindowPlan(None)
    plan.is_due(at(0))
    plan.note(slow())
    assert due(plan, range(1, 1000)) == [1]


def test_slow_periods_in_a_row_do_not_mean_windows_in_a_row():
    plan, opened = WindowPlan(None), []
    for second in range(600):
        if second % 20 == 0:
            plan.note(slow())
        opened += due(plan, [second])
    assert opened == [0, 183, 366, 549]


@pytest.mark.parametrize("wait_ns", [(None, None), (None, 25.0 * MS), (5.0 * MS, None)])
def test_a_slow_period_whose_cause_is_unknown_has_a_window(wait_ns):
    plan = WindowPlan(None)
    plan.is_due(at(0))
    plan.note(slow(wait_ns=wait_ns))
    assert due(plan, range(1, 100)) == [1]


def test_a_period_that_has_ended_needs_no_window():
    plan = WindowPlan(None)
    plan.note(slow())
    plan.note(slow(is_over=True))
    assert due(plan, range(100)) == []


@pytest.mark.parametrize(("wait_ns", "is_due"), [((5.0 * MS, 6.0 * MS), False), ((None, None), True)])
def test_longer_steps_that_do_not_wait_longer_need_none(wait_ns, is_due):
    plan = WindowPlan(None)
    plan.note(slow(wait_ns=wait_ns))
    assert plan.is_due(at(1)) is is_due


def test_the_longer_a_window_takes_the_longer_the_next_one_waits():
    plan = WindowPlan(DUE)
    plan.is_due(at(0))
    assert plan.is_due(at(60))
    plan.done(window(60, 0, 0, writing_s=28.0))  # 30 s; 5 % of the time means one every 600 s
    plan.note(slow())
    assert next(second for second in range(61, 700) if plan.is_due(at(second))) == 690


def test_there_is_one_window_at_a_time_and_one_that_never_comes_is_given_up():
    plan = WindowPlan(DUE)
    asked = [second for second in range(2000) if plan.is_due(at(second))]
    assert asked == [
        60,
        60 + WINDOW_PATIENCE_S.value,
        60 + 2 * WINDOW_PATIENCE_S.value,
        60 + 3 * WINDOW_PATIENCE_S.value,
    ]


def test_the_runs_own_window_counts_as_one():
    plan = WindowPlan(DUE)
    plan.is_due(at(0))
    plan.done(window(10, 0, 0, is_first=True))
    assert due(plan, range(13, 80)) == [73]


def test_the_number_is_limited():
    plan = WindowPlan(1.0, max_share=1.0)
    assert len(due(plan, range(0, 20 * MAX_WINDOWS.value, 10))) == MAX_WINDOWS.value
