"""Scripts on which a rule must be silent although they resemble its problem: each differs from a bad script in one detail.

In: nothing.  Out: `NEAR_MISSES`; `script_of` turns one into a training script.

The bodies use what `PRELUDE` defines. `train(dataset)` is a light training that waits for its input. With `work=512` it
multiplies matrices of that size.
"""

from __future__ import annotations

from dataclasses import dataclass

PRELUDE = '''"""{because}"""

import os
import time

import numpy as np
import sample_data
import tensorflow as tf

AUTOTUNE = tf.data.AUTOTUNE
CORES = len(os.sched_getaffinity(0))
range_, slices = tf.data.Dataset.range, tf.data.Dataset.from_tensor_slices


def costly(index):
    """Some milliseconds, always the same for the same index."""
    return tf.sort(tf.sort(tf.sin(tf.cast(index, tf.float32) + tf.reshape(tf.range(65536.0), (256, 256))), 0), 1)


def noisy(image):
    return image + tf.random.normal(tf.shape(image), stddev=0.1)


def load(file):
    return tf.image.resize(tf.io.decode_jpeg(tf.io.read_file(file), channels=3), (64, 64)) / 255.0


def jpegs():
    return sorted(str(file) for file in sample_data.image_folder(480).glob("*/*.jpg"))


def records(compression=""):
    return sample_data.raw_image_records(8, 80, side=128, compression=compression)


def options_of(**values):
    options = tf.data.Options()
    for name, value in values.items():
        holder, _, field = name.rpartition("__")
        setattr(getattr(options, holder) if holder else options, field, value)
    return options


def train(dataset, epochs=1, work=64):
    weights = tf.Variable(tf.random.normal((work, work)))

    @tf.function
    def train_step():
        weights.assign(tf.tanh(weights @ weights))

    for _ in range(epochs):
        for _ in dataset:
            train_step()


'''


@dataclass(frozen=True)
class NearMiss:
    """One script and the rule that must be silent about it."""

    rule: str
    because: str
    """Why the rule must be silent."""
    body: str


def script_of(case: NearMiss) -> str:
    """The text of a script that runs on its own with `examples/` on its path; its tf.data calls are on its own lines."""
    return PRELUDE.replace("{because}", case.because) + case.body.strip() + "\n"


NEAR_MISSES = (
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
    NearMiss("cache-after-random", "The random op follows the cache.", """
dataset = range_(500).map(costly, num_parallel_calls=AUTOTUNE).cache()
dataset = dataset.map(noisy, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("cache-after-shuffle", "The shuffle follows the cache.", """
dataset = range_(500).map(costly, num_parallel_calls=AUTOTUNE).cache().shuffle(500)
dataset = dataset.batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("cache-cut-short", "The cache follows `take`, so it is read to its end.", """
dataset = range_(5_000).map(costly, num_parallel_calls=AUTOTUNE).take(500).cache()
dataset = dataset.batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("cache-too-big", "What the cache holds fits many times over.", """
dataset = slices(jpegs()).map(load, num_parallel_calls=AUTOTUNE).cache()
dataset = dataset.batch(16).prefetch(AUTOTUNE)
train(dataset, epochs=500)
"""),
    NearMiss("cache-without-reuse", "Every epoch but the first reads the cache.", """
dataset = slices(jpegs()).map(load, num_parallel_calls=AUTOTUNE).cache()
dataset = dataset.shuffle(480).batch(16).prefetch(AUTOTUNE)
train(dataset, epochs=500)
"""),
    NearMiss("capped-parallelism", "The constant is the number of cores.", """
dataset = range_(100_000).map(costly, num_parallel_calls=CORES).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("compressed-records", "The records are compressed, but processing them takes the time.", """
def spectrum(record):
    image = tf.reshape(tf.cast(tf.io.decode_raw(record, tf.uint8), tf.float32), (-1, 256))
    return tf.sort(tf.sort(tf.tile(image, (4, 1)), 0), 1)

dataset = slices(records("GZIP")).interleave(
    lambda file: tf.data.TFRecordDataset(file, "GZIP"), num_parallel_calls=AUTOTUNE
)
dataset = dataset.map(spectrum, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=50)
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
    NearMiss("late-filter", "The filter reads what the map makes.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).filter(lambda image: image[0, 0] < -0.9)
dataset = dataset.batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("late-shard", "The shard precedes the work.", """
dataset = range_(400_000).shard(4, 0).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("late-shrink", "The whole photograph is needed: it is made smaller, not cropped.", """
dataset = slices(jpegs()).repeat(50).map(load, num_parallel_calls=AUTOTUNE).batch(16).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("late-shuffle", "The buffer is small beside an epoch, so that it is soon full.", """
images = slices(jpegs()).repeat(20).map(load, num_parallel_calls=AUTOTUNE).map(noisy)
train(images.shuffle(64).batch(16).prefetch(AUTOTUNE), epochs=20)
"""),
    NearMiss("map-inside-interleave", "The map inside is parallel.", """
def images(start):
    return range_(start, start + 100).map(costly, num_parallel_calls=AUTOTUNE)

dataset = range_(10_000).interleave(images, cycle_length=2, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("costly-flat-map", "The function only cuts the blocks of a parallel map into rows.", """
def block(index):
    return tf.reshape(costly(index), (64, 32, 32))

rows = range_(10_000).map(block, num_parallel_calls=AUTOTUNE).flat_map(slices)
train(rows.batch(16).prefetch(AUTOTUNE))
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
    NearMiss("oversized-shuffle", "The buffer holds a thousand elements of a quarter of a megabyte.", """
dataset = range_(1_000).map(costly, num_parallel_calls=AUTOTUNE).cache().repeat().shuffle(1_000)
dataset = dataset.batch(4).prefetch(AUTOTUNE).take(20_000)
train(dataset)
"""),
    NearMiss("padding-waste", "The lengths differ little.", """
def text(index):
    return tf.sort(tf.range(40_000 + 40 * (index % 50)))

dataset = range_(400_000).map(text, num_parallel_calls=AUTOTUNE).padded_batch(16).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("parse-per-record", "Records are parsed a batch at a time.", """
def write(folder):
    with tf.io.TFRecordWriter(str(folder / "0.tfrecord")) as writer:
        for row in np.random.default_rng(0).random((20_000, 16), np.float32):
            value = tf.train.Feature(float_list=tf.train.FloatList(value=row))
            writer.write(tf.train.Example(features=tf.train.Features(feature={"row": value})).SerializeToString())

def parse(batch):
    return tf.io.parse_example(batch, {"row": tf.io.FixedLenFeature([16], tf.float32)})["row"]

folder = sample_data.make_once(sample_data.cache_folder() / "rows-of-16", write)
dataset = tf.data.TFRecordDataset(str(folder / "0.tfrecord")).repeat(500).batch(512)
dataset = dataset.map(parse, num_parallel_calls=AUTOTUNE).prefetch(AUTOTUNE)
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
    NearMiss("repeated-work", "The data is read once.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("repeated-work-on-disk", "What is made again in every epoch fits into memory.", """
dataset = slices(jpegs()).map(load, num_parallel_calls=AUTOTUNE).batch(16).prefetch(AUTOTUNE)
train(dataset, epochs=50)
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
    NearMiss("serial-files", "The files are read side by side.", """
dataset = tf.data.TFRecordDataset(records("GZIP"), "GZIP", num_parallel_reads=AUTOTUNE).repeat(60)
dataset = dataset.batch(16).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("serial-interleave", "The interleave is parallel.", """
dataset = slices(records("GZIP")).interleave(
    lambda file: tf.data.TFRecordDataset(file, "GZIP"), cycle_length=4, num_parallel_calls=AUTOTUNE
)
dataset = dataset.repeat(60).batch(16).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("serial-map", "The map keeps no state, so tf.data runs it in parallel by itself.", """
dataset = range_(100_000).map(costly).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("single-file", "There is one file, but the work on its records is what takes the time.", """
def work_on(record):
    return costly(tf.strings.length(record))

dataset = tf.data.TFRecordDataset(records()[0]).repeat(500).map(work_on, num_parallel_calls=AUTOTUNE)
dataset = dataset.batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("slow-batch-copy", "The elements are large, and tf.data copies them on several threads.", """
images = np.random.default_rng(0).random((64, 512, 512, 3), np.float32)
dataset = slices(images).cache().repeat(500).shuffle(32).batch(16).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("small-files", "Every element is a file, but decoding it takes longer than opening it.", """
dataset = slices(jpegs()).repeat(50).map(load, num_parallel_calls=AUTOTUNE).batch(16).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("small-reads", "The reader has its ordinary buffer.", """
dataset = tf.data.TFRecordDataset(records()).repeat(500).batch(64).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("splittable-map", "All that the function does is random.", """
def make_noise(index):
    return tf.sort(tf.sort(tf.random.normal((256, 256)), 0), 1)

dataset = range_(500).map(make_noise, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("unbatch-rebatch", "Blocks become batches in one step.", """
def block(index):
    return tf.random.stateless_normal((5_000, 8), seed=tf.stack([index, tf.constant(7, tf.int64)]))

dataset = range_(100_000).map(block, num_parallel_calls=AUTOTUNE).rebatch(8_192).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("window-datasets", "The windows are cut out of a tensor.", """
rows = tf.random.stateless_uniform((20_000, 3), (1, 2))

def window(first):
    return rows[first : first + 48]

dataset = range_(20_000 - 47).repeat(20).map(window, num_parallel_calls=AUTOTUNE).batch(128).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("eager-step", "One op of a step is outside of the function: its loss is added up.", """
features = np.random.default_rng(0).random((4096, 256), np.float32)
weights, total = tf.Variable(tf.random.normal((256, 256))), 0.0

@tf.function
def train_step(batch):
    for _ in range(8):
        batch = tf.tanh(batch @ weights)
    return tf.reduce_mean(batch)

for batch in slices(features).batch(64).cache().repeat(500).prefetch(AUTOTUNE):
    total += train_step(batch)
"""),
    NearMiss("full-precision", "The products are in 32 bit, but so small that casts would cost more.", """
import keras

data = slices((np.zeros((4096, 64), np.float32), np.zeros((4096, 1), np.float32))).cache().repeat(1000)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse", steps_per_execution=16)
model.fit(data.batch(32, drop_remainder=True).prefetch(AUTOTUNE), verbose=0)
"""),
    NearMiss("retracing", "The last batch is smaller: two graphs, each made once.", """
weights = tf.Variable(tf.random.normal((64, 512)))

@tf.function
def train_step(batch):
    for _ in range(4):
        batch = tf.tanh(batch @ weights @ tf.transpose(weights))
    return tf.reduce_mean(batch)

data = slices(np.random.default_rng(0).random((1000, 64), np.float32)).batch(64).cache().prefetch(AUTOTUNE)
for epoch in range(500):
    for batch in data:
        train_step(batch)
"""),
    NearMiss("short-steps", "Keras does one step per call, and the step is long.", """
import keras

data = slices((np.zeros((2048, 1024), np.float32), np.zeros((2048, 1), np.float32))).cache().repeat(50)
layers = [keras.layers.Dense(1024, "relu") for _ in range(3)]
model = keras.Sequential([keras.Input((1024,)), *layers, keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data.batch(256, drop_remainder=True).prefetch(AUTOTUNE), verbose=0)
"""),
    NearMiss("small-batch", "The batch is of 4, and each row is long work.", """
data = slices(np.zeros((512, 64), np.float32)).cache().repeat(500)
train(data.batch(4, drop_remainder=True).prefetch(AUTOTUNE), work=512)
"""),
    NearMiss("epoch-pauses", "Epochs are short, and one iterator goes through all of them.", """
data = slices(np.zeros((4096, 64), np.float32)).shuffle(1024).batch(64).repeat(500).prefetch(AUTOTUNE)
train(data)
"""),
    NearMiss("rebuilt-every-epoch", "Each epoch has a dataset of its own, which is made in a fraction of its time.", """
rows = np.random.default_rng(0).random((4096, 64), np.float32)
weights = tf.Variable(tf.random.normal((64, 64)))

@tf.function
def train_step(batch):
    return tf.reduce_mean(tf.tanh(batch @ weights))

for epoch in range(300):
    for batch in slices(rows).batch(16).prefetch(AUTOTUNE):
        train_step(batch)
"""),
    NearMiss("step-outliers", "A checkpoint now and then, so small that it costs nothing.", """
import tempfile

weights = tf.Variable(tf.random.normal((512, 512)))
checkpoint = tf.train.Checkpoint(bias=tf.Variable(tf.zeros((8,))))

@tf.function
def train_step(batch):
    for _ in range(6):
        weights.assign(tf.tanh(weights @ weights))
    return tf.reduce_mean(batch)

data = slices(np.zeros((4096, 64), np.float32)).batch(64).cache().repeat(500).prefetch(AUTOTUNE)
with tempfile.TemporaryDirectory() as folder:
    for step, batch in enumerate(data):
        train_step(batch)
        if step % 50 == 49:
            checkpoint.write(folder + "/checkpoint")
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
