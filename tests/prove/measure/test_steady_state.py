"""How many steps a new cache takes to fill."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest
from advisor.host.calibration.proof import MARGIN_STEPS
from advisor.model.calls import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY, Call
from advisor.model.edits import InsertAfter, MoveAfter, Remove, SetArgument
from advisor.prove.measure.script_windows import ScriptWindows
from advisor.prove.measure.steady_state import (
    UnknownEpoch,
    steps_to_fill_caches,
    steps_until_own_are_full,
    steps_until_steady,
)
from advisor.testing import batch, cache, map_, pipeline, source


def made(*stages):
    return pipeline(*stages, consumer_ms=5).analysis


def call(analysis, method):
    return next(call for call in analysis.calls if call.method == method)


def cached(analysis, method):
    return (InsertAfter(call(analysis, method).id, "cache"),)


def test_edits_without_a_cache_need_nothing():
    analysis = made(source(elements=1000), map_("decode", ms=5), batch(32))
    edit = SetArgument(call(analysis, "map").id, "num_parallel_calls", 4)
    assert steps_until_steady(analysis, (edit,)) is None


def test_an_epoch_is_counted_in_steps_of_the_consumer():
    analysis = made(source(elements=1000), map_("decode", ms=5), batch(32))
    assert steps_until_steady(analysis, cached(analysis, "map")) == 32 + MARGIN_STEPS.value  # ceil(1000 / 32)
    assert steps_until_steady(analysis, cached(analysis, "batch")) == 31 + MARGIN_STEPS.value  # as its cardinality says


def test_several_steps_of_keras_in_one_call():
    analysis = made(source(elements=1000), map_("decode", ms=5), batch(10))
    analysis = dataclasses.replace(analysis, keras={"steps_per_execution": 5})
    assert steps_until_steady(analysis, cached(analysis, "map")) == 20 + MARGIN_STEPS.value


def test_what_nobody_knows_is_not_guessed():
    analysis = made(source("Generator", elements=UNKNOWN_CARDINALITY), map_("decode", ms=5), batch(32))
    with pytest.raises(UnknownEpoch):
        steps_until_steady(analysis, cached(analysis, "map"))


def test_a_cache_of_the_script_is_full_after_its_first_epoch():
    analysis = made(source(elements=1000), map_("decode", ms=5), cache(), batch(32))
    own = call(analysis, "cache")
    assert steps_until_own_are_full(analysis, ()) == 31 + MARGIN_STEPS.value
    assert steps_until_own_are_full(analysis, (SetArgument(own.id, "name", "it"),)) == 31 + MARGIN_STEPS.value
    assert steps_until_own_are_full(analysis, (Remove(own.id),)) is None
    assert steps_until_own_are_full(analysis, (MoveAfter(own.id, call(analysis, "batch").id),)) is None


def test_without_a_cache_that_is_kept_there_is_nothing_to_wait_for():
    assert steps_until_own_are_full(made(source(elements=1000), map_("decode", ms=5), batch(32)), ()) is None
    again = pipeline(
        source(elements=320), map_("decode", ms=5), cache(), batch(32), consumer_ms=5, epochs=4, making_ms=300
    ).analysis
    assert steps_until_own_are_full(again, ()) is None  # made again for every epoch
    unknown = made(source("Generator", elements=UNKNOWN_CARDINALITY), map_("decode", ms=5), cache(), batch(32))
    assert steps_until_own_are_full(unknown, ()) is None


@pytest.mark.parametrize(("elements", "is_waited_for"), [(3_200, True), (320_000, False)])
def test_the_window_follows_the_first_epoch_if_that_is_short(elements, is_waited_for):
    """Otherwise one side may be timed in it, and the other one after it."""
    analysis = made(source("Range", elements=elements), map_("decode", ms=1), cache(), batch(32))
    windows = ScriptWindows(CaptureRequest(Path("unused"), Path("train.py")), analysis, 10.0)
    warmup = windows.of((SetArgument(call(analysis, "map").id, "num_parallel_calls", 4),)).request.warmup
    assert warmup == (elements // 32 + MARGIN_STEPS.value if is_waited_for else None)


def chain(*stages):
    """Calls in a row: (method, cardinality, arguments)."""
    calls = []
    for number, (method, cardinality, arguments) in enumerate(stages):
        inputs = (calls[-1].id,) if calls else ()
        calls.append(Call(f"c{number}", method, None, inputs, arguments, cardinality=cardinality))
    return calls


def test_caches_that_the_script_has():
    calls = chain(("range", 100, {}), ("cache", 100, {}), ("repeat", INFINITE_CARDINALITY, {}),
                  ("batch", INFINITE_CARDINALITY, {"batch_size": 8}))  # fmt: skip
    assert steps_to_fill_caches(calls, calls[-1], None) == 13 + MARGIN_STEPS.value
    assert steps_to_fill_caches(calls, calls[-1], None, 5) == 3 + MARGIN_STEPS.value
    assert steps_to_fill_caches(calls, calls[0], None) is None


def test_the_length_of_an_epoch_may_be_known_otherwise():
    calls = chain(("Generator", UNKNOWN_CARDINALITY, {}), ("cache", UNKNOWN_CARDINALITY, {}))
    assert steps_to_fill_caches(calls, calls[-1], 40) == 40 + MARGIN_STEPS.value
    with pytest.raises(UnknownEpoch):
        steps_to_fill_caches(calls, calls[-1], None)


def test_how_many_elements_an_unknown_transformation_makes_is_unknown():
    """`apply` is only recorded if it makes a dataset without public calls, such as `map_and_batch`."""
    calls = chain(("cache", 100, {}), ("apply", UNKNOWN_CARDINALITY, {}))
    with pytest.raises(UnknownEpoch):
        steps_to_fill_caches(calls, calls[-1], None)
