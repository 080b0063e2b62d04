"""Caches after Python generators whose elements were the same in two passes of the script."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advisor.rules.repeated_work import RepeatedWork

from advisor.model.recording import GeneratorPasses
from advisor.model.state import PYTHON_OBJECT, ObservedState, StateChange
from advisor.predict import cache_assumptions, cache_obstacles, cache_places
from advisor.rewrite.fix_plan import make_plan
from advisor.testing import batch, map_, source, unknown_size
from tests.predict.simulated_passes import script

STAGES = (unknown_size(source("Generator", ms=2, bytes=1_000)), map_("decode", ms=1, bytes=9_000), batch(32))
TWO = GeneratorPasses("c0", passes=2, elements=320, compared=66, is_same=True)


def recorded(*passes: GeneratorPasses, state: tuple[ObservedState, ...] = ()):
    made = script(*STAGES, iterators=3, steps=25)
    assert made.calls[0].method == "from_generator" and made.recording is not None
    return replace(made, recording=replace(made.recording, generators=passes, state=state))


def test_two_equal_passes_leave_an_assumption():
    made = recorded(TWO)
    assert not cache_obstacles(made, made.calls[0]) and not cache_obstacles(made, made.calls[-1])
    (clause,) = cache_assumptions(made, made.calls[-1])
    assert clause.startswith("the Python generator")
    assert clause.endswith(
        "yields the same elements in every epoch and is run for them alone (66 compared ones of its 320 elements were "
        "bit-identical in 2 epochs)"
    )


@pytest.mark.parametrize(
    "passes",
    [(), (replace(TWO, passes=1),), (replace(TWO, is_same=False),), (replace(TWO, elements=0),), (replace(TWO, call_id="x"),)],
    ids=["not followed", "one pass", "different", "empty", "another generator"],
)  # fmt: skip
def test_everything_else_forbids_a_cache(passes):
    made = recorded(*passes)
    assert "runs a Python generator" in cache_obstacles(made, made.calls[0])[0].reason
    assert not cache_assumptions(made, made.calls[0])


def test_what_the_generator_reads_must_not_have_changed_either():
    changed = ObservedState("s1", PYTHON_OBJECT, "rows", ("c0",), 3, change=StateChange("changed", 2))
    made = recorded(TWO, state=(changed,))
    assert "reads the Python object `rows`, which changed" in cache_obstacles(made, made.calls[0])[0].reason


def test_calls_that_implement_the_generator_do_not_count_but_others_inside_do():
    made = recorded(TWO)
    function = replace(made.calls[1].function, python_ops=("EagerPyFunc",))
    inner = replace(made.calls[1], id="inner", inputs=(), made_by="c0", function=function)
    assert not cache_obstacles(replace(made, calls=(*made.calls, inner)), made.calls[0])
    assert cache_obstacles(
        replace(made, calls=(*made.calls, replace(inner, made_by=None, nested_in="c1"))), made.calls[1]
    )


def test_the_cache_is_proposed_and_tried_only_if_asked_for():
    made = recorded(TWO)
    (finding,) = RepeatedWork().check(made)
    assert not finding.fix.is_auto and len(finding.fix.assumptions) == 1
    assert finding.because.count("The cache assumes that the Python generator") == 1
    calls = {call.id: call for call in made.calls}
    assert not make_plan([finding], calls).findings
    assert "It assumes that" in make_plan([finding], calls).left_out[0].reason
    assert make_plan([finding], calls, only={"repeated-work"}).findings == (finding,)


def test_its_length_gives_the_size_of_the_cache():
    made = recorded(TWO)
    sizes = {place.call.method: place.bytes for place in cache_places(made, made.main)}
    assert sizes["from_generator"] == 320 * 1_000 and sizes["map"] == 320 * 9_000
