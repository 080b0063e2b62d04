"""Caches after Python functions that returned the same when they were called for the same element again."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advisor.rules.repeated_work import RepeatedWork

from advisor.host.calibration.analysis import MIN_PYTHON_REPEATS
from advisor.model.recording import RepeatedCalls
from advisor.model.state import PYTHON_OBJECT, ObservedState, StateChange
from advisor.predict import cache_assumptions, cache_obstacles, parallel_safety
from advisor.rewrite.fix_plan import make_plan
from advisor.testing import batch, map_, source
from tests.predict.simulated_passes import script

STAGES = (source(elements=800, bytes=1_000), map_("parse", ms=2, python=True, bytes=900), batch(32))
SAME = RepeatedCalls("c1", calls=2_000, repeats=90, is_same=True)


def recorded(*seen: RepeatedCalls, random: bool = False, state: tuple[ObservedState, ...] = ()):
    made = script(*STAGES, iterators=3, steps=75)
    call = made.calls[1]
    if random:
        function = replace(call.function, random_ops=("RandomUniform",))
        made = replace(made, calls=(made.calls[0], replace(call, function=function), *made.calls[2:]))
    return replace(made, recording=replace(made.recording, python_calls=seen, state=state))


def test_equal_results_leave_an_assumption():
    made = recorded(SAME)
    assert not cache_obstacles(made, made.calls[1]) and not cache_obstacles(made, made.calls[-1])
    clause = next(text for text in cache_assumptions(made, made.calls[-1]) if "Python" in text)
    assert clause == (
        "the Python code in `parse` returns the same for the same element and is run for its result alone "
        "(90 repeated calls were bit-identical)"
    )


@pytest.mark.parametrize(
    "seen",
    [(), (replace(SAME, repeats=MIN_PYTHON_REPEATS.value - 1),), (replace(SAME, is_same=False),), (replace(SAME, call_id="c9"),)],
    ids=["not followed", "few repeats", "different", "another call"],
)  # fmt: skip
def test_everything_else_forbids_a_cache(seen):
    made = recorded(*seen)
    assert "runs Python code" in cache_obstacles(made, made.calls[1])[0].reason
    assert not any("Python" in text for text in cache_assumptions(made, made.calls[1]))


def test_random_ops_beside_it_forbid_a_cache_still():
    made = recorded(SAME, random=True)
    assert "draws random numbers" in cache_obstacles(made, made.calls[1])[0].reason


def test_what_it_reads_must_not_have_changed():
    changed = ObservedState("s1", PYTHON_OBJECT, "rows", ("c1",), 3, change=StateChange("changed", 2))
    made = recorded(SAME, state=(changed,))
    assert "reads the Python object `rows`, which changed" in cache_obstacles(made, made.calls[1])[0].reason


def test_it_is_not_called_in_parallel_for_that():
    made = recorded(SAME)
    assert parallel_safety(made.calls[1]) != "exact"


def test_the_cache_is_proposed_and_tried_only_if_asked_for():
    made = recorded(SAME)
    (finding,) = RepeatedWork().check(made)
    assert not finding.fix.is_auto and finding.fix.assumptions
    calls = {call.id: call for call in made.calls}
    assert not make_plan([finding], calls).findings
    assert make_plan([finding], calls, only=frozenset({"repeated-work"})).findings
