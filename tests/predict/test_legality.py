"""What forbids a cache, and what parallel calls do to random numbers."""

from __future__ import annotations

import dataclasses

import pytest

from advisor.model.finding import Safety
from advisor.model.recording import Call, FunctionFacts, Recording, ScriptExit, StepSeries
from advisor.predict import cache_obstacles, cache_places, parallel_safety
from advisor.predict.caching import CALLED_NS
from advisor.testing import AUTOTUNE, batch, interleave, map_, pipeline, prefetch, repeat, shuffle, source

STATELESS = FunctionFacts("decode", None, False)
RANDOM = FunctionFacts("augment", None, True, random_ops=("RandomUniform",))


def obstacles(*calls: Call, at: int = -1) -> list[tuple[str, str]]:
    made = pipeline(source(), map_("decode", ms=1), consumer_ms=1).analysis
    linked = []
    for i, call in enumerate(calls):
        linked.append(
            dataclasses.replace(call, id=f"c{i}", inputs=(f"c{i - 1}",) if i and not call.nested_in else call.inputs)
        )
    made = dataclasses.replace(made, calls=tuple(linked))
    return [(o.call.method, o.kind) for o in cache_obstacles(made, linked[at])]


def call(method: str, function: FunctionFacts | None = None, **arguments) -> Call:
    return Call("", method, None, function=function, arguments=arguments)


FILES = call("TFRecordDataset")

CASES = {
    "files": ((FILES,), []),
    "a stateless map": ((FILES, call("map", STATELESS)), []),
    "a random map": ((FILES, call("map", RANDOM)), [("map", "content")]),
    "below a random map": ((FILES, call("map", RANDOM), call("batch")), [("map", "content")]),
    "a lookup table": ((FILES, call("map", FunctionFacts("f", None, True, captured=("HashTableV2",)))), []),
    "a variable": (
        (FILES, call("map", FunctionFacts("f", None, True, captured=("VarHandleOp",)))),
        [("map", "content")],
    ),
    "Python": ((FILES, call("map", FunctionFacts("f", None, True, python_ops=("EagerPyFunc",)))), [("map", "content")]),
    "a stateful function": ((FILES, call("map", FunctionFacts("f", None, True))), [("map", "content")]),
    "Dataset.random": ((call("random"), call("map", STATELESS)), [("random", "content")]),
    "a generator": ((call("from_generator"), call("map", STATELESS)), [("from_generator", "content")]),
    "shuffle": ((FILES, call("shuffle")), [("shuffle", "order")]),
    "one shuffle for all epochs": ((FILES, call("shuffle", reshuffle_each_iteration=False)), []),
    "list_files shuffles by itself": ((call("list_files"),), [("list_files", "order")]),
    "list_files in order": ((call("list_files", shuffle=False),), []),
    "deterministic=False": ((FILES, call("map", STATELESS, deterministic=False)), [("map", "order")]),
    "sampling": ((FILES, call("sample_from_datasets")), [("sample_from_datasets", "content")]),
    "an unknown method": ((FILES, call("teleport")), [("teleport", "content")]),
}


@pytest.mark.parametrize(("calls", "expected"), CASES.values(), ids=CASES)
def test_obstacles(calls, expected):
    assert obstacles(*calls) == expected


def test_calls_inside_a_function_count():
    inner = dataclasses.replace(call("map", RANDOM), nested_in="c1")
    assert obstacles(FILES, call("interleave", STATELESS), inner, at=1) == [("interleave", "content")]


def test_parallel_calls_draw_other_random_numbers_and_change_nothing_else():
    assert parallel_safety(call("map", STATELESS)) is Safety.EXACT
    assert parallel_safety(call("map", RANDOM)) is Safety.RERANDOMIZED
    assert parallel_safety(call("batch")) is Safety.EXACT


def places(*stages, **machine) -> dict[str, tuple[float, int | None]]:
    made = pipeline(*stages, **machine).analysis
    return {p.call.method: (round(p.saved_share, 2), p.bytes) for p in cache_places(made, made.main)}


def test_a_place_saves_what_is_upstream_and_holds_its_elements():
    found = places(
        source(elements=100, bytes=1_000, ms=1), map_("decode", ms=3, bytes=5_000, random=True), shuffle(), batch(10),
        prefetch(), consumer_ms=1, cores=8,
    )  # fmt: skip
    assert found == {"TFRecordDataset": (0.25, 100_000), "map": (1.0, 500_000), "batch": (1.0, 500_000)}


def test_a_map_fused_with_its_batch_is_saved_without_it():
    made = pipeline(source(elements=100), map_("decode", ms=3), batch(10, ms=10), consumer_ms=1, cores=1).analysis
    found = {p.call.method: p.saved_share for p in cache_places(made, made.main)}
    assert found["map"] == pytest.approx(
        (30 + 10 * CALLED_NS / 1e6) / 40
    )  # calling the function is saved, batching is not
    assert found["batch"] == pytest.approx(1.0)


def test_no_place_behind_an_endless_repeat_or_inside_an_interleave():
    assert set(places(source(), repeat(), batch(10), consumer_ms=0.1)) <= {"TFRecordDataset"}
    found = places(source("ListFiles"), interleave(source(ms=1), calls=AUTOTUNE), batch(10), consumer_ms=1)
    assert set(found) == {"list_files", "interleave", "batch"}
    assert found["interleave"][1] is None  # how many elements the files hold is not known


def movable(*stages) -> dict[str, list[str]]:
    made = pipeline(*stages, consumer_ms=1, cores=8).analysis
    return {p.call.method: [call.method for call in p.movable] for p in cache_places(made, made.main)}


def test_shuffles_can_stand_behind_maps_but_not_behind_batches():
    found = movable(source("ListFiles", elements=50), shuffle(), map_("decode", ms=3), batch(10))
    assert found == {"list_files": ["list_files"], "map": ["shuffle", "list_files"], "batch": []}


def test_a_shuffle_does_not_move_past_random_numbers():
    assert movable(source(), shuffle(), map_("augment", ms=3, random=True), batch(10))["map"] == []


def test_a_repeat_can_stand_behind_maps_and_leaves_one_pass_to_hold():
    made = pipeline(source(elements=50), repeat(), map_("decode", ms=3, bytes=100), batch(10), consumer_ms=1).analysis
    found = {p.call.method: ([call.method for call in p.movable], p.bytes) for p in cache_places(made, made.main)}
    assert found == {"TFRecordDataset": ([], 50_000), "map": (["repeat"], 5_000)}


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
