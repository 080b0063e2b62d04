"""Chains: over lines, in parentheses, with backslashes, comments, tabs; and steps `ds = ds.map(...)`."""

from advisor.model.edits import InsertAfter, SetArgument
from tests.rewrite.snippets import AUTOTUNE, Snippet, cached, moved, parallel, prefetched, removed

PARALLEL = ", num_parallel_calls=tf.data.AUTOTUNE"

SNIPPETS = {
    "everything on one line": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(20).map(lambda x: x * 2).batch(4)\n",
        parallel(), [("x * 2)", f"x * 2{PARALLEL})")],
    ),
    "the steps of a tutorial": Snippet(
        '''\
import tensorflow as tf

def parse(line):
    return tf.strings.to_number(tf.strings.split(line, ",")[0])

ds = tf.data.TextLineDataset("data/lines.csv")
ds = ds.skip(1)
ds = ds.map(parse)
ds = ds.batch(4)
''',
        prefetched(), [("batch(4)", "batch(4).prefetch(tf.data.AUTOTUNE)")],
    ),
    "steps with comments between": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(12)  # numbers
# Double them.
ds = ds.map(lambda x: x + x)  # cheap
# Group them.
ds = ds.batch(5, drop_remainder=True)  # no rest
''',
        cached(), [("x + x)", "x + x).cache()")],
    ),
    "black style with parentheses": Snippet(
        '''\
import tensorflow as tf

files = ["data/a.tfrecord", "data/b.tfrecord"]
ds = (
    tf.data.TFRecordDataset(files)
    .map(lambda record: tf.io.decode_raw(record, tf.uint8)[:2])
    .batch(3)
)
''',
        cached("TFRecordDataset"), [("Dataset(files)\n", "Dataset(files)\n    .cache()\n")],
    ),
    "a comment behind every link": Snippet(
        '''\
import tensorflow as tf

ds = (tf.data.Dataset.range(30)      # the source
      .filter(lambda x: x % 3 == 0)  # a third
      .map(lambda x: x ** 2)         # squares
      .batch(2)                      # pairs
      )
''',
        lambda c: [SetArgument(c("map"), "num_parallel_calls", AUTOTUNE), InsertAfter(c("map"), "cache"),
                   InsertAfter(c("batch"), "prefetch", (("", AUTOTUNE),))],
        [("x ** 2)         # squares\n", f"x ** 2{PARALLEL})         # squares\n      .cache()\n"),
         ("# pairs\n", "# pairs\n      .prefetch(tf.data.AUTOTUNE)\n")],
    ),
    "backslashes": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(10) \\
    .map(lambda x: x + 1) \\
    .batch(3)
''',
        cached(), [("x + 1) \\\n", "x + 1) \\\n    .cache() \\\n")],
    ),
    "the last of backslashes": Snippet(
        "import tensorflow as tf\n\nds = tf.data.Dataset.range(10) \\\n    .batch(3)\nn = 1\n",
        prefetched(), [(".batch(3)\n", ".batch(3) \\\n    .prefetch(tf.data.AUTOTUNE)\n")],
    ),
    "trailing dots": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(10).map(
    lambda x: x + 1
).batch(
    3
)
''',
        prefetched(), [("    3\n)", "    3\n).prefetch(tf.data.AUTOTUNE)")],
    ),
    "an argument a line": Snippet(
        '''\
import tensorflow as tf

def double(x):
    return x * 2

ds = tf.data.Dataset.range(10).map(
    double,
)
''',
        parallel(), [("    double,\n", "    double,\n    num_parallel_calls=tf.data.AUTOTUNE,\n")],
    ),
    "an argument a line, no trailing comma, a comment": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(10).map(
    map_func=lambda x: x * 2  # twice
)
''',
        parallel(), [("x * 2  # twice\n", "x * 2,  # twice\n    num_parallel_calls=tf.data.AUTOTUNE\n")],
    ),
    "a lambda over lines": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(10).map(lambda x: (
    x,
    x * 2,
)).batch(2)
''',
        parallel(), [("x * 2,\n))", f"x * 2,\n){PARALLEL})")],
    ),
    "a keyword that is there": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).map(lambda x: x, num_parallel_calls=2, deterministic=True)\n",
        parallel(), [("calls=2", "calls=tf.data.AUTOTUNE")],
    ),
    "an argument by position": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).map(lambda x: x + 1, 2)\n",
        parallel(), [("+ 1, 2)", "+ 1, tf.data.AUTOTUNE)")],
    ),
    "several by position": Snippet(
        '''\
import tensorflow as tf
ds = tf.data.Dataset.range(6).interleave(lambda x: tf.data.Dataset.from_tensors(x).repeat(3), 2, 1)
''',
        lambda c: [SetArgument(c("interleave"), "num_parallel_calls", 2), SetArgument(c("interleave"), "cycle_length", 3)],
        [("repeat(3), 2, 1)", "repeat(3), 3, 1, num_parallel_calls=2)")],
    ),
    "tabs": Snippet(
        '''\
import tensorflow as tf

def make():
\tds = (
\t\ttf.data.Dataset.range(9)
\t\t.map(lambda x: x + 1)
\t)
\treturn ds

ds = make()
''',
        cached(), [("x + 1)\n", "x + 1)\n\t\t.cache()\n")],
    ),
    "spaces in odd places": Snippet(
        "import tensorflow as tf\nds = (tf.data.Dataset . range ( 9).map( lambda x : x+1 , num_parallel_calls = ( 1 + 1 ) ) )\n",
        parallel(), [("= ( 1 + 1 )", "= tf.data.AUTOTUNE")],
    ),
    "several statements on a line": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9); ds = ds.map(lambda x: x); ds = ds.batch(2)\n",
        cached(), [("lambda x: x)", "lambda x: x).cache()")],
    ),
    "a cache taken out of a chain": Snippet(
        '''\
import tensorflow as tf

ds = (
    tf.data.Dataset.range(9)
    .map(lambda x: x + 1)  # decode
    .cache()  # once
    .batch(2)
)
''',
        removed("cache"), [("    .cache()  # once\n", "")],
    ),
    "the last link taken out, a parenthesis behind it": Snippet(
        '''\
import tensorflow as tf

ds = (tf.data.Dataset.range(9)
      .batch(2)
      .cache())
''',
        removed("cache"), [("\n      .cache())", ")")],
    ),
    "a line taken out": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(9)
ds = ds.cache()  # of no use
ds = ds.batch(2)
''',
        removed("cache"), [("ds = ds.cache()  # of no use\n", "")], gone=("ds = ds.cache()",),
    ),
    "a link taken out on one line": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).cache().batch(2)\n",
        removed("cache"), [(".cache()", "")],
    ),
    "a shuffle moved behind a map": Snippet(
        '''\
import tensorflow as tf

ds = (
    tf.data.Dataset.range(9)
    .shuffle(9, seed=3)  # all
    .map(lambda x: x + 1)
    .batch(2)
)
''',
        moved("shuffle", "map"),
        [("    .shuffle(9, seed=3)  # all\n    .map(lambda x: x + 1)\n",
          "    .map(lambda x: x + 1)\n    .shuffle(9, seed=3)  # all\n")],
    ),
    "a line moved down": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(9)
ds = ds.shuffle(9, seed=3)
ds = ds.map(lambda x: x + 1)
ds = ds.batch(2)
''',
        moved("shuffle", "map"),
        [("ds = ds.shuffle(9, seed=3)\nds = ds.map(lambda x: x + 1)\n",
          "ds = ds.map(lambda x: x + 1)\nds = ds.shuffle(9, seed=3)\n")],
        gone=("ds = ds.shuffle(9, seed=3)",), added=("ds = ds.shuffle(9, seed=3)",),
    ),
    "a link moved into the next line": Snippet(
        '''\
import tensorflow as tf

files = tf.data.Dataset.range(9).shuffle(9, seed=3)
images = files.map(lambda x: x + 1)
ds = images.batch(2)
''',
        moved("shuffle", "map"), [(".shuffle(9, seed=3)", ""), ("x + 1)", "x + 1).shuffle(9, seed=3)")],
    ),
    "a shuffle moved behind a new cache": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(9).shuffle(9, seed=3).map(lambda x: x + 1).batch(2)
''',
        lambda c: [*moved("shuffle", "map")(c), *cached()(c)],
        [(".shuffle(9, seed=3)", ""), ("x + 1)", "x + 1).cache().shuffle(9, seed=3)")],
    ),
    "a map that is moved and changed": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).map(lambda x: x + 1).take(4).batch(2)\n",
        lambda c: [*moved("map", "take")(c), *parallel()(c)],
        [(".map(lambda x: x + 1)", ""), ("take(4)", f"take(4).map(lambda x: x + 1{PARALLEL})")],
    ),
}  # fmt: skip
