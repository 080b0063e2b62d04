"""Maps that leave the function of an `interleave` or `flat_map`: the same elements in the same order."""

from __future__ import annotations

from typing import Any

import pytest

from advisor.model.edits import Code, Edit, MoveAfter, SetArgument
from advisor.replay.edited_calls import edited_calls
from advisor.replay.replay import CannotReplay
from tests.recorded import Recorded

pytestmark = pytest.mark.tensorflow

AUTOTUNE = Code("tf.data.AUTOTUNE")


def values(dataset: Any) -> list[Any]:
    return [element.tolist() for element in dataset.as_numpy_iterator()]


def edits_of(recorded: Recorded, outer: str, count: int = 1) -> list[Edit]:
    """Move the last maps of the function out of it; the first of them becomes parallel."""
    calls = [call for call in recorded.recorder.calls() if call.method == "map"][-count:]
    moves: list[Edit] = [MoveAfter(call.id, recorded.call(outer).id) for call in reversed(calls)]
    return [*moves, SetArgument(calls[0].id, "num_parallel_calls", AUTOTUNE)]


@pytest.mark.parametrize("cycle", [2, 3, 5])
@pytest.mark.parametrize("calls", [None, 2])
def test_the_order_of_an_interleave_stays(recorded: Recorded, cycle: int, calls: int | None) -> None:
    import tensorflow as tf

    def read(i: Any) -> Any:
        return tf.data.Dataset.range(i * 10, i * 11 + 3).map(lambda x: x * 2)  # of several lengths

    dataset = tf.data.Dataset.range(7).interleave(read, cycle, 2, num_parallel_calls=calls).shuffle(3, seed=1).batch(4)
    expected = values(dataset)
    edited, work = recorded.replaying(dataset, *edits_of(recorded, "interleave"))
    assert values(edited) == expected
    call, outer = recorded.call("map"), recorded.call("interleave")
    now = {call.id: call for call in edited_calls(recorded.recorder, work)}
    assert (now[call.id].nested_in, now[call.id].inputs) == (None, (outer.id,))
    assert now[call.id].arguments["num_parallel_calls"] == -1


def test_several_maps_keep_their_order_and_a_prefetch_stays(recorded: Recorded) -> None:
    import tensorflow as tf

    def read(i: Any) -> Any:
        dataset = tf.data.Dataset.range(i, i + 4).map(lambda x: x + 1)
        return dataset.map(lambda x: (x * x, x)).map(lambda x, y: x - y, num_parallel_calls=2).prefetch(1)

    dataset = tf.data.Dataset.range(4).flat_map(read)
    edited, work = recorded.replaying(dataset, *edits_of(recorded, "flat_map", 3))
    assert values(edited) == values(dataset)
    now = {call.id: call for call in edited_calls(recorded.recorder, work)}
    inside = [call for call in now.values() if call.nested_in is not None]
    assert [call.method for call in inside] == ["range", "prefetch"]
    assert inside[1].inputs == (inside[0].id,)


def test_random_numbers_are_drawn_anew_and_no_others_change(recorded: Recorded) -> None:
    import tensorflow as tf

    def read(i: Any) -> Any:
        return tf.data.Dataset.range(50).map(lambda x: tf.cast(x, tf.float32) + tf.random.uniform([], maxval=0.5))

    dataset = tf.data.Dataset.range(4).interleave(read, cycle_length=2)
    edited = recorded.replay(dataset, *edits_of(recorded, "interleave"))
    before, after = values(dataset), values(edited)
    assert before != after
    assert [int(x) for x in before] == [int(x) for x in after]
    assert len({x % 1 for x in after}) > 150


def test_a_map_that_needs_the_element_of_the_outer_call_is_refused(recorded: Recorded) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(3).flat_map(lambda i: tf.data.Dataset.range(4).map(lambda x: x * i))
    with pytest.raises(CannotReplay, match="cannot be replayed"):
        recorded.replay(dataset, *edits_of(recorded, "flat_map"))
