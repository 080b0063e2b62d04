"""Steps that the user's program marked."""

from __future__ import annotations

from advisor.profile import marked_steps, read_trace
from tests.profile.made_profile import ProfileBuilder


def steps_of(profile, tmp_path):
    (host,) = read_trace(profile.write(tmp_path / "worker.xplane.pb")).hosts
    return [(step.start_ns, step.end_ns, step.number) for step in marked_steps(host)]


def test_steps_in_order_of_time_with_their_numbers(tmp_path):
    profile = ProfileBuilder()
    profile.host.line("b").event("train", 20, 29, step_num=7, _r=1)
    profile.host.line("a").event("train", 0, 9, step_num=5, _r=1).event("train", 10, 19, step_num=6, _r=1)
    assert steps_of(profile, tmp_path) == [(0, 9000, 5), (10000, 19000, 6), (20000, 29000, 7)]


def test_the_outermost_of_nested_marks_counts(tmp_path):
    profile = ProfileBuilder()
    profile.host.line().event("part", 1, 5, step_num=0).event("train", 0, 9, step_num=5, _r=1).event(
        "train", 9, 12, step_num=6
    )
    assert steps_of(profile, tmp_path) == [(0, 9000, 5), (9000, 12000, 6)]


def test_marks_without_numbers_are_counted(tmp_path):
    profile = ProfileBuilder()
    profile.host.line().event("work", 0, 9, _r=1).event("work", 10, 19, _r=1)
    assert [number for _, _, number in steps_of(profile, tmp_path)] == [0, 1]


def test_runs_of_functions_are_no_steps(tmp_path):
    profile = ProfileBuilder()
    profile.host.line().event("FunctionRun", 0, 9, _r=1, _p=3, id=4)
    assert steps_of(profile, tmp_path) == []
