"""What edits do to the data, as seen on real elements: honest edits pass, planted ones never."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument, SetOption
from advisor.model.finding import Safety
from advisor.prove.trial.elements.distribution_tests import kolmogorov_smirnov
from advisor.prove.trial.elements.element_comparison import OWN_NOISE
from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.prove.trial.elements.equivalence import Equivalence, is_touched
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.streams import OriginalFails
from tests.recorded import Recorded

AUTOTUNE = Code("tf.data.AUTOTUNE")


def noisy(x: Any) -> Any:
    import tensorflow as tf

    return tf.cast(x, tf.float32) + tf.random.uniform([])


@pytest.fixture
def judge(recorded: Recorded, tmp_path: Path) -> Callable[..., Judgement]:
    def judge(dataset: Any, *edits: Edit, elements: int = 400) -> Judgement:
        recorded.recorder.is_open = False
        call_id = call_id_of(dataset)
        assert call_id is not None
        return Equivalence(recorded.recorder, call_id, Bounds(elements, 5.0), tmp_path).judge(edits)

    return judge


Judge = Callable[..., Judgement]


@pytest.mark.tensorflow
def test_parallel_deterministic_maps_and_caches_are_exact(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(40).map(lambda x: x * 2).batch(3).prefetch(1)
    call = recorded.call("map")
    seen = judge(dataset, SetArgument(call.id, "num_parallel_calls", AUTOTUNE), InsertAfter(call.id, "cache"))
    assert (seen.seen, seen.elements, seen.is_complete, seen.note) == (Safety.EXACT, 14, True, "")


@pytest.mark.tensorflow
def test_the_parts_of_a_random_pipeline_that_are_not_random_stay_exact(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(40).map(lambda x: x * 2).shuffle(40).map(noisy).batch(4)
    assert judge(dataset, InsertAfter(recorded.call("map", 0).id, "cache")).seen is Safety.EXACT


@pytest.mark.long
@pytest.mark.tensorflow
def test_what_parallel_calls_draw_in_no_fixed_order_is_not_blamed_on_an_edit(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    def slowly_noisy(x: Any) -> Any:
        return noisy(tf.reduce_sum(tf.sort(tf.random.normal([200])) * 0.0) + tf.cast(x, tf.float32))

    dataset = tf.data.Dataset.range(300).map(lambda x: x * 2).map(slowly_noisy, num_parallel_calls=8).batch(2)
    decoded, drawn = (recorded.call("map", index).id for index in (0, 1))
    seen = judge(dataset, InsertAfter(decoded, "cache"))
    assert (seen.seen, seen.note) == (Safety.EXACT, OWN_NOISE)
    assert judge(dataset, InsertAfter(drawn, "cache")).seen is Safety.CHANGES


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("is_complete", [True, False])
def test_another_shuffle_in_place_of_a_seeded_one_is_rerandomized(
    recorded: Recorded, judge: Judge, is_complete: bool
) -> None:
    """Rows are compared where batches are composed differently, also those of a part of the epoch."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(400).shuffle(400, seed=1).map(lambda x: x * 2).shuffle(64).batch(8)
    mapped = recorded.call("map").id
    edits = (
        Remove(recorded.call("shuffle", 0).id),
        InsertAfter(mapped, "shuffle", (("", 400),)),
        InsertAfter(mapped, "cache"),
    )
    seen = judge(dataset, *edits, elements=400 if is_complete else 30)
    assert (seen.seen, seen.is_complete) == (Safety.RERANDOMIZED, is_complete)


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_parallel_random_map_is_rerandomized(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(60).map(lambda x: (noisy(x), x)).batch(2)
    assert judge(dataset, SetArgument(recorded.call("map").id, "num_parallel_calls", 8)).holds(Safety.RERANDOMIZED)


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_part_of_an_epoch_suffices_where_parallel_calls_only_race_for_random_numbers(
    recorded: Recorded, judge: Judge
) -> None:
    """Elements keep their places and some have another noise: none is missing, although only a part was compared."""
    import tensorflow as tf

    def slowly_noisy(x: Any) -> Any:
        return noisy(tf.reduce_sum(tf.sort(tf.random.normal([20_000])) * 0.0) + tf.cast(x, tf.float32))

    dataset = tf.data.Dataset.range(4_000).map(slowly_noisy)
    drawn = recorded.call("map").id
    seen = judge(dataset, SetArgument(drawn, "num_parallel_calls", 8), elements=1_000)
    assert (seen.is_complete, seen.undecided) == (False, "") and seen.holds(Safety.RERANDOMIZED)
    assert judge(dataset, InsertAfter(drawn, "skip", (("", 1),)), elements=1_000).seen is not Safety.EXACT


@pytest.mark.tensorflow
@pytest.mark.parametrize("is_seeded", [False, True])
@pytest.mark.parametrize("place", ["map", "shuffle", "batch", "root"])
@pytest.mark.parametrize("ending", ["", pytest.param("repeat", marks=pytest.mark.long)])
def test_a_cache_above_anything_random_is_caught(
    recorded: Recorded, judge: Judge, is_seeded: bool, place: str, ending: str
) -> None:
    import tensorflow as tf

    tf.random.set_seed(3 if is_seeded else None)
    try:
        dataset = tf.data.Dataset.range(12).map(noisy).shuffle(5).batch(5)
        if ending:
            dataset = dataset.repeat().prefetch(1) if place != "root" else dataset
        where = recorded.call("batch" if place == "root" else place)
        judgement = judge(dataset, InsertAfter(where.id, "cache"))
        assert judgement.seen is Safety.CHANGES
        assert "freeze" in judgement.note
    finally:
        tf.random.set_seed(None)


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_cache_above_python_that_draws_is_caught(recorded: Recorded, judge: Judge) -> None:
    import numpy as np
    import tensorflow as tf

    def rows() -> Any:
        for _ in range(5):
            yield random.random()

    dataset = tf.data.Dataset.from_generator(rows, output_signature=tf.TensorSpec((), tf.float32))
    dataset = dataset.map(lambda x: tf.numpy_function(lambda v: np.float32(v + np.random.rand()), [x], tf.float32))
    for method in ("from_generator", "map"):
        assert judge(dataset, InsertAfter(recorded.call(method).id, "cache")).seen is Safety.CHANGES


@pytest.mark.tensorflow
def test_a_cache_above_one_coin_is_caught(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(1).map(lambda x: tf.random.uniform([], 0, 2, tf.int64))
    assert judge(dataset, InsertAfter(recorded.call("map").id, "cache")).seen is Safety.CHANGES


@pytest.mark.tensorflow
def test_a_cache_too_far_away_to_see_a_second_epoch_is_caught_where_it_stands(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(100_000).map(noisy).batch(10).repeat()
    judgement = judge(dataset, InsertAfter(recorded.call("map").id, "cache"), elements=50)
    assert judgement.seen is Safety.CHANGES


@pytest.mark.tensorflow
def test_what_the_script_itself_freezes_may_stay_frozen(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(20).map(noisy).cache().batch(4)
    seen = judge(dataset, SetArgument(recorded.call("batch").id, "num_parallel_calls", AUTOTUNE))
    assert seen.seen is Safety.EXACT


@pytest.mark.tensorflow
def test_a_cache_of_the_script_is_looked_at_again_if_an_edit_may_affect_what_it_stores(recorded: Recorded) -> None:
    import tensorflow as tf

    parts = tf.data.Dataset.range(4).interleave(lambda x: tf.data.Dataset.range(x).map(lambda y: y * 2))
    parts.map(lambda x: x + 1).cache().map(lambda x: x * 3).batch(2)
    recorded.recorder.is_open = False
    calls = [call for call in recorded.recorder.calls() if call.method != "range"]
    doubled = next(call.id for call in calls if call.nested_in is not None)
    _, added, cache, tripled, batch = (call.id for call in calls if call.nested_in is None)
    autotuned = ("num_parallel_calls", AUTOTUNE)
    for edit, is_it in (
        (SetArgument(tripled, *autotuned), False),
        (MoveAfter(tripled, batch), False),
        (InsertAfter(batch, "prefetch"), False),
        (SetArgument(added, *autotuned), True),
        (SetArgument(doubled, *autotuned), True),
        (InsertAfter(cache, "prefetch"), True),
        (MoveAfter(tripled, added), True),
        (SetOption(batch, "deterministic", False), True),
        (SetArgument("unknown", *autotuned), True),
    ):
        assert is_touched(recorded.recorder, cache, (edit,)) is is_it, edit
    assert not is_touched(recorded.recorder, cache, ())


@pytest.mark.tensorflow
def test_taking_away_a_cache_that_froze_noise_changes_the_data(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(20).map(noisy).cache().batch(4)
    assert not judge(dataset, Remove(recorded.call("cache").id)).holds(Safety.NUMERICS)


@pytest.mark.tensorflow
def test_a_filter_moved_up_is_exact_only_if_it_keeps_the_same(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    def is_even(x: Any) -> Any:
        return x % 2 == 0

    dataset = tf.data.Dataset.range(20).map(lambda x: x * 3).filter(is_even)
    move = MoveAfter(recorded.call("filter").id, recorded.call("range").id)
    assert judge(dataset, move).seen is Safety.EXACT
    recorded.recorder.is_open = True
    dataset = tf.data.Dataset.range(20).map(lambda x: x + 1).filter(is_even)
    move = MoveAfter(recorded.call("filter").id, recorded.call("range").id)
    assert judge(dataset, move).seen is Safety.CHANGES


@pytest.mark.tensorflow
def test_another_order_is_reordered_and_seen_through_batches(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    def triple(i: Any) -> Any:
        return tf.data.Dataset.from_tensors(i).repeat(3)

    dataset = tf.data.Dataset.range(20).interleave(triple, cycle_length=2).batch(7)
    assert judge(dataset, SetArgument(recorded.call("interleave").id, "cycle_length", 4)).seen is Safety.REORDERED


@pytest.mark.long
@pytest.mark.tensorflow
def test_another_random_order_is_rerandomized(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(60).shuffle(60).batch(7)
    seen = judge(dataset, SetArgument(recorded.call("shuffle").id, "buffer_size", 50))
    assert seen.seen is Safety.RERANDOMIZED


@pytest.mark.tensorflow
@pytest.mark.parametrize(
    "edit",
    [
        lambda r: InsertAfter(r.call("map").id, "take", (("", 39),)),
        lambda r: InsertAfter(r.call("map").id, "skip", (("", 1),)),
        lambda r: InsertAfter(r.call("map").id, "repeat", (("", 2),)),
        lambda r: Remove(r.call("map").id),
        lambda r: SetArgument(r.call("batch").id, "batch_size", 5),
        lambda r: SetArgument(r.call("batch").id, "drop_remainder", True),
        lambda r: InsertAfter(r.call("batch").id, "take", (("", 13),)),
        lambda r: InsertAfter(r.call("batch").id, "unbatch"),
    ],
)
@pytest.mark.parametrize("is_random", [False, True])
def test_other_data_is_caught(
    recorded: Recorded, judge: Judge, edit: Callable[[Recorded], Edit], is_random: bool
) -> None:
    import tensorflow as tf

    source = tf.data.Dataset.range(40)
    dataset = (source.shuffle(40) if is_random else source).map(lambda x: x * 7).batch(3)
    assert judge(dataset, edit(recorded)).seen is Safety.CHANGES


@pytest.mark.long
@pytest.mark.tensorflow
def test_noise_of_another_kind_is_caught(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(300).map(lambda x: tf.random.uniform([4])).map(lambda x: x * 2)
    assert judge(dataset, Remove(recorded.call("map").id)).seen is Safety.CHANGES


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_random_image_with_another_label_is_caught(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(50).map(lambda x: (tf.random.uniform([4]), x)).map(lambda a, b: (a, b + 1))
    judgement = judge(dataset, Remove(recorded.call("map").id))
    assert judgement.seen is Safety.CHANGES
    assert judgement.note == "component 2 differs, although it is not random"


@pytest.mark.tensorflow
def test_a_part_is_told_as_a_part(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(1000).map(lambda x: x + 1)
    seen = judge(dataset, SetArgument(recorded.call("map").id, "num_parallel_calls", 2), elements=100)
    assert (seen.seen, seen.elements, seen.is_complete) == (Safety.EXACT, 100, False)
    assert seen.note == "Only the first 100 elements were compared."


@pytest.mark.tensorflow
def test_a_pipeline_that_fails_by_itself_is_not_judged(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    def decode(value: Any) -> Any:
        if value == 3:
            raise ValueError("record 3 is damaged")
        return value

    dataset = tf.data.Dataset.range(5).map(lambda x: tf.numpy_function(decode, [x], tf.int64))
    with pytest.raises(OriginalFails, match="ValueError: record 3 is damaged"):
        judge(dataset, InsertAfter(recorded.call("map").id, "prefetch", (("", 1),)))


# -- elements


@pytest.mark.tensorflow
def test_digests_see_every_bit_and_every_kind(recorded: Recorded) -> None:
    import numpy as np
    import tensorflow as tf

    def digest(value: Any) -> Any:
        return collect(tf.data.Dataset.from_tensors(value), Bounds(1, 5.0)).rows[0]

    assert digest(np.float32("nan")) == digest(np.float32("nan"))
    assert digest(np.float32(0.0)) != digest(np.float32(-0.0))
    assert digest(np.int32(1)) != digest(np.int64(1))
    assert digest([[1, 2]]) != digest([[1], [2]])
    assert digest(["ab", "c"]) != digest(["a", "bc"])
    assert digest(tf.ragged.constant([[1, 2], [3]])) != digest(tf.ragged.constant([[1], [2, 3]]))
    dense = tf.sparse.from_dense([[0, 1], [2, 0]])
    assert (
        digest(dense)
        == digest(tf.sparse.from_dense([[0, 1], [2, 0]]))
        != digest(tf.sparse.from_dense([[1, 0], [2, 0]]))
    )
    assert len(digest({"a": 1, "b": (2, tf.ragged.constant([[1]]))})) == 4


@pytest.mark.long
@pytest.mark.tensorflow
def test_datasets_of_datasets_are_compared_by_their_elements(recorded: Recorded, judge: Judge) -> None:
    import tensorflow as tf

    dataset = tf.data.Dataset.range(10).map(lambda x: x * 3).window(4, shift=2)
    assert judge(dataset, SetArgument(recorded.call("map").id, "num_parallel_calls", 2)).seen is Safety.EXACT
    assert judge(dataset, Remove(recorded.call("map").id)).seen is Safety.CHANGES


def test_samples_are_distinguished_only_if_their_distributions_differ() -> None:
    draw = random.Random(1)
    one, two = [[draw.gauss(0, 1) for _ in range(300)] for _ in range(2)]
    assert kolmogorov_smirnov(one, two) > 1e-3
    assert kolmogorov_smirnov(one, [x + 1 for x in two]) < 1e-6
    assert kolmogorov_smirnov([1.0], [2.0]) > 1e-3


@pytest.mark.tensorflow
def test_elements_missing_at_the_end_of_a_part_are_a_change(recorded: Recorded, judge: Judge) -> None:
    """Of a part of an epoch, twins are read once and the script's own elements twice: their numbers are made comparable."""
    import tensorflow as tf

    dataset = tf.data.Dataset.range(1_000).map(noisy).filter(lambda x: True)
    seen = judge(dataset, InsertAfter(recorded.call("filter").id, "take", (("", 90),)), elements=100)
    assert (seen.seen, seen.note) == (Safety.CHANGES, "there are 180 elements instead of 200 (in all sampled epochs)")
