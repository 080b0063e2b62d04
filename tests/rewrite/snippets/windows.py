"""Windows of rows: a `batch` in place of two calls, and slices of a tensor by another function."""

from advisor.model.edits import Code, InsertAfter, Remove, SetFunction
from tests.rewrite.snippets import Snippet

SNIPPETS = {
    "slices of a tensor, with another name of TensorFlow": Snippet(
        """\
import tensorflow as tf2

rows = tf2.reshape(tf2.range(22.0), [11, 2])
ds = (
    tf2.data.Dataset.from_tensor_slices(rows)
    .window(4, shift=2)
    .flat_map(lambda window: window.batch(4))
    .prefetch(1)
)
""",
        lambda c: [
            InsertAfter(c("from_tensor_slices"), "batch", (("", Code("tf.int64.max")),)),
            Remove(c("window")),
            SetFunction(
                c("flat_map"),
                "lambda rows: tf.data.Dataset.range(0, tf.shape(rows, tf.int64)[0], 2)"
                ".map(lambda first: rows[first : first + 4])",
            ),
        ],
        [("    .window(4, shift=2)\n", "    .batch(tf2.int64.max)\n"),
         ("lambda window: window.batch(4)",
          "lambda rows: tf2.data.Dataset.range(0, tf2.shape(rows, tf2.int64)[0], 2)"
          ".map(lambda first: rows[first : first + 4])")],
    ),
    "a batch": Snippet(
        """\
import tensorflow as tf

ds = tf.data.Dataset.range(11).window(4).flat_map(lambda window: window.batch(4)).map(tf.reduce_sum)
""",
        lambda c: [InsertAfter(c("range"), "batch", (("", 4),)), Remove(c("window")), Remove(c("flat_map"))],
        [(".window(4).flat_map(lambda window: window.batch(4))", ".batch(4)")],
    ),
}  # fmt: skip
