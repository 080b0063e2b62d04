"""Whether a pipeline may move to workers, and up to where: simulated scripts, single calls, and recorded runs."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.calls import FunctionFacts
from advisor.model.edits import InsertAfter, MoveAfter, SetArgument
from advisor.model.finding import Safety
from advisor.model.offload_result import (
    CAUSES,
    COUNTS,
    DYNAMIC,
    EFFECT,
    FILES,
    MOVABLE,
    OFF,
    OP,
    PYTHON,
    RANDOM,
    REFUSED,
    SOURCE,
    STATE,
    UNDECIDED,
    Movability,
)
from advisor.model.pipeline import Analysis
from advisor.model.recording import Recording, ScriptExit
from advisor.model.state import CapturedResource, ObservedState, StateChange
from advisor.offload.legality import judge
from advisor.offload.repairs import edits_before
from advisor.testing import batch, cache, filter_, interleave, map_, pipeline, prefetch, repeat, shuffle, source
from advisor.testing.simulated_script import Stage
from advisor.testing.stages import shard, take, unbatch
from tests.graph.test_recorded_runs import analysis_of as recorded_run


def simulated(*stages: Stage, **machine) -> Analysis:
    return pipeline(*stages, consumer_ms=5, **machine).analysis


def judged(*stages: Stage, policy: str = DYNAMIC, **machine) -> Movability:
    return judge(simulated(*stages, **machine), policy)


def with_call(analysis: Analysis, method: str, /, **changes) -> Analysis:
    """The analysis with a changed call, in its list of calls and in its iterators."""
    calls = tuple(dataclasses.replace(call, **changes) if call.method == method else call for call in analysis.calls)
    by_id = {call.id: call for call in calls}
    pipelines = tuple(
        dataclasses.replace(
            pipeline,
            iterators=tuple(
                dataclasses.replace(it, calls=tuple(by_id[call.id] for call in it.calls)) for it in pipeline.iterators
            ),
        )
        for pipeline in analysis.pipelines
    )
    return dataclasses.replace(analysis, calls=calls, pipelines=pipelines)


def with_function(facts: FunctionFacts, *observed: ObservedState, recorded: bool = True) -> Movability:
    """The judgement of a map with these facts."""
    analysis = with_call(simulated(source(), map_("decode", ms=5), batch(32)), "map", function=facts)
    if recorded:
        assert analysis.host is not None
        recording = Recording("train.py", analysis.host, ScriptExit("stopped"), calls=analysis.calls, state=observed)
        analysis = dataclasses.replace(analysis, recording=recording)
    return judge(analysis)


def facts(*ops: str, **more) -> FunctionFacts:
    return FunctionFacts("decode", None, bool(ops), stateful_ops=ops, **more)


def first(movability: Movability) -> tuple[str, str]:
    """Verdict and cause of the first objection."""
    objection = movability.objections[0]
    assert objection.cause in CAUSES
    return objection.verdict, objection.cause


def test_a_stateless_pipeline_moves_as_a_whole():
    movability = judged(source(), map_("decode", ms=5), batch(32), prefetch())
    assert movability.verdict == MOVABLE
    assert movability.after_method == "batch"
    assert movability.after_site is not None and movability.after_site.line > 0
    assert movability.moved_share == pytest.approx(1, abs=0.05)
    assert not movability.objections
    assert movability.sentence.startswith("It can move up to batch (line ")


def test_a_final_prefetch_stays_and_none_is_added():
    movability = judged(source(), map_("decode", ms=5), batch(32), prefetch())
    assert not [edit for edit in movability.edits if isinstance(edit, InsertAfter)]


def test_without_a_prefetch_one_is_added_after_distribute():
    movability = judged(source(), map_("decode", ms=5), batch(32))
    assert [edit.method for edit in movability.edits if isinstance(edit, InsertAfter)] == ["prefetch"]


def test_elements_one_by_one_are_named():
    movability = judged(source(), map_("decode", ms=5), prefetch())
    assert any("one by one" in repair.text and not repair.edits for repair in movability.repairs)


@pytest.mark.parametrize(
    ("stages", "cause", "method"),
    [
        ((source("Generator"), map_("decode", ms=5), batch(32)), PYTHON, "from_generator"),
        ((source(), map_("decode", ms=5, python=True), batch(32)), PYTHON, "map"),
        ((source(), map_("decode", ms=5, captured=("MutableHashTableV2",)), batch(32)), STATE, "map"),
        ((source(), map_("decode", ms=5, effects=("AssignVariableOp",)), batch(32)), STATE, "map"),
        ((source(), map_("decode", ms=5, effects=("WriteFile",)), batch(32)), FILES, "map"),
        ((source(), map_("decode", ms=5, effects=("WriteScalarSummary",)), batch(32)), EFFECT, "map"),
        ((source(), cache("/tmp/cached"), map_("decode", ms=5), batch(32)), FILES, "cache"),
        ((source(), take(100), map_("decode", ms=5), batch(32)), COUNTS, "take"),
        ((source(), shard(2), map_("decode", ms=5), batch(32)), COUNTS, "shard"),
    ],
    ids=["generator", "py_function", "mutable table", "assigns", "writes", "summary", "cache file", "take", "shard"],
)  # fmt: skip
def test_refused_with_line_and_cause(stages, cause, method):
    movability = judged(*stages)
    assert movability.verdict == REFUSED
    objection = next(objection for objection in movability.objections if objection.cause == cause)
    assert (objection.verdict, objection.method) == (REFUSED, method)
    assert objection.site is not None and f"(line {objection.site.line})" in movability.sentence
    assert not movability.after_id and not movability.edits


@pytest.mark.parametrize(
    ("stages", "cause"),
    [
        ((source(), map_("decode", ms=5, stateful=True), batch(32)), OP),
        ((source("Random"), map_("decode", ms=5), batch(32)), SOURCE),
        ((source(), map_("decode", ms=5, captured=("VarHandleOp",)), batch(32)), STATE),
    ],
    ids=["unknown op", "random source", "variable that was not watched"],
)
def test_what_is_on_no_list_is_undecided(stages, cause):
    movability = judged(*stages)
    assert movability.verdict == UNDECIDED
    assert first(movability) == (UNDECIDED, cause)
    assert movability.after_method == "batch" and "undecided" in movability.sentence


def test_python_inside_an_interleave_is_named_at_the_line_of_the_script():
    movability = judged(
        source("ListFiles", shuffle=False), interleave(source(), map_("decode", ms=5, python=True)), batch(32)
    )
    assert movability.verdict == REFUSED
    assert first(movability) == (REFUSED, PYTHON)
    assert movability.objections[0].site is not None


@pytest.mark.parametrize(
    ("stages", "is_repaired"),
    [
        ((source("ListFiles"), interleave(source(), map_("decode", ms=5))), True),
        ((source("ListFiles", shuffle=False), shuffle(4), interleave(source(), map_("decode", ms=5))), True),
        ((source("ListFiles", shuffle=False), interleave(source(), map_("decode", ms=5))), False),
        ((source("ListFiles"), interleave(source(), map_("decode", ms=5), calls=2)), False),
    ],
    ids=["list_files", "shuffle", "in order", "parallel"],
)
def test_a_sequential_interleave_of_shuffled_files_becomes_parallel(stages, is_repaired):
    """Every worker would read all files otherwise."""
    movability = judged(*stages, batch(32), prefetch())
    edits = [edit for edit in movability.edits if isinstance(edit, SetArgument)]
    assert [edit.name for edit in edits] == ["num_parallel_calls"] * is_repaired
    assert edits_before(movability) == tuple(edits)


def test_a_take_before_the_work_that_divides_into_batches_moves_behind_them():
    movability = judged(source(), map_("decode", ms=5), take(320), batch(32), prefetch())
    moved = next(edit for edit in movability.edits if isinstance(edit, MoveAfter))
    assert movability.verdict == MOVABLE and movability.after_method == "batch"
    assert moved.after_id == movability.after_id
    assert [edit.value for edit in movability.edits if isinstance(edit, SetArgument)] == [10]
    assert any("`take` counts" in condition for condition in movability.conditions)


def test_a_take_that_leaves_a_partial_batch_stays_where_it_is():
    movability = judged(source(), map_("decode", ms=5), take(321), batch(32), prefetch())
    assert movability.verdict == MOVABLE and movability.after_method == "map"
    assert not any(isinstance(edit, MoveAfter) for edit in movability.edits)


def test_a_take_at_the_end_follows_distribute():
    movability = judged(source(), map_("decode", ms=5), batch(32), take(10), prefetch())
    assert movability.verdict == MOVABLE and movability.after_method == "batch"


def test_nothing_moves_if_the_work_is_after_the_obstacle():
    movability = judged(source(), map_("parse", ms=0.1), take(100), map_("decode", ms=5), batch(32))
    assert movability.verdict == REFUSED
    assert "of the work is before it" in movability.sentence


def test_drop_remainder_stays_in_the_training_unless_the_data_is_endless():
    plain = simulated(source(), map_("decode", ms=5), batch(32))
    dropping = {"arguments": {"batch_size": 32, "drop_remainder": True}}
    movability = judge(with_call(plain, "batch", **dropping))
    assert (movability.verdict, movability.after_method) == (MOVABLE, "map")
    assert any("batch (line 5) stays in the training" in condition for condition in movability.conditions)
    endless = simulated(source(), repeat(), map_("decode", ms=5), batch(32))
    assert judge(with_call(endless, "batch", **dropping)).verdict == MOVABLE


def test_partial_batches_are_a_condition_and_disappear_if_the_data_is_endless():
    finite = judged(source(), map_("decode", ms=5), batch(32))
    assert any("incomplete batch" in condition for condition in finite.conditions)
    endless = judged(source(), repeat(), map_("decode", ms=5), batch(32))
    assert not any("incomplete batch" in condition for condition in endless.conditions)


def test_with_all_data_on_every_worker_counting_is_fine():
    movability = judged(source(), take(100), map_("decode", ms=5), repeat(), batch(32), policy=OFF)
    assert movability.verdict == MOVABLE and "--sharding off" in movability.sentence


def test_seeded_random_numbers_repeat_on_each_worker_and_unseeded_ones_do_not():
    random = facts("RandomUniform", random_ops=("RandomUniform",))
    assert with_function(random).verdict == MOVABLE
    seeded = dataclasses.replace(random, is_seeded=True)
    assert first(with_function(seeded)) == (REFUSED, RANDOM)


@pytest.mark.parametrize("op", ["RngReadAndSkip", "StatefulStandardNormalV2", "StatelessRandomNormalV2"])
@pytest.mark.parametrize("change", [None, StateChange("changed", 1)])
def test_a_generator_draws_the_same_numbers_on_each_worker(op: str, change: StateChange | None) -> None:
    """With a seed or without one. Its state is a variable that every draw changes, which is not the cause."""
    drawing = facts(op, random_ops=(op,), resources=(CapturedResource("variable", "noise._state_var", "s1"),))
    movability = with_function(
        drawing, ObservedState("s1", "variable", "noise._state_var", ("c1",), epochs=3, change=change)
    )
    assert first(movability) == (REFUSED, RANDOM)
    assert "generator (`noise`)" in movability.objections[0].reason and "the same numbers" in movability.sentence


TABLE = CapturedResource("static table", "words")
SCALE = CapturedResource("variable", "scale", "s1")


def test_a_static_table_travels():
    assert with_function(facts("LookupTableFindV2", resources=(TABLE,))).verdict == MOVABLE


def test_a_variable_moves_only_if_it_was_seen_constant():
    reading = facts("ReadVariableOp", resources=(SCALE,))
    constant = ObservedState("s1", "variable", "scale", ("c1",), epochs=3)
    movability = with_function(reading, constant)
    assert movability.verdict == MOVABLE
    assert any("`scale` keeps its value" in condition for condition in movability.conditions)
    once = dataclasses.replace(constant, epochs=1)
    assert first(with_function(reading, once)) == (UNDECIDED, STATE)
    assert first(with_function(reading)) == (UNDECIDED, STATE)
    assigned = dataclasses.replace(constant, change=StateChange("was assigned", 1, "/home/me/train.py", 31))
    movability = with_function(reading, assigned)
    assert first(movability) == (REFUSED, STATE)
    assert "train.py:31" in movability.objections[0].reason


@pytest.mark.parametrize("kind", ["queue", "iterator", "summary writer", "Python object", "mutable table"])
def test_what_exists_in_this_process_only_stays(kind):
    assert first(with_function(facts("ReadVariableOp", resources=(CapturedResource(kind, "q"),)))) == (REFUSED, STATE)


def test_printing_and_clocks_are_conditions():
    movability = with_function(facts("PrintV2"))
    assert movability.verdict == MOVABLE and any(
        "logs of the workers" in condition for condition in movability.conditions
    )


def test_a_function_that_was_not_run_is_undecided():
    assert first(with_function(facts(is_traced=False))) == (UNDECIDED, OP)


def test_an_asserted_cardinality_is_refused():
    plain = simulated(source(), map_("decode", ms=5), batch(32))
    movability = judge(with_call(plain, "map", unrecorded=("_AssertCardinalityDataset",)))
    assert movability.verdict == REFUSED and first(movability) == (REFUSED, COUNTS)


@pytest.mark.parametrize(
    ("method", "unrecorded", "expected"),
    [
        ("take", (), None),
        ("snapshot", (), (REFUSED, FILES)),
        ("teleport", (), (UNDECIDED, SOURCE)),
        ("apply", ("_SleepDataset",), (UNDECIDED, SOURCE)),
    ],
)
def test_datasets_that_a_function_makes_are_judged_by_a_list(method, unrecorded, expected):
    plain = simulated(
        source("ListFiles", shuffle=False), interleave(source(), map_("decode", ms=5), calls=2), batch(32)
    )
    plain = with_call(plain, "interleave", function=facts())
    inner = next(call for call in plain.calls if call.nested_in is not None and call.method == "map")
    calls = tuple(
        dataclasses.replace(call, method=method, unrecorded=unrecorded, function=None) if call is inner else call
        for call in plain.calls
    )
    movability = judge(dataclasses.replace(plain, calls=calls))
    assert (first(movability) if movability.objections else None) == expected


def test_csv_files_are_not_divided_among_workers() -> None:
    plain = with_call(simulated(source(), map_("decode", ms=5), batch(32)), "TFRecordDataset", method="CsvDataset")
    assert plain.calls[0].method == "CsvDataset"
    movability = judge(plain)
    assert (movability.verdict, first(movability)) == (REFUSED, (REFUSED, SOURCE))
    assert judge(plain, OFF).verdict == MOVABLE


def test_a_copy_to_a_device_stays_in_the_training():
    plain = simulated(source(), map_("decode", ms=5), batch(32))
    movability = judge(with_call(plain, "batch", unrecorded=("_CopyToDeviceDataset",)))
    assert (movability.verdict, movability.after_method) == (MOVABLE, "map")
    assert any(
        "batch (line 5) stays in the training: it copies elements" in condition for condition in movability.conditions
    )
    unknown = judge(with_call(plain, "batch", unrecorded=("KafkaDataset",)))
    assert (unknown.verdict, unknown.after_method, first(unknown)) == (UNDECIDED, "batch", (UNDECIDED, SOURCE))


def test_files_have_to_be_found_under_the_same_paths():
    observed = ObservedState("f1", "file", "/data/train/a.tfrecord", ("c0",), epochs=2)
    movability = with_function(facts(), observed)
    assert any("/data/train" in condition and "same storage" in condition for condition in movability.conditions)
    in_cloud = dataclasses.replace(observed, name="gs://bucket/a.tfrecord")
    assert not any(
        "same" in condition and "paths" in condition for condition in with_function(facts(), in_cloud).conditions
    )


def test_a_file_that_the_script_writes_is_undecided_and_a_relative_path_is_repaired_by_hand():
    written = ObservedState("f1", "file", "/tmp/a.tfrecord", ("c0",), epochs=2, is_written_before=True)
    movability = with_function(facts(), written)
    assert first(movability) == (UNDECIDED, FILES) and "/tmp/a.tfrecord" in movability.objections[0].reason
    relative = judged(source("ListFiles", shuffle=False), map_("decode", ms=5), batch(32))
    repair = next(repair for repair in relative.repairs if "relative path images/*.jpg" in repair.text)
    assert not repair.edits and "abspath" in repair.code


def test_the_source_limits_the_number_of_workers():
    movability = judged(source(files=3), map_("decode", ms=5), batch(32))
    assert movability.max_workers == 3
    assert judged(source("Range", elements=500), map_("decode", ms=5), batch(32)).max_workers == 500


def test_a_split_by_number_behind_the_place_would_leak():
    analysis = simulated(source(), map_("decode", ms=5), batch(32))
    end = analysis.calls[-1]
    validation = dataclasses.replace(end, id="skipped", method="skip", inputs=(end.id,), arguments={"count": 10})
    analysis = dataclasses.replace(analysis, calls=(*analysis.calls, validation))
    movability = judge(analysis)
    assert movability.verdict == REFUSED
    assert any("would leak" in objection.reason for objection in movability.objections)


def test_several_passes_over_finite_data_need_a_repeat_by_hand():
    movability = judged(source(), map_("decode", ms=5), batch(32), epochs=3)
    repair = next(repair for repair in movability.repairs if "job of its own" in repair.text)
    assert not repair.edits and ".repeat()" in repair.code
    endless = judged(source(), repeat(), map_("decode", ms=5), batch(32))
    assert not any("job of its own" in repair.text for repair in endless.repairs)


def test_shuffled_data_stay_random_and_others_are_reordered():
    assert judged(source(), shuffle(), map_("decode", ms=5), batch(32)).safety is Safety.RERANDOMIZED
    assert judged(source(), map_("decode", ms=5), batch(32)).safety is Safety.REORDERED


def test_a_filter_and_an_unbatch_move():
    assert judged(source(), filter_("wanted", ms=1), map_("decode", ms=5), batch(32)).verdict == MOVABLE
    assert judged(source(), unbatch(4), map_("decode", ms=5), batch(32)).verdict == MOVABLE


@pytest.mark.parametrize(
    ("run", "verdict", "causes"),
    [("generator", REFUSED, {PYTHON}), ("zip_filter", UNDECIDED, {COUNTS}), ("interleave_map", MOVABLE, set())],
)
def test_recorded_runs(run, verdict, causes):
    movability = judge(recorded_run(run))
    assert movability.verdict == verdict
    assert {objection.cause for objection in movability.objections} == causes
