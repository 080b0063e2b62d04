"""`window-datasets`: what it writes makes the same windows, bit for bit, with the same element spec; all else is advice."""

from __future__ import annotations

import dataclasses
import itertools
from typing import Any

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.calls import Call
from advisor.model.edits import InsertAfter, Number, Remove, SetFunction, WrapData
from advisor.model.finding import Fix
from advisor.model.settings import Settings
from advisor.replay.edited_calls import edited_calls
from advisor.testing import batch, flat_map, pipeline, source, window
from tests.recorded import Recorded, install

RULE = next(loaded for loaded in load_rules([], Settings()) if loaded.id == "window-datasets")
MADE = pipeline(
    source("TensorSlice", elements=1_000, spec="TensorSpec(shape=(8,), dtype=tf.float32, name=None)"),
    window(20, shift=1, ms=0.05),
    flat_map(batch(20, ms=0.05), op_shares={"BatchDatasetV2": 0.2}, per_input=1, ms=0.02),
    consumer_ms=0.02,
    cores=2,
).analysis


def edits_for(calls: tuple[Call, ...]) -> tuple[Any, ...]:
    """The edits for these calls, as if they had taken the times of the simulated ones."""
    calls = tuple(dataclasses.replace(call, site=MADE.calls[0].site) for call in calls)
    known = {call.method: call for call in calls} | {MADE.calls[0].method: calls[0]}
    assert MADE.main is not None
    iterators = tuple(
        dataclasses.replace(it, calls=tuple(known[call.method] for call in it.calls)) for it in MADE.main.iterators
    )
    main = dataclasses.replace(MADE.main, iterators=iterators)
    findings = run_rules(dataclasses.replace(MADE, calls=calls, pipelines=(main,)), [RULE], Settings()).findings
    assert len(findings) == 1
    fix: Fix | None = findings[0].fix
    assert (fix is None) == bool(findings[0].code)
    return () if fix is None else fix.edits


CASES = list(itertools.product((1, 2, 4), (4,), (False, True), (False, True)))


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize(("shift", "size", "windows_drop", "inner_drops"), CASES)
@pytest.mark.parametrize("kind", ["rows", "range", "strings"])
def test_the_same_windows_come_out(shift: int, size: int, windows_drop: bool, inner_drops: bool, kind: str) -> None:
    import tensorflow as tf

    for count in (1, 4, 9, 12):
        with install() as recorded:
            made = {
                "rows": lambda n: tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(n * 3.0), [n, 3])),
                "range": tf.data.Dataset.range,
                "strings": lambda n: tf.data.Dataset.from_tensor_slices(tf.strings.as_string(tf.range(n))),
            }[kind](count)
            dataset = made.window(size, shift, drop_remainder=windows_drop)
            dataset = dataset.flat_map(lambda rows: rows.batch(size, drop_remainder=inner_drops))
            is_tensor = kind == "rows" and inner_drops and count >= size
            check(recorded, dataset, shift == size, windows_drop and not inner_drops and count % size != 0, is_tensor)


def check(recorded: Recorded, dataset: Any, is_apart: bool, is_unknown: bool, can_be_a_tensor: bool = False) -> None:
    """The edits for a recorded dataset give the same elements; none are made if windows of another length are dropped."""
    recorded.recorder.is_open = False
    calls = recorded.recorder.calls()
    edits = edits_for(calls)
    if is_apart and is_unknown:
        assert edits == ()
        return
    kinds: list[type] = [InsertAfter, Remove, SetFunction]
    if is_apart:
        kinds = [InsertAfter, Remove, Remove]
    elif can_be_a_tensor:
        kinds = [WrapData, Remove, Remove]
    assert [type(edit) for edit in edits] == kinds
    edited = recorded.replay(dataset, *edits)
    assert edited.element_spec == dataset.element_spec
    for _ in range(2):
        assert [x.tolist() for x in edited.as_numpy_iterator()] == [x.tolist() for x in dataset.as_numpy_iterator()]


@pytest.mark.tensorflow
@pytest.mark.parametrize("inner_drops", [False, True])
def test_blocks_make_the_same_windows_whatever_their_number(inner_drops: bool) -> None:
    """512 windows of one number come from one call: fewer, just as many, one more, and several blocks."""
    import tensorflow as tf

    for windows in (1, 511, 512, 513, 1_600):
        with install() as recorded:
            dataset = tf.data.Dataset.range(windows + 3).window(4, 1, drop_remainder=True)
            dataset = dataset.flat_map(lambda rows: rows.batch(4, drop_remainder=inner_drops))
            check(recorded, dataset, is_apart=False, is_unknown=False)


def written_for(calls: tuple[Call, ...]) -> str:
    """The function that is written for these calls."""
    return next(edit.text for edit in edits_for(calls) if isinstance(edit, SetFunction))


def test_large_windows_are_made_in_smaller_blocks_or_one_by_one() -> None:
    complete = with_arguments("window", drop_remainder=True)
    sizes = {32: ".batch(512)", 10_000: ".batch(20)", 30_000: None, None: None}
    for row_bytes, block in sizes.items():
        calls = tuple(
            dataclasses.replace(call, element_bytes=row_bytes) if call.method == "from_tensor_slices" else call
            for call in complete
        )
        text = written_for(calls)
        assert (block in text and "unbatch" in text) if block is not None else "batch" not in text


def test_incomplete_windows_are_made_one_by_one() -> None:
    """Those at the end are shorter than the others."""
    assert ".map(lambda first: rows[first : first + 20])" in written_for(with_arguments("window", drop_remainder=False))


def changed(method: str, **changes: Any) -> tuple[Call, ...]:
    return tuple(dataclasses.replace(call, **changes) if call.method == method else call for call in MADE.calls)


def with_arguments(method: str, **arguments: Any) -> tuple[Call, ...]:
    return tuple(
        dataclasses.replace(call, arguments={**call.arguments, **arguments}) if call.method == method else call
        for call in MADE.calls
    )


def test_what_is_not_known_to_be_the_same_is_advice() -> None:
    assert edits_for(MADE.calls)
    function = next(call.function for call in MADE.calls if call.method == "flat_map")
    pair = "(TensorSpec(shape=(8,), dtype=tf.float32, name=None), TensorSpec(shape=(), dtype=tf.int64, name=None))"
    for calls in (
        with_arguments("window", stride=2),
        with_arguments("window", shift=30),
        with_arguments("window", drop_remainder="<tensor>"),
        with_arguments("batch", batch_size=10),
        changed("from_tensor_slices", element_spec=pair),
        changed("from_tensor_slices", element_spec="TensorSpec(shape=(None,), dtype=tf.float32, name=None)"),
        changed("flat_map", function=None),
        changed("flat_map", function=dataclasses.replace(function, ops={**function.ops, "Mul": 1})),
        changed("window", library="keras"),
    ):
        assert edits_for(calls) == ()


COMPLETE = with_arguments("window", drop_remainder=True)
KNOWN = "TensorSpec(shape=(20, 8), dtype=tf.float32, name=None)"
OPEN = "TensorSpec(shape=(None, 8), dtype=tf.float32, name=None)"


def with_readers(*methods_and_specs: tuple[str, str]) -> tuple[Call, ...]:
    """Complete windows of a length that their spec leaves open, and calls that take them one after the other."""
    calls = tuple(
        dataclasses.replace(call, element_bytes=32, cardinality=1_000)
        if call.method == "from_tensor_slices"
        else dataclasses.replace(call, element_spec=OPEN)
        if call.method == "flat_map"
        else call
        for call in COMPLETE
    )
    for method, spec in methods_and_specs:
        last = calls[-1] if calls[-1].nested_in is None else next(c for c in calls if c.method == "flat_map")
        reader = dataclasses.replace(
            last, id=f"{method}_{len(calls)}", method=method, inputs=(last.id,), element_spec=spec, function=None
        )
        calls = (*calls, reader)
    return calls


def test_one_tensor_of_windows_where_their_length_does_not_show() -> None:
    (wrapped, *_) = edits_for(with_readers(("shuffle", OPEN), ("map", KNOWN)))
    made_by = next(call.id for call in COMPLETE if call.method == "window")
    numbers = Number("size", 20), Number("shift", 1)
    assert wrapped == WrapData(wrapped.call_id, made_by, "tf.signal.frame(data, size, shift, axis=0)", numbers)
    for readers in (
        (),
        (("map", OPEN),),
        (("batch", KNOWN),),
        (("shuffle", OPEN), ("batch", KNOWN)),
        (("map", KNOWN[:-1] + "…"),),
    ):
        assert isinstance(edits_for(with_readers(*readers))[0], InsertAfter)
    one, *others = with_readers(("map", KNOWN), ("map", OPEN))
    windows = next(call for call in others if call.method == "flat_map")
    both = tuple(dataclasses.replace(call, inputs=(windows.id,)) if call.method == "map" else call for call in others)
    assert isinstance(edits_for((one, *both))[0], InsertAfter)


def test_one_tensor_of_windows_only_where_it_is_small_and_they_are_complete() -> None:
    whole = with_readers(("map", KNOWN))

    def with_source(**changes: Any) -> tuple[Call, ...]:
        return (dataclasses.replace(whole[0], **changes), *whole[1:])

    assert isinstance(edits_for(with_source(cardinality=419_449))[0], WrapData)  # 419,430 windows of 640 bytes: 256 MiB
    for changes in (
        {"cardinality": 419_450},
        {"cardinality": -2},
        {"cardinality": None},
        {"element_bytes": None},
        {"cardinality": 19},
    ):
        assert isinstance(edits_for(with_source(**changes))[0], InsertAfter)
    assert isinstance(edits_for(with_source(method="range"))[0], InsertAfter)
    cut_off = tuple(
        dataclasses.replace(call, arguments={**call.arguments, "drop_remainder": False})
        if call.method == "window"
        else call
        for call in whole
    )
    assert isinstance(edits_for(cut_off)[0], InsertAfter)


@pytest.mark.tensorflow
@pytest.mark.parametrize("dtype", ["bool", "uint8", "float64", "complex64"])
def test_a_tensor_of_windows_of_any_type(dtype: str) -> None:
    import tensorflow as tf

    values = tf.cast(tf.reshape(tf.range(24), [12, 2]) % 3, dtype)
    for shift in (1, 2, 3):
        with install() as recorded:
            dataset = tf.data.Dataset.from_tensor_slices(values).window(4, shift, drop_remainder=True)
            dataset = dataset.flat_map(lambda window: window.batch(4, drop_remainder=True))
            check(recorded, dataset, is_apart=False, is_unknown=False, can_be_a_tensor=True)


@pytest.mark.tensorflow
def test_the_windows_of_a_replay_carry_the_name_of_the_source() -> None:
    """Otherwise the profile of the changed pipeline could not tell which call their iterator runs."""
    import tensorflow as tf

    with install() as recorded:
        dataset = tf.data.Dataset.from_tensor_slices(tf.range(12)).window(4, 1, drop_remainder=True)
        dataset = dataset.flat_map(lambda window: window.batch(4, drop_remainder=True)).prefetch(1)
        calls = recorded.recorder.calls()
        source = recorded.call("from_tensor_slices")
        edits = edits_for(tuple(call for call in calls if call.method != "prefetch"))
        edited, work = recorded.replaying(dataset, *edits)
    assert edited._input_dataset._metadata.name.decode() == source.id
    after = {call.id: call for call in edited_calls(recorded.recorder, work)}
    assert after[source.id].element_spec == "TensorSpec(shape=(4,), dtype=tf.int32, name=None)"
    assert after[source.id].cardinality == 9
    assert {call.method for call in after.values() if call.nested_in is None} == {"from_tensor_slices", "prefetch"}
