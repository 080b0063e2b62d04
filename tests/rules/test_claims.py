"""What the rules claim of TensorFlow's semantics, on TensorFlow itself."""

from __future__ import annotations

import pytest

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def elements(dataset) -> list[int]:
    return [int(x) for x in dataset.as_numpy_iterator()]


def test_a_parallel_interleave_of_the_same_cycle_gives_the_same_order(tf):
    inputs = tf.data.Dataset.range(6)

    def read(i):
        return tf.data.Dataset.range(i * 100, i * 100 + 7 + i)

    for cycle in (2, 3, 5):
        serial = elements(inputs.interleave(read, cycle_length=cycle))
        parallel = elements(inputs.interleave(read, cycle_length=cycle, num_parallel_calls=tf.data.AUTOTUNE))
        assert serial == parallel


@pytest.mark.parametrize("reshuffle", [True, False])
def test_a_shuffle_behind_a_map_gives_the_orders_of_one_before_it(tf, reshuffle):
    def double(x):
        return x * 2

    before = tf.data.Dataset.range(50).shuffle(20, seed=7, reshuffle_each_iteration=reshuffle).map(double)
    behind = tf.data.Dataset.range(50).map(double).cache().shuffle(20, seed=7, reshuffle_each_iteration=reshuffle)
    for _ in range(3):
        assert elements(before) == elements(behind)


def test_a_repeat_behind_maps_and_a_cache_gives_the_same_elements(tf):
    def double(x):
        return x * 2

    before = tf.data.Dataset.range(7).repeat(3).map(double, num_parallel_calls=tf.data.AUTOTUNE).batch(4)
    behind = tf.data.Dataset.range(7).map(double, num_parallel_calls=tf.data.AUTOTUNE).cache().repeat(3).batch(4)
    assert [b.tolist() for b in before.as_numpy_iterator()] == [b.tolist() for b in behind.as_numpy_iterator()]


def test_one_shuffle_for_all_epochs_stays_the_same(tf):
    dataset = tf.data.Dataset.range(50).shuffle(50, reshuffle_each_iteration=False)
    assert elements(dataset) == elements(dataset)


def test_list_files_shuffles_unless_told_otherwise(tf, tmp_path):
    for i in range(30):
        (tmp_path / f"{i:02}.txt").touch()
    pattern = str(tmp_path / "*.txt")
    shuffled = tf.data.Dataset.list_files(pattern)
    assert list(shuffled.as_numpy_iterator()) != list(shuffled.as_numpy_iterator())
    ordered = tf.data.Dataset.list_files(pattern, shuffle=False)
    assert list(ordered.as_numpy_iterator()) == list(ordered.as_numpy_iterator())
    assert int(shuffled.cardinality()) == 30


def test_element_wise_functions_give_the_same_on_batches(tf):
    def scale(x):
        return tf.cast(x % 10, tf.float32) / 5.0 - 1.0

    single = tf.data.Dataset.range(20).map(scale).batch(8)
    batched = tf.data.Dataset.range(20).batch(8).map(scale)
    for a, b in zip(single.as_numpy_iterator(), batched.as_numpy_iterator(), strict=True):
        assert a.tobytes() == b.tobytes()
