"""Maps whose function is called once per batch: one component, tuples, dictionaries, methods, calls in between."""

from collections.abc import Callable, Iterable

from advisor.model.finding import Edit, MoveAfter, SetArgument, Vectorize
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
        [("ds = ds.map(center)  # each row\nds = ds.batch(4)\n",
          "ds = ds.batch(4)\nds = ds.map(lambda rows: tf.vectorized_map(tf.function(center), rows, "
          "fallback_to_while_loop=False))  # each row\n")],
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
    "a dictionary, a keyword, another name of TensorFlow": Snippet(
        """\
import tensorflow.compat.v2 as tf2

def join(row):
    return {"both": tf2.concat([row["a"], row["b"]], 0), "largest": tf2.reduce_max(row["b"])}

ds = tf2.data.Dataset.from_tensor_slices({"a": [[1, 2], [3, 4], [5, 6]], "b": [[7], [8], [9]]})
ds = ds.map(map_func=join).repeat(2).batch(4)
""",
        lambda c: [MoveAfter(c("map"), c("batch")), Vectorize(c("map")), SetArgument(c("map"), "num_parallel_calls", AUTOTUNE)],
        [(".map(map_func=join).repeat(2).batch(4)",
          ".repeat(2).batch(4).map(map_func=lambda rows: tf2.vectorized_map(tf2.function(join), rows, "
          "fallback_to_while_loop=False), num_parallel_calls=tf2.data.AUTOTUNE)")],
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
