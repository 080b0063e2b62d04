"""Maps that leave the function of an `interleave` or `flat_map`: lambdas, functions, chains over several lines."""

from advisor.model.finding import MoveAfter, SetArgument, Vectorize
from tests.rewrite.snippets import AUTOTUNE, Snippet

SNIPPETS = {
    "out of the lambda of an interleave, behind the batch": Snippet(
        """\
import tensorflow as tf

def bytes_of(record):
    numbers = tf.io.decode_raw(tf.strings.substr(record, 0, 3), tf.uint8)
    return tf.cast(numbers, tf.float32) / 255.0

files = tf.data.Dataset.from_tensor_slices(["data/a.tfrecord", "data/b.tfrecord"])
ds = (
    files.interleave(lambda name: tf.data.TFRecordDataset(name).map(bytes_of), cycle_length=2)
    .repeat(3)
    .batch(4)
    .prefetch(1)
)
""",
        lambda c: [MoveAfter(c("map"), c("batch"))],
        [("(name).map(bytes_of), cycle_length=2)", "(name), cycle_length=2)"),
         ("    .batch(4)\n", "    .batch(4)\n    .map(bytes_of)\n")],
    ),
    "out of the lambda of a flat_map, vectorised": Snippet(
        """\
import tensorflow as tf

ds = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(24.0), [3, 4, 2]))
ds = ds.flat_map(lambda block: tf.data.Dataset.from_tensor_slices(block).map(lambda x: x / tf.reduce_sum(x)))
ds = ds.batch(5)
""",
        lambda c: [MoveAfter(c("map"), c("batch")), Vectorize(c("map"))],
        [("(block).map(lambda x: x / tf.reduce_sum(x)))", "(block))"),
         ("ds = ds.batch(5)\n",
          "ds = ds.batch(5).map(lambda rows: tf.vectorized_map(tf.function(lambda x: x / tf.reduce_sum(x)), rows, "
          "fallback_to_while_loop=False))\n")],
    ),
    "out of a function with a name, parallel": Snippet(
        """\
import tensorflow as tf

def length(line):
    return line, tf.strings.length(line)

def read(name):
    path = tf.strings.join(["data/", name])
    return (
        tf.data.TFRecordDataset(path)
        .map(length)
    )

ds = tf.data.Dataset.from_tensor_slices(["a.tfrecord", "b.tfrecord"]).flat_map(read)
ds = ds.batch(4)
""",
        lambda c: [MoveAfter(c("map"), c("flat_map", -1)), SetArgument(c("map"), "num_parallel_calls", AUTOTUNE)],
        [("        .map(length)\n", ""),
         (".flat_map(read)\n", ".flat_map(read).map(length, num_parallel_calls=tf.data.AUTOTUNE)\n")],
    ),
}  # fmt: skip
