"""Windows of rows: a `batch` in place of two calls, all of them in one tensor, and slices of a tensor by another function."""

from advisor.model.edits import Code, InsertAfter, Number, Remove, SetFunction, WrapData
from tests.rewrite.snippets import Snippet


def framed(c, size, shift, axis=""):
    """All windows in one tensor, whose length and shift are those passed to `window`."""
    numbers = Number("size", size), Number("shift", shift)
    wrapped = WrapData(c("from_tensor_slices"), c("window"), f"tf.signal.frame(data, size, shift{axis})", numbers)
    return [wrapped, Remove(c("window")), Remove(c("flat_map"))]


CUT = """\
def cut(rows):
    starts = tf.data.Dataset.range(0, tf.shape(rows, tf.int64)[0], {shift})
    return starts.map(lambda first: rows[first : first + {size}])
"""

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
    "slices of a tensor, by a function with a name": Snippet(
        """\
import tensorflow as tf

def cut(): return 3

# twice
def dataset():
    rows = tf.data.Dataset.range(11)

    # windows of four
    windows = rows.window(4, shift=2)
    # put together
    return windows.flat_map(
        lambda window: window.batch(4)
    )

ds = dataset()
""",
        lambda c: [
            InsertAfter(c("range"), "batch", (("", Code("tf.int64.max")),)),
            Remove(c("window")),
            SetFunction(c("flat_map"), CUT.format(shift=2, size=4)),
        ],
        [("range(11)", "range(11).batch(tf.int64.max)"),
         ("    windows = rows.window(4, shift=2)\n    # put together\n", """\
    windows = rows

    def cut_2(rows):
        starts = tf.data.Dataset.range(0, tf.shape(rows, tf.int64)[0], 2)
        return starts.map(lambda first: rows[first : first + 4])

    # put together
"""),
         ("""\
        lambda window: window.batch(4)
""", "        cut_2\n")],
    ),
    "two functions in one statement of a module, with tabs": Snippet(
        """\
import tensorflow as tf
if True:
\trows = tf.data.Dataset.range(11)
one, other = rows.window(4, shift=2).flat_map(lambda w: w.batch(4)), rows.window(3, shift=1).flat_map(lambda w: w.batch(3))
ds = tf.data.Dataset.zip((one, other))
""",
        lambda c: [
            InsertAfter(c("range"), "batch", (("", Code("tf.int64.max")),)),
            Remove(c("window", 0)),
            Remove(c("window", 1)),
            SetFunction(c("flat_map", 0), CUT.format(shift=2, size=4)),
            SetFunction(c("flat_map", 1), CUT.format(shift=1, size=3)),
        ],
        [("range(11)", "range(11).batch(tf.int64.max)"),
         ("one, other = rows.window(4, shift=2).flat_map(lambda w: w.batch(4)), "
          "rows.window(3, shift=1).flat_map(lambda w: w.batch(3))", """\


def cut(rows):
\tstarts = tf.data.Dataset.range(0, tf.shape(rows, tf.int64)[0], 2)
\treturn starts.map(lambda first: rows[first : first + 4])


def cut_2(rows):
\tstarts = tf.data.Dataset.range(0, tf.shape(rows, tf.int64)[0], 1)
\treturn starts.map(lambda first: rows[first : first + 3])


one, other = rows.flat_map(cut), rows.flat_map(cut_2)""")],
    ),
    "all windows in one tensor, with another name of TensorFlow": Snippet(
        """\
import tensorflow as tf2

rows = tf2.reshape(tf2.range(22.0), [11, 2])
ds = (
    tf2.data.Dataset.from_tensor_slices(
        rows[:, :1]  # the first column
    )
    .window(4, shift=2, drop_remainder=True)
    .flat_map(lambda window: window.batch(4, drop_remainder=True))
    .prefetch(1)
)
""",
        lambda c: framed(c, 4, 2, ", axis=0"),
        [("rows[:, :1]  #", "tf2.signal.frame(rows[:, :1], 4, 2, axis=0)  #"),
         ("    .window(4, shift=2, drop_remainder=True)\n"
          "    .flat_map(lambda window: window.batch(4, drop_remainder=True))\n", "")],
    ),
    "all windows in one tensor, line by line": Snippet(
        """\
import tensorflow

def windows(data, size):
    dataset = tensorflow.data.Dataset.from_tensor_slices(tensors=data)
    dataset = dataset.window(size, shift=1, drop_remainder=True)
    dataset = dataset.flat_map(lambda window: window.batch(size, drop_remainder=True))
    return dataset.shuffle(5, seed=1)

ds = windows([1, 5, 2, 8, 9], 3)
""",
        lambda c: framed(c, 3, 1),
        [("tensors=data", "tensors=tensorflow.signal.frame(data, 3, 1)"),
         ("    dataset = dataset.window(size, shift=1, drop_remainder=True)\n", ""),
         ("    dataset = dataset.flat_map(lambda window: window.batch(size, drop_remainder=True))\n", "")],
        gone=("    dataset = dataset.window", "    dataset = dataset.flat_map"),
    ),
    "all windows in one tensor, of the length that the script computes": Snippet(
        """\
import tensorflow as tf

size, shift = 3, 2
data = tf.range(11.0)
ds = tf.data.Dataset.from_tensor_slices(data).window(size + 1, shift, drop_remainder=True).flat_map(
    lambda window: window.batch(size + 1, drop_remainder=True))
""",
        lambda c: framed(c, 4, 2),
        [("from_tensor_slices(data).window(size + 1, shift, drop_remainder=True).flat_map(\n"
          "    lambda window: window.batch(size + 1, drop_remainder=True))",
          "from_tensor_slices(tf.signal.frame(data, size + 1, shift))")],
    ),
    "all windows in one tensor, of a length that a call computes": Snippet(
        """\
import tensorflow as tf

sizes = [4]
ds = tf.data.Dataset.from_tensor_slices(tf.range(11.0)).window(sizes.pop(), 1, drop_remainder=True)
ds = ds.flat_map(lambda window: window.batch(4, drop_remainder=True))
""",
        lambda c: framed(c, 4, 1),
        [("from_tensor_slices(tf.range(11.0)).window(sizes.pop(), 1, drop_remainder=True)\n"
          "ds = ds.flat_map(lambda window: window.batch(4, drop_remainder=True))\n",
          "from_tensor_slices(tf.signal.frame(tf.range(11.0), 4, 1))\n")],
        gone=("ds = ds.flat_map",),
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
