"""Maps whose function is called once per batch: one component, tuples, dictionaries, methods, calls in between."""

from collections.abc import Callable, Iterable

from advisor.model.edits import Code, Edit, InsertAfter, MoveAfter, Remove, SetArgument, Vectorize
from tests.rewrite.snippets import AUTOTUNE, Recorded, Snippet


def vectorized(after: str = "batch") -> Callable[[Recorded], Iterable[Edit]]:
    return lambda c: [MoveAfter(c("map"), c(after)), Vectorize(c("map"))]


SNIPPETS = {
    "a named function of one component": Snippet(
        """\
import tensorflow as tf

def center(row):
    if tf.reduce_sum(row) > 20:
        row = row - tf.reduce_mean(row)
    return row

ds = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(44.0), [11, 4]))
ds = ds.map(center)  # each row
ds = ds.batch(4)
""",
        vectorized(),
        [("    return row\n",
          "    return row\n\n\ndef center_batch(rows):\n"
          "    return tf.vectorized_map(tf.function(center), rows, fallback_to_while_loop=False)\n"),
         ("ds = ds.map(center)  # each row\nds = ds.batch(4)\n",
          "ds = ds.batch(4)\nds = ds.map(center_batch)  # each row\n")],
        added=("def center_batch(rows):", "return tf.vectorized_map(tf.function(center), rows, fallback_to_while_loop=False)"),
    ),
    "a lambda of two components in a chain": Snippet(
        """\
import tensorflow as tf

rows = [[1.0, 2.0], [3.0, 5.0], [8.0, 4.0]]
ds = (
    tf.data.Dataset.from_tensor_slices((rows, [1.0, 2.0, 3.0]))
    .map(lambda x, y: (x / tf.reduce_sum(x), y * 2), num_parallel_calls=2)
    .shuffle(8, seed=3)
    .batch(2, drop_remainder=True)
    .prefetch(1)
)
""",
        vectorized(),
        [("    .map(lambda x, y: (x / tf.reduce_sum(x), y * 2), num_parallel_calls=2)\n", ""),
         ("    .batch(2, drop_remainder=True)\n",
          "    .batch(2, drop_remainder=True)\n    .map(lambda *rows_2: tf.vectorized_map(lambda row: "
          "tf.function(lambda x, y: (x / tf.reduce_sum(x), y * 2))(*row), rows_2, fallback_to_while_loop=False), "
          "num_parallel_calls=2)\n")],
    ),
    "a named function without anything for AutoGraph": Snippet(
        """\
import tensorflow as tf

def center(row):
    return row - tf.reduce_mean(row)

ds = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(44.0), [11, 4]))
ds = ds.map(center)
ds = ds.batch(4)
""",
        lambda c: [MoveAfter(c("map"), c("batch")), Vectorize(c("map"), is_plain=True)],
        [("    return row - tf.reduce_mean(row)\n",
          "    return row - tf.reduce_mean(row)\n\n\ndef center_batch(rows):\n"
          "    return tf.vectorized_map(center, rows, fallback_to_while_loop=False)\n"),
         ("ds = ds.map(center)\nds = ds.batch(4)\n", "ds = ds.batch(4)\nds = ds.map(center_batch)\n")],
        added=("def center_batch(rows):", "return tf.vectorized_map(center, rows, fallback_to_while_loop=False)"),
    ),
    "a lambda of two components without anything for AutoGraph": Snippet(
        """\
import tensorflow as tf

rows = [[1.0, 2.0], [3.0, 5.0], [8.0, 4.0]]
ds = tf.data.Dataset.from_tensor_slices((rows, [1.0, 2.0, 3.0]))
ds = ds.map(lambda x, y: (x / tf.reduce_sum(x), y * 2)).batch(2)
""",
        lambda c: [MoveAfter(c("map"), c("batch")), Vectorize(c("map"), is_plain=True)],
        [(".map(lambda x, y: (x / tf.reduce_sum(x), y * 2)).batch(2)",
          ".batch(2).map(lambda *rows_2: tf.vectorized_map(lambda row: (lambda x, y: (x / tf.reduce_sum(x), y * 2))(*row), "
          "rows_2, fallback_to_while_loop=False))")],
    ),
    "a dictionary, a keyword, another name of TensorFlow": Snippet(
        """\
import tensorflow.compat.v2 as tf2

def join(row):
    return {"both": tf2.concat([row["a"], row["b"]], 0), "largest": tf2.reduce_max(row["b"])}

ds = tf2.data.Dataset.from_tensor_slices({"a": [[1, 2], [3, 4], [5, 6]], "b": [[7], [8], [9]]})
ds = ds.map(map_func=join).repeat(2).batch(4)
""",
        lambda c: [MoveAfter(c("map"), c("batch")), Vectorize(c("map")), SetArgument(c("map"), "num_parallel_calls", AUTOTUNE)],
        [('tf2.reduce_max(row["b"])}\n',
          'tf2.reduce_max(row["b"])}\n\n\ndef join_batch(rows):\n'
          "    return tf2.vectorized_map(tf2.function(join), rows, fallback_to_while_loop=False)\n"),
         (".map(map_func=join).repeat(2).batch(4)",
          ".repeat(2).batch(4).map(map_func=join_batch, num_parallel_calls=tf2.data.AUTOTUNE)")],
        added=("def join_batch(rows):", "return tf2.vectorized_map(tf2.function(join), rows, fallback_to_while_loop=False)"),
    ),
    "a padded batch that pads nothing": Snippet(
        """\
import tensorflow as tf

rows = tf.reshape(tf.range(44.0), [11, 4])
ds = tf.data.Dataset.from_tensor_slices(rows).map(lambda row: row / tf.reduce_sum(row)).repeat(2).padded_batch(4)
""",
        vectorized("padded_batch"),
        [(".map(lambda row: row / tf.reduce_sum(row)).repeat(2).padded_batch(4)",
          ".repeat(2).padded_batch(4).map(lambda rows_2: tf.vectorized_map(tf.function(lambda row: row / "
          "tf.reduce_sum(row)), rows_2, fallback_to_while_loop=False))")],
    ),
    "a padded batch that names the shapes of the results": Snippet(
        """\
import tensorflow as tf

def halves(row):
    return row[:2] / tf.reduce_sum(row), row[2:]

ds = (
    tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(44.0), [11, 4]))
    .map(halves)
    .shuffle(5, seed=2)
    .padded_batch(4, padded_shapes=([2], [2]), drop_remainder=True)
    .prefetch(1)
)
""",
        lambda c: [
            MoveAfter(c("map"), c("shuffle")),
            InsertAfter(c("shuffle"), "batch", (("", 4), ("drop_remainder", Code("True")))),
            Remove(c("padded_batch")),
            Vectorize(c("map")),
        ],
        [("    return row[:2] / tf.reduce_sum(row), row[2:]\n",
          "    return row[:2] / tf.reduce_sum(row), row[2:]\n\n\ndef halves_batch(rows):\n"
          "    return tf.vectorized_map(tf.function(halves), rows, fallback_to_while_loop=False)\n"),
         ("    .map(halves)\n", ""),
         ("    .padded_batch(4, padded_shapes=([2], [2]), drop_remainder=True)\n",
          "    .batch(4, drop_remainder=True)\n    .map(halves_batch)\n")],
        added=("def halves_batch(rows):", "return tf.vectorized_map(tf.function(halves), rows, fallback_to_while_loop=False)"),
    ),
    "a padded batch with shapes directly behind the map": Snippet(
        """\
import tensorflow as tf

def center(row):
    return row - tf.reduce_mean(row)

ds = tf.data.Dataset.from_tensor_slices(tf.reshape(tf.range(44.0), [11, 4]))
ds = ds.map(center).padded_batch(4, [4])
""",
        lambda c: [
            InsertAfter(c("from_tensor_slices"), "batch", (("", 4),)), Remove(c("padded_batch")), Vectorize(c("map")),
        ],
        [("[11, 4]))\n", "[11, 4])).batch(4)\n"),
         ("    return row - tf.reduce_mean(row)\n",
          "    return row - tf.reduce_mean(row)\n\n\ndef center_batch(rows):\n"
          "    return tf.vectorized_map(tf.function(center), rows, fallback_to_while_loop=False)\n"),
         ("ds = ds.map(center).padded_batch(4, [4])\n", "ds = ds.map(center_batch)\n")],
        added=("def center_batch(rows):", "return tf.vectorized_map(tf.function(center), rows, fallback_to_while_loop=False)"),
    ),
    "a named function in the body of a class, and a name that is taken": Snippet(
        """\
import tensorflow as tf

def share(row, label=0):
    return row / tf.reduce_sum(row), label

def share_batch():
    return "another function of this name"

class Data:
    rows = tf.data.Dataset.from_tensor_slices([[1.0, 2.0], [3.0, 5.0], [8.0, 4.0]])
    ds = tf.data.Dataset.zip((rows, tf.data.Dataset.range(3))).map(share).batch(2)

ds = Data.ds
""",
        vectorized(),
        [("    return row / tf.reduce_sum(row), label\n",
          "    return row / tf.reduce_sum(row), label\n\n\ndef share_batch_2(*rows_2):\n"
          "    return tf.vectorized_map(lambda row_2: tf.function(share)(*row_2), rows_2, fallback_to_while_loop=False)\n"),
         (".map(share).batch(2)", ".batch(2).map(share_batch_2)")],
        added=("def share_batch_2(*rows_2):",
               "return tf.vectorized_map(lambda row_2: tf.function(share)(*row_2), rows_2, fallback_to_while_loop=False)"),
    ),
    "a method and a batch whose records are parsed": Snippet(
        """\
import tensorflow as tf

class Reader:
    features = {"x": tf.io.FixedLenFeature([2], tf.float32)}

    def parse(self, record):
        return tf.io.parse_single_example(record, self.features)["x"]

    def make(self):
        feature = tf.train.Feature(float_list=tf.train.FloatList(value=[1.0, 2.0]))
        record = tf.train.Example(features=tf.train.Features(feature={"x": feature}))
        ds = tf.data.Dataset.from_tensors(record.SerializeToString()).repeat(5)
        return ds.map(self.parse).take(4).batch(3)

ds = Reader().make()
""",
        vectorized(),
        [(".map(self.parse).take(4).batch(3)",
          ".take(4).batch(3).map(lambda rows: tf.vectorized_map(tf.function(self.parse), rows, "
          "fallback_to_while_loop=False))")],
    ),
}  # fmt: skip
