"""What forbids a cache, and what parallel calls do to random numbers."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.host.calibration.prediction import CALLED_NS
from advisor.model.calls import Call, FunctionFacts
from advisor.model.finding import Safety
from advisor.model.recording import Recording, ScriptExit, StepSeries
from advisor.model.state import CapturedResource, ObservedState, StateChange
from advisor.predict import cache_assumptions, cache_obstacles, cache_places, parallel_safety
from advisor.testing import AUTOTUNE, batch, interleave, map_, pipeline, prefetch, repeat, shuffle, source

STATELESS = FunctionFacts("decode", None, False, stateful_ops=())
RANDOM = FunctionFacts("augment", None, True, random_ops=("RandomUniform",), stateful_ops=("RandomUniform",))
STATIC, MUTABLE = CapturedResource("static table", "words"), CapturedResource("mutable table", "words", "s1")
SCALE = CapturedResource("variable", "scale", "s1")


def reads(*resources: CapturedResource, ops: tuple[str, ...] = ("LookupTableFindV2",), **facts) -> FunctionFacts:
    return FunctionFacts("f", None, True, resources=resources, stateful_ops=ops, **facts)


def analysed(*calls: Call, recording: Recording | None = None):
    made = pipeline(source(), map_("decode", ms=1), consumer_ms=1).analysis
    linked = []
    for i, call in enumerate(calls):
        linked.append(
            dataclasses.replace(call, id=f"c{i}", inputs=(f"c{i - 1}",) if i and not call.nested_in else call.inputs)
        )
    return dataclasses.replace(made, calls=tuple(linked), recording=recording)


def obstacles(*calls: Call, at: int = -1) -> list[tuple[str, str]]:
    made = analysed(*calls)
    return [(o.call.method, o.kind) for o in cache_obstacles(made, made.calls[at])]


def reasons(function: FunctionFacts, *observed: ObservedState) -> list[str]:
    made = analysed(FILES, call("map", function), recording=seen(*observed))
    return [o.reason for o in cache_obstacles(made, made.calls[-1])]


def assumptions(function: FunctionFacts | None, *observed: ObservedState) -> list[str]:
    made = analysed(FILES, call("map", function or STATELESS), recording=seen(*observed))
    return list(cache_assumptions(made, made.calls[-1]))


def seen(*observed: ObservedState) -> Recording:
    """A recording that watched the files of `c0`, and `observed`."""
    host = pipeline(source(), map_("decode", ms=1), consumer_ms=1).analysis.host
    files = ObservedState("files", "file", "/data/train.tfrecord", ("c0",), epochs=3)
    return Recording("train.py", host, ScriptExit("stopped"), state=(*observed, files))


def call(method: str, function: FunctionFacts | None = None, **arguments) -> Call:
    return Call("", method, None, function=function, arguments=arguments)


FILES = call("TFRecordDataset")

CASES = {
    "files": ((FILES,), []),
    "a stateless map": ((FILES, call("map", STATELESS)), []),
    "a random map": ((FILES, call("map", RANDOM)), [("map", "content")]),
    "below a random map": ((FILES, call("map", RANDOM), call("batch")), [("map", "content")]),
    "a static table": ((FILES, call("map", reads(STATIC))), []),
    "a table that nothing identified": (
        (FILES, call("map", reads(CapturedResource("resource")))),
        [("map", "content")],
    ),
    "a queue": ((FILES, call("map", reads(CapturedResource("queue"), ops=("QueueSizeV2",)))), [("map", "content")]),
    "a random generator": (
        (FILES, call("map", reads(CapturedResource("random generator"), ops=()))),
        [("map", "content")],
    ),
    "a dataset that nobody recorded": (
        (FILES, call("map", reads(CapturedResource("dataset"), ops=()))),
        [("map", "content")],
    ),
    "Python": ((FILES, call("map", FunctionFacts("f", None, True, python_ops=("EagerPyFunc",)))), [("map", "content")]),
    "state of an earlier recording": ((FILES, call("map", FunctionFacts("f", None, True))), [("map", "content")]),
    "a table of an earlier recording": (
        (FILES, call("map", FunctionFacts("f", None, True, captured=("HashTableV2",)))),
        [("map", "content")],
    ),
    "a function without facts": ((FILES, call("map")), [("map", "content")]),
    "Dataset.random": ((call("random"), call("map", STATELESS)), [("random", "content")]),
    "a generator": ((call("from_generator"), call("map", STATELESS)), [("from_generator", "content")]),
    "shuffle": ((FILES, call("shuffle")), [("shuffle", "order")]),
    "one shuffle for all epochs": ((FILES, call("shuffle", reshuffle_each_iteration=False)), []),
    "list_files shuffles by itself": ((call("list_files"),), [("list_files", "order")]),
    "list_files in order": ((call("list_files", shuffle=False),), []),
    "deterministic=False": ((FILES, call("map", STATELESS, deterministic=False)), [("map", "order")]),
    "sampling": ((FILES, call("sample_from_datasets")), [("sample_from_datasets", "content")]),
    "an unknown method": ((FILES, call("teleport")), [("teleport", "content")]),
    "an unknown method of a library": (
        (FILES, dataclasses.replace(call("teleport"), library="tfio")),
        [("teleport", "content")],
    ),
    "a dataset class that nobody recorded": (
        (FILES, dataclasses.replace(call("batch"), unrecorded=("KafkaDataset",))),
        [("batch", "content")],
    ),
    "a dataset class that apply makes": (
        (FILES, dataclasses.replace(call("apply"), unrecorded=("_ShuffleAndRepeatDataset",))),
        [("apply", "content")],
    ),
    "options set by TensorFlow": ((FILES, dataclasses.replace(call("batch"), unrecorded=("_OptionsDataset",))), []),
}


@pytest.mark.parametrize(("calls", "expected"), CASES.values(), ids=CASES)
def test_obstacles(calls, expected):
    assert obstacles(*calls) == expected


def test_calls_inside_a_function_count():
    inner = dataclasses.replace(call("map", RANDOM), nested_in="c1")
    assert obstacles(FILES, call("interleave", STATELESS), inner, at=1) == [("interleave", "content")]


def test_datasets_that_a_function_captures_count_with_all_that_feeds_them():
    noise = dataclasses.replace(call("random"))
    flat = call("flat_map", reads(CapturedResource("dataset", "noise", "c0"), ops=()))
    made = analysed(noise, FILES, flat)
    made = dataclasses.replace(
        made, calls=(made.calls[0], dataclasses.replace(made.calls[1], inputs=()), made.calls[2])
    )
    assert [(o.call.method, o.reason) for o in cache_obstacles(made, made.calls[2])] == [
        ("flat_map", "draws random numbers")
    ]


def test_a_shuffle_inside_a_function_has_a_new_order_in_every_epoch():
    function = reads(ops=("ShuffleDatasetV3", "DummySeedGenerator"))
    inner = dataclasses.replace(call("shuffle", reshuffle_each_iteration=False), nested_in="c1")
    seeded = dataclasses.replace(inner, arguments={"reshuffle_each_iteration": False, "seed": 1})
    assert obstacles(FILES, call("interleave", function), inner, at=1) == [("interleave", "order")]
    assert obstacles(FILES, call("interleave", function), seeded, at=1) == []
    assert obstacles(FILES, call("interleave", function)) == [("interleave", "content")]  # made by no recorded call


SIDE_EFFECTS = {
    "Timestamp": "reads the clock (Timestamp), which returns a different value in every call",
    "WriteFile": "writes a file in every call (WriteFile), which a cache would suppress",
    "WriteSummary": "writes a summary in every call (WriteSummary), which a cache would suppress",
    "PrintV2": "prints in every call (PrintV2), which a cache would suppress",
    "AssignAddVariableOp": "assigns a variable in every call (AssignAddVariableOp), which a cache would suppress",
    "LookupTableInsertV2": "changes a lookup table in every call (LookupTableInsertV2), which a cache would suppress",
    "QueueDequeueV2": "uses a queue in every call (QueueDequeueV2), which a cache would suppress",
    "IteratorGetNext": (
        "takes elements from an iterator of the script in every call (IteratorGetNext), which a cache would suppress"
    ),
    "Stage": "uses a queue in every call (Stage), which a cache would suppress",
    "MutableHashTableV2": "contains the stateful op MutableHashTableV2, which is not known to return the same value every time",
    "MyCustomOp": "contains the stateful op MyCustomOp, which is not known to return the same value every time",
    "KafkaDataset": "creates a dataset (KafkaDataset) that is not known to produce the same elements in every epoch",
}


@pytest.mark.parametrize("op", SIDE_EFFECTS)
def test_a_constant_table_excuses_no_other_stateful_op(op):
    assert reasons(reads(STATIC, ops=("LookupTableFindV2", op))) == [SIDE_EFFECTS[op]]
    assert reasons(reads(ops=("Assert", op, "ReadVariableOp"))) == [SIDE_EFFECTS[op]]


def test_state_that_was_seen_to_change_forbids_a_cache_and_is_named():
    change = StateChange("was changed", 1, "/home/me/train.py", 31)
    table = ObservedState("s1", "mutable table", "words", ("c1",), 2, change=change)
    sentence = "reads the mutable table `words`, which was changed after epoch 1 had begun (train.py:31)"
    assert reasons(reads(MUTABLE), table) == [sentence]
    file = ObservedState("s2", "file", "/data/a.tfrecord", ("c1",), 2, change=StateChange("changed", 2))
    assert reasons(STATELESS, file) == ["reads the file a.tfrecord, which changed after epoch 2 had begun"]


def test_a_change_is_named_beside_another_obstacle():
    samples = ObservedState("s1", "Python object", "samples", ("c0",), 2, change=StateChange("changed", 1))
    made = analysed(call("from_generator"), recording=seen(samples))
    (obstacle,) = cache_obstacles(made, made.calls[0])
    assert obstacle.reason.endswith("; reads the Python object `samples`, which changed after epoch 1 had begun")


def test_state_that_was_not_seen_to_change_is_an_assumption():
    stays = "the variable `scale` is not assigned while training runs"
    for observed, evidence in (
        ((), "its contents were not compared"),
        ((ObservedState("s1", "variable", "scale", ("c1",), epochs=1),), "fewer than two epochs were observed"),
        (
            (ObservedState("s1", "variable", "scale", ("c1",), epochs=4),),
            "it was the same at the beginning of 4 epochs",
        ),
        ((ObservedState("s1", "variable", "scale", ("c1",), 4, is_compared=False),), "its contents were not compared"),
    ):
        assert assumptions(reads(SCALE, ops=("ReadVariableOp",)), *observed) == [f"{stays} ({evidence})"]
        assert reasons(reads(SCALE, ops=("ReadVariableOp",)), *observed) == []
    (table,) = assumptions(reads(MUTABLE))
    assert table.startswith("the mutable table `words` is not changed while training runs")


def test_constants_need_no_assumption():
    assert assumptions(reads(STATIC)) == assumptions(None) == []


def test_files_that_were_watched_need_no_assumption_unless_the_script_writes_them():
    written = ObservedState("s2", "file", "/data/a.tfrecord", ("c0",), 2, is_written_before=True)
    assert assumptions(None, written) == [
        "a.tfrecord, which the script writes before the first epoch, is not written again while training runs"
    ]
    made = analysed(FILES, recording=dataclasses.replace(seen(), state=None))
    assert cache_assumptions(made, made.calls[0]) == (
        "the files that `TFRecordDataset` reads are not rewritten while training runs (they were not observed)",
    )
    made = analysed(FILES, recording=dataclasses.replace(seen(), state=()))
    assert cache_assumptions(made, made.calls[0]) == (
        "the files that `TFRecordDataset` reads are not rewritten while training runs (their names are unknown)",
    )


def test_a_cache_place_carries_the_assumptions():
    made = pipeline(
        source(elements=320), map_("scale", ms=3, captured=["VarHandleOp"]), batch(10), consumer_ms=1, epochs=3
    ).analysis
    by_method = {p.call.method: bool(p.assumptions) for p in cache_places(made, made.main)}
    assert by_method == {"TFRecordDataset": False, "map": True, "batch": True}


def test_functions_that_see_one_anothers_changes_do_not_run_in_parallel():
    assert parallel_safety(call("map", reads(ops=("AssignAddVariableOp",)))) is Safety.CHANGES
    assert parallel_safety(call("map", reads(MUTABLE, ops=("LookupTableInsertV2",)))) is Safety.CHANGES
    assert parallel_safety(call("map", reads(STATIC))) is Safety.EXACT


def test_parallel_calls_draw_other_random_numbers_and_change_nothing_else():
    assert parallel_safety(call("map", STATELESS)) is Safety.EXACT
    assert parallel_safety(call("map", RANDOM)) is Safety.RERANDOMIZED
    assert parallel_safety(call("batch")) is Safety.EXACT


def places(*stages, **machine) -> dict[str, tuple[float, int | None]]:
    made = pipeline(*stages, **machine).analysis
    return {p.call.method: (round(p.saved_share, 2), p.bytes) for p in cache_places(made, made.main)}


def test_a_place_saves_what_is_upstream_and_holds_its_elements():
    by_method = places(
        source(elements=100, bytes=1_000, ms=1), map_("decode", ms=3, bytes=5_000, random=True), shuffle(), batch(10),
        prefetch(), consumer_ms=1, cores=8,
    )  # fmt: skip
    assert by_method == {"TFRecordDataset": (0.25, 100_000), "map": (1.0, 500_000), "batch": (1.0, 500_000)}


def test_a_map_fused_with_its_batch_is_saved_without_it():
    made = pipeline(source(elements=100), map_("decode", ms=3), batch(10, ms=10), consumer_ms=1, cores=1).analysis
    by_method = {p.call.method: p.saved_share for p in cache_places(made, made.main)}
    assert by_method["map"] == pytest.approx(
        (30 + 10 * CALLED_NS.value / 1e6) / 40
    )  # calling the function is saved, batching is not
    assert by_method["batch"] == pytest.approx(1.0)


def test_no_place_behind_an_endless_repeat_or_inside_an_interleave():
    assert set(places(source(), repeat(), batch(10), consumer_ms=0.1)) <= {"TFRecordDataset"}
    by_method = places(source("ListFiles"), interleave(source(ms=1), calls=AUTOTUNE), batch(10), consumer_ms=1)
    assert set(by_method) == {"list_files", "interleave", "batch"}
    assert by_method["interleave"][1] is None  # how many elements the files hold is not known


def movable(*stages) -> dict[str, list[str]]:
    made = pipeline(*stages, consumer_ms=1, cores=8).analysis
    return {p.call.method: [call.method for call in p.movable] for p in cache_places(made, made.main)}


def test_shuffles_can_follow_maps_but_not_batches():
    by_method = movable(source("ListFiles", elements=50), shuffle(), map_("decode", ms=3), batch(10))
    assert by_method == {"list_files": ["list_files"], "map": ["shuffle", "list_files"], "batch": []}


def test_a_shuffle_does_not_move_past_random_numbers():
    assert movable(source(), shuffle(), map_("augment", ms=3, random=True), batch(10))["map"] == []


def test_a_repeat_can_follow_maps_and_leaves_one_pass_to_cache():
    made = pipeline(source(elements=50), repeat(), map_("decode", ms=3, bytes=100), batch(10), consumer_ms=1).analysis
    by_method = {p.call.method: ([call.method for call in p.movable], p.bytes) for p in cache_places(made, made.main)}
    assert by_method == {"TFRecordDataset": ([], 50_000), "map": (["repeat"], 5_000)}


def test_no_cache_where_epochs_are_left_early():
    made = pipeline(source(elements=320), map_("decode", ms=3), batch(10), consumer_ms=1, epochs=3).analysis
    host = made.host
    for steps, is_whole in ((32 * 2 + 5, True), (10 * 2, False)):
        series = StepSeries("consumer0", tuple(range(steps)))
        recording = Recording("train.py", host, ScriptExit("stopped"), consumers=(made.main.consumer,), steps=(series,))
        assert bool(cache_places(dataclasses.replace(made, recording=recording), made.main)) is is_whole


def test_a_branch_of_a_zip_can_be_cached_if_all_of_it_is_taken():
    made = pipeline(source(elements=50), map_("decode", ms=3), batch(10), consumer_ms=1).analysis
    decode, last = made.calls[1], made.calls[2]
    other = dataclasses.replace(made.calls[0], id="other", cardinality=50)
    for elements, is_legal in ((50, True), (20, False)):
        both = Call("zip", "zip", None, inputs=(decode.id, "other"), cardinality=elements)
        batched = dataclasses.replace(last, inputs=("zip",))
        analysis = dataclasses.replace(made, calls=(*made.calls[:2], other, both, batched))
        methods = {p.call.id for p in cache_places(analysis, made.main)}
        assert (decode.id in methods) is is_legal
        assert "zip" in methods


def test_the_iterators_that_keras_makes_are_no_epochs():
    made = pipeline(source(elements=320), map_("decode", ms=3), batch(10), consumer_ms=1, epochs=7).analysis
    consumer = dataclasses.replace(made.main.consumer, kind="keras.fit")
    series = StepSeries("consumer0", tuple(range(33)))
    recording = Recording("train.py", made.host, ScriptExit("stopped"), consumers=(consumer,), steps=(series,))
    main = dataclasses.replace(made.main, consumer=consumer)
    assert cache_places(dataclasses.replace(made, recording=recording), main)
