"""Near misses of the rules on functions, threads and prefetching."""

from __future__ import annotations

from near_misses.script import NearMiss

PARALLELISM = (
    NearMiss("autotune-off", "The script does by hand what tf.data may not.", """
dataset = range_(100_000).map(costly, num_parallel_calls=CORES).batch(4).prefetch(2)
dataset = dataset.with_options(options_of(autotune__enabled=False))
train(dataset)
"""),
    NearMiss("autotune-ram", "The budget fits into the memory.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
dataset = dataset.with_options(options_of(autotune__ram_budget=256 << 20))
train(dataset)
"""),
    NearMiss("capped-parallelism", "The constant is the number of cores.", """
dataset = range_(100_000).map(costly, num_parallel_calls=CORES).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("costly-flat-map", "The function only cuts the blocks of a parallel map into rows.", """
def block(index):
    return tf.reshape(costly(index), (64, 32, 32))

rows = range_(10_000).map(block, num_parallel_calls=AUTOTUNE).flat_map(slices)
train(rows.batch(16).prefetch(AUTOTUNE))
"""),
    NearMiss("cpu-budget-mismatch", "The budget equals the number of cores of the process.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
dataset = dataset.with_options(options_of(autotune__cpu_budget=CORES))
train(dataset)
"""),
    NearMiss("head-of-line", "All elements take equally long, so none is delayed by a slow one.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("host-saturated", "The pipeline sleeps: the cores are idle.", """
def wait(index):
    time.sleep(0.01)
    return index

dataset = range_(100_000).map(lambda i: tf.py_function(wait, [i], tf.int64)).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("map-inside-interleave", "The map inside is parallel.", """
def images(start):
    return range_(start, start + 100).map(costly, num_parallel_calls=AUTOTUNE)

dataset = range_(10_000).interleave(images, cycle_length=2, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("misplaced-prefetch", "tf.data puts another prefetch at the end by itself.", """
dataset = range_(100_000).prefetch(2).map(costly, num_parallel_calls=AUTOTUNE).batch(4)
train(dataset, work=512)
"""),
    NearMiss("missing-prefetch", "There is none in the script, but tf.data injects it.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).shuffle(16).batch(4)
train(dataset, work=512)
"""),
    NearMiss("next-step", "Another rule has a fix: the map waits on one thread.", """
def wait(index):
    time.sleep(0.01)
    return index

dataset = range_(100_000).map(lambda i: tf.py_function(wait, [i], tf.int64)).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("not-input-bound", "The training waits for its input.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("oversized-prefetch", "A hundred batches of a megabyte are no burden.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(100)
train(dataset)
"""),
    NearMiss("python-generator", "The generator is cheap, the map behind it is not.", """
def numbers():
    yield from range(100_000)

dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.int64))
dataset = dataset.map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("python-lock", "The Python function is cheap, the map behind it is not.", """
def look(index):
    return index

dataset = range_(100_000).map(lambda i: tf.ensure_shape(tf.numpy_function(look, [i], tf.int64), ()))
dataset = dataset.map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("scalar-map", "One call of the function is far more work than calling it.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("scalar-map", "The map makes something else of the zeros with which its results are padded.", """
def row_of(index):
    return tf.range(index % 50 + 1)

dataset = range_(500_000).map(row_of, num_parallel_calls=AUTOTUNE).map(lambda row: row - 1, num_parallel_calls=AUTOTUNE)
train(dataset.padded_batch(256).prefetch(AUTOTUNE))
"""),
    NearMiss("serial-map", "The map keeps no state, so tf.data runs it in parallel by itself.", """
dataset = range_(100_000).map(costly).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("vectorizable-map", "The function already processes whole batches.", """
def normalized(rows):
    rows -= tf.reduce_mean(rows, axis=1, keepdims=True)
    return rows / (tf.sqrt(tf.reduce_mean(tf.square(rows), axis=1, keepdims=True)) + 1e-3)

rows = np.random.default_rng(0).random((4_096, 32), np.float32)
dataset = slices(rows).repeat(2_000).batch(512).map(normalized, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
train(dataset)
"""),
)  # fmt: skip
