"""The fix without AUTOTUNE writes what tf.data had added, and is not made where AUTOTUNE does more."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.edits import Code, InsertAfter, SetArgument, SetOption
from advisor.model.finding import Safety
from advisor.predict import without_autotune
from advisor.testing import AUTOTUNE, batch, map_, options, pipeline, prefetch, shuffle, source

WRITTEN = Code("tf.data.AUTOTUNE")


def fix_of(*stages, cores=2, **changes):
    analysis = pipeline(*stages, consumer_ms=1, cores=cores).analysis
    if changes:
        calls = [dataclasses.replace(call, **changes) if call.method == "map" else call for call in analysis.calls]
        (main,) = analysis.pipelines
        by_id = {call.id: call for call in calls}
        its = [dataclasses.replace(it, calls=tuple(by_id[call.id] for call in it.calls)) for it in main.iterators]
        main = dataclasses.replace(main, iterators=tuple(its))
        analysis = dataclasses.replace(analysis, calls=tuple(calls), pipelines=(main,))
    return without_autotune(analysis, analysis.main), {call.method: call.id for call in analysis.calls}


def test_the_option_comes_last():
    fix, ids = fix_of(source(), map_("decode", ms=1, calls=AUTOTUNE), batch(8), prefetch())
    assert fix.edits == (SetOption(ids["prefetch"], "autotune.enabled", value=False),)
    assert (fix.safety, fix.is_auto) == (Safety.EXACT, True)


def test_a_prefetch_that_tensorflow_added_is_written():
    fix, ids = fix_of(source(ms=1), shuffle(), batch(8))
    assert fix.edits == (
        SetOption(ids["batch"], "autotune.enabled", value=False),
        InsertAfter(ids["batch"], "prefetch", (("", WRITTEN),)),
    )


def test_a_map_that_tensorflow_made_parallel_stays_parallel():
    fix, ids = fix_of(source(), map_("decode", ms=1), shuffle(), batch(8), prefetch())
    assert SetArgument(ids["map"], "num_parallel_calls", WRITTEN) in fix.edits


def test_a_sequential_map_stays_sequential():
    fix, _ = fix_of(source(), map_("draw", ms=1, random=True), shuffle(), batch(8), prefetch())
    assert not any(isinstance(edit, SetArgument) for edit in fix.edits)


def test_a_map_in_a_library_cannot_be_made_parallel():
    fix, _ = fix_of(source(), map_("decode", ms=1), shuffle(), batch(8), prefetch(), library="keras")
    assert fix is None


@pytest.mark.parametrize(("cores", "is_made"), [(16, True), (17, False)])
def test_more_calls_than_a_pipeline_starts_with_need_autotune(cores, is_made):
    fix, _ = fix_of(source(), map_("decode", ms=9, calls=AUTOTUNE), batch(8), prefetch(), cores=cores)
    assert (fix is not None) is is_made


def test_nothing_is_turned_off_twice():
    fix, _ = fix_of(source(), batch(8), prefetch(), options(autotune__enabled=False))
    assert fix is None
