"""Where a map that takes batches is also made parallel, and followed by a prefetch."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.calls import Call, FunctionFacts
from advisor.model.edits import Code, InsertAfter, MoveAfter, Remove, SetArgument, Vectorize
from advisor.model.finding import Fix, Safety
from advisor.model.recording import Recording, ScriptExit
from advisor.predict import parallel_calls, with_parallel_end
from advisor.testing import batch, map_, options, pipeline, source
from tests.predict.test_batch_functions import MEAN

AUTOTUNE = Code("tf.data.AUTOTUNE")
PARALLEL = SetArgument("map", "num_parallel_calls", AUTOTUNE)
MOVED = (MoveAfter("map", "batch"), Vectorize("map"))
NOISE = dataclasses.replace(
    MEAN, ops={"RandomStandardNormal": 1}, stateful_ops=("RandomStandardNormal",), random_ops=("RandomStandardNormal",)
)


def made(cores: int = 4, **autotune: object):
    links = (options(**autotune),) if autotune else ()
    return pipeline(source(), map_("center", ms=1), batch(32), *links, consumer_ms=1, cores=cores).analysis


def ended(
    function: FunctionFacts = MEAN,
    edits=MOVED,
    safety: Safety = Safety.EXACT,
    follows: str = "",
    is_seeded: bool | None = False,
    analysis=None,
    **changes: object,
) -> Fix:
    simulated = made() if analysis is None else analysis
    calls = [
        Call("range", "range", None),
        dataclasses.replace(Call("map", "map", None, ("range",), function=function), **changes),
        Call("batch", "batch", None, ("map",)),
    ]
    calls += [Call(follows, follows, None, ("batch",))] if follows else []
    calls += [dataclasses.replace(call, inputs=()) for call in simulated.calls if call.method == "with_options"]
    host = simulated.recording.host if simulated.recording is not None else None
    recording = Recording("train.py", host, ScriptExit("finished"), calls=tuple(calls), is_seeded=is_seeded)
    run = dataclasses.replace(simulated, calls=tuple(calls), recording=recording)
    fix = with_parallel_end(run, run.main, calls[1], calls[2], Fix(edits, safety, is_auto=True))
    assert fix is not None
    assert parallel_calls(run, run.main, calls[1], fix) == (4 if PARALLEL in fix.edits else 1)
    return fix


def test_the_prefetch_comes_after_the_moved_map():
    assert ended().edits == (InsertAfter("batch", "prefetch", (("", AUTOTUNE),)), *MOVED, PARALLEL)


def test_the_prefetch_comes_after_a_map_that_stays():
    edits = (InsertAfter("range", "batch", (("", 8),)), Remove("batch"), Vectorize("map"))
    assert ended(edits=edits).edits == (InsertAfter("map", "prefetch", (("", AUTOTUNE),)), *edits, PARALLEL)


def test_in_the_middle_of_a_pipeline_nothing_is_prefetched():
    assert ended(follows="repeat").edits == (*MOVED, PARALLEL)


def test_a_number_of_parallel_calls_is_kept():
    edits = ended(arguments={"num_parallel_calls": 2}).edits
    assert edits == (InsertAfter("batch", "prefetch", (("", AUTOTUNE),)), *MOVED)


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"function": dataclasses.replace(MEAN, python_ops=("EagerPyFunc",))}, id="Python code"),
        pytest.param({"nested_in": "interleave"}, id="inside another function"),
        pytest.param({"analysis": made(cores=1)}, id="a single core"),
        pytest.param({"analysis": made(autotune__enabled=False)}, id="without AUTOTUNE"),
        pytest.param({"function": NOISE, "safety": Safety.RERANDOMIZED, "is_seeded": True}, id="seeded"),
        pytest.param({"function": NOISE, "safety": Safety.RERANDOMIZED, "is_seeded": None}, id="perhaps seeded"),
        pytest.param({"function": NOISE}, id="a stronger effect on the data than the fix claims"),
    ],
)
def test_the_fix_stays_as_it_is(changes):
    assert ended(**changes).edits == MOVED


def test_random_numbers_without_a_seed_may_be_drawn_in_parallel():
    assert PARALLEL in ended(function=NOISE, safety=Safety.RERANDOMIZED).edits


def test_no_fix_stays_none():
    analysis = made()
    map_call, batch_call = analysis.calls[1], analysis.calls[2]
    assert with_parallel_end(analysis, analysis.main, map_call, batch_call, None) is None
    assert parallel_calls(analysis, analysis.main, map_call, None) == 1
