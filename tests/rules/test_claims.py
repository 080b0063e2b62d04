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


def test_a_shuffle_behind_a_map_and_a_cache_draws_the_same_under_a_global_seed(tf):
    def ordered(make):
        tf.random.set_seed(3)
        dataset = make(tf.data.Dataset.range(50))
        return [elements(dataset) for _ in range(3)]

    def double(x):
        return x * 2

    assert ordered(lambda x: x.shuffle(20).map(double)) == ordered(lambda x: x.map(double).cache().shuffle(20))


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


def test_a_map_without_chance_behind_a_shuffle_gives_the_same_elements(tf):
    """`late-shuffle`: the shuffle draws the same order of what the map has not yet seen."""

    def epochs(dataset):
        return [[int(x) for x in dataset] for _ in range(3)]

    for seed in (None, 5):
        tf.random.set_seed(1)
        before = epochs(tf.data.Dataset.range(50).map(lambda x: x * x).shuffle(20, seed=seed))
        tf.random.set_seed(1)
        after = epochs(tf.data.Dataset.range(50).shuffle(20, seed=seed).map(lambda x: x * x))
        assert before == after and before[0] != before[1]


def test_a_filter_before_a_map_that_it_does_not_depend_on_keeps_the_same_elements(tf):
    pairs = tf.data.Dataset.from_tensor_slices((list(range(20)), [i % 3 for i in range(20)]))

    def double(x, label):
        return x * 2, label

    def is_wanted(x, label):
        return label == 0

    late = [(int(x), int(y)) for x, y in pairs.map(double).filter(is_wanted)]
    early = [(int(x), int(y)) for x, y in pairs.filter(is_wanted).map(double)]
    assert late == early


def test_a_shard_before_a_map_keeps_the_same_elements(tf):
    numbers = tf.data.Dataset.range(23)
    for index in range(4):
        late = elements(numbers.map(lambda x: x * 2).shard(4, index))
        assert late == elements(numbers.shard(4, index).map(lambda x: x * 2))


def test_a_cache_behind_the_take_gives_the_same_elements_in_every_epoch(tf):
    numbers = tf.data.Dataset.range(20).map(lambda x: x * 2)
    before, behind = numbers.cache().take(7).batch(3), numbers.take(7).cache().batch(3)
    for _ in range(2):
        assert [b.tolist() for b in before.as_numpy_iterator()] == [b.tolist() for b in behind.as_numpy_iterator()]


@pytest.mark.parametrize("drop", [False, True])
def test_rebatch_is_unbatch_and_batch(tf, drop):
    blocks = tf.data.Dataset.range(23).batch(5)
    apart = blocks.unbatch().batch(4, drop_remainder=drop)
    whole = blocks.rebatch(4, drop_remainder=drop)
    assert [b.tolist() for b in apart.as_numpy_iterator()] == [b.tolist() for b in whole.as_numpy_iterator()]


def test_a_shuffle_before_a_map_gives_the_order_of_one_behind_it(tf):
    def double(x):
        return x * 2

    behind = tf.data.Dataset.range(50).map(double).shuffle(20, seed=7)
    before = tf.data.Dataset.range(50).shuffle(20, seed=7).map(double)
    assert elements(behind) == elements(before)


def test_parallel_reads_and_small_buffers_give_the_same_records(tf, tmp_path):
    files = []
    for number in range(3):
        files.append(str(tmp_path / f"{number}.tfrecord"))
        with tf.io.TFRecordWriter(files[-1]) as writer:
            for i in range(10):
                writer.write(f"{number}-{i}".encode() * 50)
    one_by_one = list(tf.data.TFRecordDataset(files).as_numpy_iterator())
    assert one_by_one == list(tf.data.TFRecordDataset(files, buffer_size=100).as_numpy_iterator())
    at_once = list(tf.data.TFRecordDataset(files, num_parallel_reads=tf.data.AUTOTUNE).as_numpy_iterator())
    assert sorted(one_by_one) == sorted(at_once)


def test_parallel_batches_are_the_same_batches(tf):
    rows = tf.data.Dataset.range(23)
    serial = [b.tolist() for b in rows.batch(4).as_numpy_iterator()]
    assert serial == [b.tolist() for b in rows.batch(4, num_parallel_calls=tf.data.AUTOTUNE).as_numpy_iterator()]


def test_a_cache_inside_the_function_of_an_interleave_is_made_anew_for_every_input(tf):
    reads = tf.Variable(0)

    def read(i):
        def count(x):
            with tf.control_dependencies([reads.assign_add(1)]):
                return tf.identity(x)

        return tf.data.Dataset.range(3).map(count).cache()

    dataset = tf.data.Dataset.range(2).interleave(read, cycle_length=2)
    for epoch in (1, 2):
        assert len(elements(dataset)) == 6
        assert int(reads) == 6 * epoch


def test_an_unfinished_cache_is_never_used(tf):
    reads = tf.Variable(0)

    def count(x):
        with tf.control_dependencies([reads.assign_add(1)]):
            return tf.identity(x)

    dataset = tf.data.Dataset.range(10).map(count).cache().take(4)
    counts = []
    for _ in range(3):
        elements(dataset)
        counts.append(int(reads))
    assert counts[0] < counts[1] < counts[2]


def test_tf_data_runs_functions_on_one_thread_each_by_itself(tf, tmp_path):
    """Why there is no rule `intra-op-contention`: what it would propose is the default."""
    from advisor.profile import read_trace

    tf.profiler.experimental.start(str(tmp_path))
    elements(tf.data.Dataset.range(10).map(lambda x: x + 1))
    tf.profiler.experimental.stop()
    (host,) = read_trace(tmp_path).hosts
    roots = [facts.parameters for facts in host.iterators.values() if facts.long_name.endswith("::Root")]
    assert roots and all(parameters["intra_op_parallelism"] == 1 for parameters in roots)
