"""Near misses of the rules on files and records, and on how elements are selected and put into batches."""

from __future__ import annotations

from near_misses.script import NearMiss

READING = (
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
)  # fmt: skip
