"""Functions that are called once per batch: the same elements, or a reason why not, known while tracing."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.model.edits import MoveAfter, SetArgument, Vectorize
from advisor.model.vectorizable_ops import CHECKING_OPS, DRAWING_OPS, VECTORIZABLE_OPS
from advisor.replay.batch_function import draws_per_row
from advisor.replay.edited import CannotVectorize
from advisor.replay.edited_calls import edited_calls
from advisor.replay.replay import CannotReplay
from tests.recorded import Recorded

pytestmark = pytest.mark.tensorflow


def vectorized(recorded: Recorded, is_plain: bool = False) -> tuple[MoveAfter, Vectorize]:
    call_id = recorded.call("map").id
    return MoveAfter(call_id, recorded.call("batch").id), Vectorize(call_id, is_plain=is_plain)


def values(dataset: Any) -> list[list[Any]]:
    import numpy as np
    import tensorflow as tf

    return [[np.asarray(leaf).tolist() for leaf in tf.nest.flatten(element)] for element in dataset]


def rows(count: int) -> Any:
    import tensorflow as tf

    return tf.reshape(tf.range(count * 3.0), [count, 3])


@pytest.mark.parametrize("drop_remainder", [False, True])
def test_a_dictionary_with_a_partial_batch_and_a_branch_of_autograph(recorded: Recorded, drop_remainder: bool) -> None:
    import tensorflow as tf

    def describe(row: Any) -> Any:
        largest = row[0]
        for index in tf.range(3):
            largest = tf.maximum(largest, row[index])
        if largest > 10:
            row = row - 1.0
        return {"row": row / largest, "is_large": largest > 10}

    dataset = tf.data.Dataset.from_tensor_slices(rows(7)).map(describe, num_parallel_calls=2).shuffle(4, seed=1)
    dataset = dataset.batch(3, drop_remainder=drop_remainder)
    edited = recorded.replay(dataset, *vectorized(recorded))
    assert edited.element_spec == dataset.element_spec
    assert values(edited) == values(dataset)
    assert len(values(edited)) == (2 if drop_remainder else 3)


def test_nested_elements_are_passed_as_arguments_and_other_changes_of_the_call_hold(recorded: Recorded) -> None:
    import tensorflow as tf

    def pair(features: Any, label: Any) -> Any:
        return (features["a"] @ tf.transpose(features["b"]), (label, label + 1))

    features = {"a": tf.ones([5, 2, 3]), "b": tf.reshape(tf.range(30.0), [5, 2, 3])}
    dataset = tf.data.Dataset.from_tensor_slices((features, tf.range(5))).map(pair).repeat(2).batch(4)
    call = recorded.call("map")
    edited, work = recorded.replaying(dataset, *vectorized(recorded), SetArgument(call.id, "num_parallel_calls", 2))
    assert values(edited) == values(dataset)
    now = {call.id: call for call in edited_calls(recorded.recorder, work)}
    assert now[call.id].inputs == (recorded.call("batch").id,)
    assert now[call.id].arguments["num_parallel_calls"] == 2


def test_a_function_without_anything_for_autograph_is_called_without_another_function(recorded: Recorded) -> None:
    import tensorflow as tf

    def pair(row: Any) -> Any:
        row["sum"] = tf.reduce_sum(row["x"])  # of a dictionary that is its own
        return row, row["x"] / row["sum"]

    dataset = tf.data.Dataset.from_tensor_slices({"x": rows(7)}).map(pair).batch(3)
    expected = values(dataset)
    edited = recorded.replay(dataset, *vectorized(recorded, is_plain=True))
    assert edited.element_spec == dataset.element_spec
    assert values(edited) == expected
    assert not edited._map_func.function.graph.as_graph_def().library.function


@pytest.mark.parametrize(
    "function",
    [
        lambda row: __import__("tensorflow").strings.as_string(row),
        lambda row: __import__("tensorflow").boolean_mask(row, row > 4),
        lambda row: __import__("tensorflow").image.resize(row[:, None, None], [2, 2]),
    ],
)
def test_a_function_without_a_vectorised_form_is_refused_while_tracing(recorded: Recorded, function: Any) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.from_tensor_slices(rows(4)).map(function).batch(2)
    with pytest.raises(
        CannotVectorize, match=r"map at line \d+ cannot be replayed: its function has no vectorised form"
    ):
        recorded.replay(dataset, *vectorized(recorded))


def test_a_map_inside_a_function_is_not_vectorised(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(2).flat_map(lambda i: tf.data.Dataset.range(8).map(lambda x: x * i).batch(2))
    with pytest.raises(CannotReplay, match="calls inside a function cannot be"):
        recorded.replay(dataset, *vectorized(recorded))


def test_a_map_at_the_end_of_a_function_is_moved_out_of_it(recorded: Recorded) -> None:
    import tensorflow as tf

    def read(number: Any) -> Any:
        return tf.data.Dataset.from_tensor_slices(rows(5) + number).map(lambda row: row / tf.reduce_sum(row))

    dataset = tf.data.Dataset.from_tensor_slices([1.0, 2.0, 3.0]).interleave(read, cycle_length=2).shuffle(4, seed=1)
    dataset = dataset.batch(4)
    expected = values(dataset)  # of its first epoch: the second is shuffled otherwise
    call, outer = recorded.call("map"), recorded.call("interleave")
    edited, work = recorded.replaying(dataset, *vectorized(recorded))
    assert values(edited) == expected
    now = {call.id: call for call in edited_calls(recorded.recorder, work)}
    assert (call.nested_in, now[call.id].nested_in) == (outer.id, None)
    assert now[call.id].inputs == (recorded.call("batch").id,)
    alone = recorded.replay(dataset, MoveAfter(call.id, outer.id))
    assert values(alone) == expected


def test_a_map_that_uses_the_element_of_the_outer_call_stays_in_its_function(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(2).flat_map(lambda i: tf.data.Dataset.range(8).map(lambda x: x * i)).batch(2)
    with pytest.raises(CannotReplay, match="cannot be replayed"):
        recorded.replay(dataset, *vectorized(recorded))
    with pytest.raises(CannotReplay, match="cannot be replayed"):
        recorded.replay(dataset, vectorized(recorded)[0])


@pytest.mark.parametrize("is_plain", [False, True])
def test_each_row_of_a_batch_draws_numbers_of_its_own(recorded: Recorded, is_plain: bool) -> None:
    import tensorflow as tf

    def noisy(row: Any) -> Any:
        row = tf.image.random_brightness(tf.reshape(row, [3, 1, 1]), 0.5)
        return row, tf.random.uniform([], maxval=10**9, dtype=tf.int64), tf.random.truncated_normal([2])

    dataset = tf.data.Dataset.from_tensor_slices(tf.zeros([64, 3])).map(noisy).batch(32)
    edited = recorded.replay(dataset, *vectorized(recorded, is_plain))
    batches = values(edited)
    for component in range(3):
        drawn = {str(row) for batch in batches for row in batch[component]}
        assert len(drawn) == 64, component  # no two rows have the same numbers


def test_a_function_that_draws_once_for_all_rows_is_refused(
    recorded: Recorded, monkeypatch: pytest.MonkeyPatch
) -> None:
    import tensorflow as tf

    from advisor.replay import vectorized_calls

    dataset = tf.data.Dataset.from_tensor_slices(rows(8)).map(lambda row: row + tf.random.uniform([])).batch(4)
    # What applying the function to the batch as it is would do.
    monkeypatch.setattr(vectorized_calls, "batch_function", lambda function, is_plain, tensorflow: function)
    with pytest.raises(CannotVectorize, match="would not draw random numbers of its own for each row"):
        recorded.replay(dataset, *vectorized(recorded))


def test_draws_are_counted_in_all_functions_of_a_graph() -> None:
    import tensorflow as tf

    data = tf.data.Dataset.range(4)
    one = data.map(lambda x: tf.random.uniform([]))
    two = data.map(lambda x: tf.function(lambda: tf.random.uniform(tf.concat([[4], [1]], 0)) + tf.random.normal([]))())
    assert not draws_per_row(one, two)
    assert not draws_per_row(one, one)
    assert draws_per_row(one, data.map(lambda x: tf.function(lambda: tf.random.uniform(tf.concat([[4], [1]], 0)))()))
    assert draws_per_row(data.map(lambda x: x), data.map(lambda x: x + 1))


def test_every_listed_op_has_a_converter_and_none_of_them_has_state_of_its_own() -> None:
    """The list is reviewed by hand; TensorFlow's registry must agree with it."""
    from tensorflow.python.framework import op_def_registry
    from tensorflow.python.ops.parallel_for import pfor

    from advisor.model.op_effects import CALLING_OPS

    registry = set(pfor._pfor_converter_registry)
    assert VECTORIZABLE_OPS - registry == set()
    stateful = {op for op in VECTORIZABLE_OPS if op_def_registry.get(op).is_stateful}
    assert stateful - CALLING_OPS == CHECKING_OPS
    assert not any("Random" in op or "Multinomial" in op for op in VECTORIZABLE_OPS)
    assert registry >= DRAWING_OPS
    converters = {
        op: [cell.cell_contents for cell in pfor._pfor_converter_registry[op].__closure__] for op in DRAWING_OPS
    }
    assert all(pfor._convert_random in converter for converter in converters.values())
