"""Which of the pipelines that one step reads is the main one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.graph.analysis import HostPart, combine
from advisor.graph.lockstep import longest_waited_for
from advisor.model.calls import Site
from advisor.model.recording import Consumer, Recording, StepSeries
from tests.graph.test_unprofiled_steps import PROFILED
from tests.graph.test_unprofiled_steps import recording as recorded

MS = 1_000_000
STEP = 10 * MS


def consumed(name: str, wait_ms: int) -> object:
    """A pipeline that a consumer of this name reads."""
    consumer = Consumer(name, None, "next", Site("gan.py", 12, 1, 12, 9), 1)
    return replace(PROFILED, consumer=consumer, is_main=False, wait_ns=wait_ms * MS)


def steps(**starts: list[int]) -> Recording:
    series = tuple(
        StepSeries(name, tuple(times), (), tuple(time + STEP for time in times)) for name, times in starts.items()
    )
    return replace(recorded(10, 10, 1, 1), steps=series)


NOISE, REAL = consumed("noise", 20), consumed("real", 80)
LOOP = [number * STEP for number in range(100)]


def test_of_two_iterators_of_one_step_the_one_that_is_waited_for_most_counts():
    recording = steps(noise=[start + 2 * MS for start in LOOP], real=LOOP)
    assert longest_waited_for(NOISE, [NOISE, REAL], recording) is REAL
    assert longest_waited_for(REAL, [NOISE, REAL], recording) is REAL


@pytest.mark.parametrize(
    "other",
    [
        [start + 100 * STEP for start in LOOP],  # the validation, as many steps after the training
        LOOP[::2],
        [start + part for start in LOOP for part in (MS, 5 * MS)],
        [],
    ],
)
def test_a_loop_of_its_own_is_another_one(other):
    assert longest_waited_for(NOISE, [NOISE, REAL], steps(noise=LOOP, real=other)) is NOISE


def test_the_end_of_an_epoch_of_one_of_them_changes_nothing():
    others = [start + MS for start in LOOP]
    assert longest_waited_for(NOISE, [REAL], steps(noise=LOOP, real=others[:50] + others[53:])) is REAL


def test_without_steps_the_recorded_one_stays():
    assert longest_waited_for(NOISE, [REAL], steps()) is NOISE
    assert longest_waited_for(NOISE, [REAL], steps(noise=LOOP[:2], real=LOOP[:2])) is NOISE
    assert longest_waited_for(replace(NOISE, consumer=None), [REAL], steps(noise=LOOP, real=LOOP)).consumer is None


def test_the_verdict_is_about_the_one_that_is_waited_for_most():
    recorded_main = replace(NOISE, id="p0", consumer=replace(NOISE.consumer, is_main=True))
    other = replace(REAL, id="p1")
    part = HostPart("h", "h.xplane.pb", (recorded_main, other), has_marks=False, warnings=())
    together = steps(noise=[start + 2 * MS for start in LOOP], real=LOOP)
    apart = steps(noise=LOOP, real=[start + 100 * STEP for start in LOOP])
    for recording, name in ((together, "real"), (apart, "noise")):
        main = combine([part], recording, "gan.py").main
        assert main is not None and main.consumer.id == name
