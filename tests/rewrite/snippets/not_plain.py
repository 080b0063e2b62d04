"""Scripts that are not rewritten, with edits and the reason."""

from advisor.model.edits import Edit, InsertAfter, MoveAfter, SetArgument
from tests.rewrite.snippets import AUTOTUNE, Recorded, cached, moved, option, parallel, prefetched, removed
from tests.rewrite.snippets.files import IMAGES

MOVED_OUT = """\
import tensorflow as tf
scale, steps = 2, [1]
def double(x):
    return x * scale
ds = tf.data.Dataset.range(3)
{}
"""


def moved_out(c: Recorded) -> list[Edit]:
    return [MoveAfter(c("map"), c("flat_map"))]


NOT_PLAIN = {
    "an inner map that uses the element of the outer call": (
        MOVED_OUT.format("ds = ds.flat_map(lambda i: tf.data.Dataset.range(2).map(lambda x: x * i))"),
        moved_out,
        "use names of the function of flat_map",
    ),
    "an inner map whose argument depends on a local name": (
        MOVED_OUT.format(
            "def f(i):\n    n = 2\n    return tf.data.Dataset.range(2).map(double, n)\nds = ds.flat_map(f)"
        ),
        moved_out,
        "use names of the function of flat_map",
    ),
    "an inner map that is not the last call": (
        MOVED_OUT.format("ds = ds.flat_map(lambda i: tf.data.Dataset.range(2).map(double).take(1))"),
        moved_out,
        "is not the last call in the function",
    ),
    "an inner map in a function with another use": (
        MOVED_OUT.format(
            "def f(i):\n    return tf.data.Dataset.range(2).map(double)\nds = ds.flat_map(f)\nother = f(0)"
        ),
        moved_out,
        "may also be used elsewhere",
    ),
    "an inner map whose result is used twice": (
        MOVED_OUT.format(
            "def f(i):\n    inner = tf.data.Dataset.range(2).map(double)\n    print(inner)\n    return inner\n"
            "ds = ds.flat_map(f)"
        ),
        moved_out,
        "is not the last call in the function",
    ),
    "an inner function that uses the element of the outer call": (
        MOVED_OUT.format(
            "def f(i):\n    def times(x):\n        return x * i\n    return tf.data.Dataset.range(2).map(times)\n"
            "ds = ds.flat_map(f)"
        ),
        moved_out,
        "times uses i of the function of flat_map (line 8)",
    ),
    "an inner function with a default": (
        MOVED_OUT.format(
            "def f(i):\n    def times(x, n=i + 0):\n        return x\n    return tf.data.Dataset.range(2).map(times)\n"
            "ds = ds.flat_map(f)"
        ),
        moved_out,
        "times at line 7 is more than a plain function",
    ),
    "an inner function that reads what changes": (
        MOVED_OUT.format(
            "n = 2\nn = 3\ndef f(i):\n    def times(x):\n        return x * n\n"
            "    return tf.data.Dataset.range(2).map(times)\nds = ds.flat_map(f)"
        ),
        moved_out,
        "n, which times uses, is assigned more than once",
    ),
    "a list of readers": (
        'import tensorflow as tf\nreaders = list(map(tf.data.TFRecordDataset, ["data/a.tfrecord"]))\nds = readers[0]\n',
        cached("TFRecordDataset"),
        "does not show that list calls TFRecordDataset",
    ),
    "a bound method under another name": (
        "import tensorflow as tf\nstep = tf.data.Dataset.range(3).batch\nds = step(2)\n",
        prefetched(),
        "does not show that step calls batch",
    ),
    "arguments in a dictionary": (
        "import tensorflow as tf\nhow = {'map_func': lambda x: x}\nds = tf.data.Dataset.range(3).map(**how)\n",
        parallel(),
        "include * or **",
    ),
    "a reader given to an interleave": (
        "import tensorflow as tf\nfiles = tf.data.Dataset.from_tensor_slices(['data/a.tfrecord'])\n"
        "ds = files.interleave(tf.data.TFRecordDataset)\n",
        lambda c: [InsertAfter(c("TFRecordDataset"), "cache")],
        "inside the function of interleave, not by a line",
    ),
    "a call inside Keras": (
        "import numpy as np\nimport keras\n"
        "ds = keras.utils.timeseries_dataset_from_array(np.arange(9.0), None, sequence_length=2, batch_size=3)\n",
        lambda c: [SetArgument(c("map", -1), "num_parallel_calls", AUTOTUNE)],
        "map is called inside keras",
    ),
    "behind a call in the middle of Keras": (
        "import numpy as np\nimport keras\n"
        "ds = keras.utils.timeseries_dataset_from_array(np.arange(9.0), None, sequence_length=2, batch_size=3)\n",
        lambda c: [InsertAfter(c("map", -1), "cache")],
        "keras makes further calls after map",
    ),
    "two datasets of Keras, of which none is used": (
        IMAGES.replace("ds =", "ds, val =").replace(
            "verbose=False", 'verbose=False, validation_split=0.5, subset="both", seed=1'
        ),
        lambda c: [InsertAfter(c.last(), "cache")],
        "returns the dataset itself",
    ),
    "a dataset that is used in between": (
        "import tensorflow as tf\nds = tf.data.Dataset.range(5)\nds = ds.shuffle(5, seed=1)\nfirst = ds.take(1)\n"
        "ds = ds.map(lambda x: x)\n",
        moved("shuffle", "map"),
        "is also used elsewhere",
    ),
    "options that serve two datasets": (
        "import tensorflow as tf\noptions = tf.data.Options()\noptions.deterministic = False\n"
        "ds = tf.data.Dataset.range(5).with_options(options)\nother = tf.data.Dataset.range(6).with_options(options)\n",
        option("with_options", "deterministic", True),
        "are also used by other datasets",
    ),
    "a source taken out": (
        "import tensorflow as tf\nds = tf.data.Dataset.range(5).batch(2)\n",
        removed("range"),
        "range is not called as a method of a dataset",
    ),
    "a statement in a class": (
        "import tensorflow as tf\nclass Data:\n    ds = tf.data.Dataset.range(5).batch(2)\nds = Data.ds\n",
        option("batch", "deterministic", True),
        "is called in a class",
    ),
    "the body of a function on the line of a class": (
        "import tensorflow as tf\nclass Data:\n    def make(self): return tf.data.Dataset.range(5).batch(2)\n"
        "ds = Data().make()\n",
        option("batch", "deterministic", True),
        "is called in a class",
    ),
}
