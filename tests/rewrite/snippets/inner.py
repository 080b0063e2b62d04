"""Maps that leave the function of an `interleave` or `flat_map`: lambdas, functions, chains over several lines."""

from advisor.model.edits import MoveAfter, SetArgument, Vectorize
from tests.rewrite.snippets import AUTOTUNE, Snippet

PARSE = """\
def parse(record):
    number = tf.strings.length(record)
    return tf.cast(number, tf.float32) / SCALE
"""
INDENTED_PARSE = "".join(f"    {line}\n" for line in PARSE.splitlines())

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
    "a lambda out of a lambda": Snippet(
        """\
import tensorflow as tf

ds = tf.data.Dataset.range(3)
ds = ds.interleave(lambda i: tf.data.Dataset.range(i, i + 4).map(lambda x: x * 2), cycle_length=2).batch(5)
""",
        lambda c: [MoveAfter(c("map"), c("batch")), SetArgument(c("map"), "num_parallel_calls", AUTOTUNE)],
        [("(i, i + 4).map(lambda x: x * 2), cycle_length=2).batch(5)",
          "(i, i + 4), cycle_length=2).batch(5).map(lambda x: x * 2, num_parallel_calls=tf.data.AUTOTUNE)")],
    ),
    "with a function that is defined inside": Snippet(
        """\
import tensorflow as tf

SCALE = 3.0

# Reads a file.
def read(name):
    '''Its numbers.'''

    # Of one record.
    def parse(record):
        number = tf.strings.length(record)
        return tf.cast(number, tf.float32) / SCALE

    return tf.data.TFRecordDataset(tf.strings.join(["data/", name])).map(parse)  # parsed

ds = tf.data.Dataset.from_tensor_slices(["a.tfrecord", "b.tfrecord"])
ds = ds.interleave(read, cycle_length=2)
ds = ds.batch(4)
""",
        lambda c: [MoveAfter(c("map"), c("interleave")), SetArgument(c("map"), "num_parallel_calls", AUTOTUNE)],
        [("    # Of one record.\n" + INDENTED_PARSE + "\n", ""),
         ("# Reads a file.\n", "# Of one record.\n" + PARSE + "\n\n# Reads a file.\n"),
         (".map(parse)  # parsed", "  # parsed"),
         ("ds.interleave(read, cycle_length=2)\n",
          "ds.interleave(read, cycle_length=2).map(parse, num_parallel_calls=tf.data.AUTOTUNE)\n")],
        added=(PARSE,),
        gone=(PARSE,),
    ),
    "two of them, from statements of a function inside a function": Snippet(
        """\
import tensorflow as tf

def double(x):
    return x * 2

def make(names):
    def read(name):
        ds = tf.data.TFRecordDataset(tf.strings.join(["data/", name]))
        ds = ds.map(tf.strings.length)  # numbers
        ds = ds.map(double, num_parallel_calls=2)
        ds = ds.prefetch(1)
        return ds

    return (
        tf.data.Dataset.from_tensor_slices(names)
        .flat_map(read)
        .batch(4)
    )

ds = make(["a.tfrecord", "b.tfrecord"])
""",
        lambda c: [
            MoveAfter(c("map", 1), c("flat_map", -1)),
            MoveAfter(c("map"), c("flat_map", -1)),
            SetArgument(c("map"), "num_parallel_calls", AUTOTUNE),
        ],
        [("        ds = ds.map(tf.strings.length)  # numbers\n        ds = ds.map(double, num_parallel_calls=2)\n", ""),
         ("        .flat_map(read)\n",
          "        .flat_map(read)\n        .map(tf.strings.length, num_parallel_calls=tf.data.AUTOTUNE)  # numbers\n"
          "        .map(double, num_parallel_calls=2)\n")],
        gone=("ds = ds.map(tf.strings.length)", "ds = ds.map(double, num_parallel_calls=2)"),
    ),
}  # fmt: skip
