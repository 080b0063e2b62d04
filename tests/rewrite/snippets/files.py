"""Files: encodings, line ends, imports, other modules of the project; options; what libraries return."""

from advisor.model.edits import InsertAfter, SetOption
from tests.rewrite.snippets import AUTOTUNE, Snippet, cached, option, parallel, prefetched

PARALLEL = ", num_parallel_calls=tf.data.AUTOTUNE"

IMAGES = """\
import keras

ds = keras.utils.image_dataset_from_directory(
    "data/images", image_size=(4, 4), batch_size=2, shuffle=False, verbose=False
)
"""

SNIPPETS = {
    "windows line ends": Snippet(
        "import tensorflow as tf\r\n\r\nds = (\r\n    tf.data.Dataset.range(9)\r\n    .map(lambda x: x + 1)  # one\r\n)\r\n",
        cached(), [("# one\r\n", "# one\r\n    .cache()\r\n")],
    ),
    "windows line ends and an import": Snippet(
        '"""Training."""\r\nfrom tensorflow.data import Dataset\r\nds = Dataset.range(9).batch(2)\r\n',
        prefetched(),
        [("import Dataset\r\n", "import Dataset\r\nimport tensorflow as tf\r\n"),
         ("batch(2)", "batch(2).prefetch(tf.data.AUTOTUNE)")],
        added=("import tensorflow as tf",),
    ),
    "a byte order mark": Snippet(
        "import tensorflow as tf; ds = tf.data.Dataset.range(9).map(lambda x: x + 1)\n",
        parallel(), [("x + 1)", f"x + 1{PARALLEL})")], encoding="utf-8-sig",
    ),
    "latin-1": Snippet(
        '# -*- coding: latin-1 -*-\nimport tensorflow as tf\né = "é"; ds = tf.data.Dataset.range(9).map(lambda ü: ü + len(é))\n',
        parallel(), [("len(é))", f"len(é){PARALLEL})")], encoding="latin-1",
    ),
    "characters of several bytes": Snippet(
        'import tensorflow as tf\n\nds = tf.data.Dataset.from_tensor_slices(["données", "🌍", "数据"]).map(tf.strings.length)\n',
        parallel(), [("strings.length)", f"strings.length{PARALLEL})")],
    ),
    "form feeds between sections": Snippet(
        "import tensorflow as tf\n\f\n# Data.\nds = tf.data.Dataset.range(9)\n\f\nds = ds.map(lambda x: x + 1)\n",
        parallel(), [("x + 1)", f"x + 1{PARALLEL})")],
    ),
    "no line end at the end": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).batch(2)", prefetched(),
        [("batch(2)", "batch(2).prefetch(tf.data.AUTOTUNE)")],
    ),
    "import tensorflow": Snippet(
        "import tensorflow\n\nds = tensorflow.data.Dataset.range(9).batch(2)\n", prefetched(),
        [("batch(2)", "batch(2).prefetch(tensorflow.data.AUTOTUNE)")],
    ),
    "from tensorflow import data as tfd": Snippet(
        "from tensorflow import data as tfd\n\nds = tfd.Dataset.range(9).batch(2)\n", prefetched(),
        [("batch(2)", "batch(2).prefetch(tfd.AUTOTUNE)")],
    ),
    "from tensorflow.data import AUTOTUNE": Snippet(
        "from tensorflow.data import AUTOTUNE, Dataset\n\nds = Dataset.range(9).batch(2)\n", prefetched(),
        [("batch(2)", "batch(2).prefetch(AUTOTUNE)")],
    ),
    "compat.v2": Snippet(
        "import tensorflow.compat.v2 as tf\n\nds = tf.data.Dataset.range(9).batch(2)\n", prefetched(),
        [("batch(2)", "batch(2).prefetch(tf.data.AUTOTUNE)")],
    ),
    "an import in the function": Snippet(
        '''\
def make():
    import tensorflow as tf

    return tf.data.Dataset.range(9).batch(2)

ds = make()
''',
        prefetched(), [("batch(2)", "batch(2).prefetch(tf.data.AUTOTUNE)")],
    ),
    "imports only for type checkers": Snippet(
        '''\
from __future__ import annotations
from typing import TYPE_CHECKING
from source import numbers

if TYPE_CHECKING:
    import tensorflow as tf

def pairs(ds: tf.data.Dataset) -> tf.data.Dataset:
    return ds.batch(2)

ds = pairs(numbers())
''',
        prefetched(), [("batch(2)", "batch(2).prefetch(-1)")],
        modules={"source.py": "import tensorflow as tf\n\ndef numbers():\n    return tf.data.Dataset.range(5)\n"},
    ),
    "a module without TensorFlow": Snippet(
        "import tensorflow as tf\nfrom steps import pairs\n\nds = pairs(tf.data.Dataset.range(9))\n",
        prefetched(),
        [("import math\n", "import math\nimport tensorflow as tf\n"),
         ("math.sqrt(4)))", "math.sqrt(4))).prefetch(tf.data.AUTOTUNE)")],
        file="steps.py", added=("import tensorflow as tf",),
        modules={"steps.py": '"""Steps."""\nimport math\n\n\ndef pairs(ds):\n    return ds.batch(int(math.sqrt(4)))\n'},
    ),
    "a package of the project": Snippet(
        "from mydata.pipeline import make\n\nds = make(9)\n",
        lambda c: [*parallel()(c), *cached()(c)],
        [(".map(double)\n", f".map(double{PARALLEL})\n        .cache()\n")],
        file="mydata/pipeline.py",
        modules={
            "mydata/__init__.py": "",
            "mydata/pipeline.py": '''\
import tensorflow as tf

from .steps import double


def make(n):
    return (
        tf.data.Dataset.range(n)
        .map(double)
    )
''',
            "mydata/steps.py": "def double(x):\n    return x * 2\n",
        },
    ),
    "a name that hides tf": Snippet(
        "import tensorflow\ntf = 3\nds = tensorflow.data.Dataset.range(9).batch(tf)\n", prefetched(),
        [("batch(tf)", "batch(tf).prefetch(tensorflow.data.AUTOTUNE)")],
    ),
    "options that are there": Snippet(
        '''\
import tensorflow as tf

options = tf.data.Options()
options.autotune.enabled = False  # debugging
ds = tf.data.Dataset.range(9).with_options(options)
''',
        option("with_options", "autotune.enabled", True), [("enabled = False", "enabled = True")],
        gone=("options.autotune.enabled = False",), added=("options.autotune.enabled = True",),
    ),
    "options that go": Snippet(
        '''\
import tensorflow as tf

def make():
    options = tf.data.Options()
    options.deterministic = True
    options.autotune.enabled = False
    return tf.data.Dataset.range(9).with_options(options)

ds = make()
''',
        option("with_options", "autotune.enabled", None), [("    options.autotune.enabled = False\n", "")],
        gone=("options.autotune.enabled = False",),
    ),
    "one more option": Snippet(
        '''\
import tensorflow as tf

def make():
    options = tf.data.Options()
    options.deterministic = True
    return tf.data.Dataset.range(9).with_options(options)

ds = make()
''',
        option("with_options", "threading.max_intra_op_parallelism", 1),
        [("Options()\n", "Options()\n    options.threading.max_intra_op_parallelism = 1\n")],
        added=("options.threading.max_intra_op_parallelism = 1",),
    ),
    "options where there are none": Snippet(
        '''\
import tensorflow as tf

def make(n):
    """Numbers."""
    return (
        tf.data.Dataset.range(n)
        .batch(2)
    )

ds = make(8)
''',
        lambda c: [SetOption(c("batch"), "threading.max_intra_op_parallelism", 1), SetOption(c("batch"), "deterministic", True)],
        [("    return (\n", "    options = tf.data.Options()\n    options.threading.max_intra_op_parallelism = 1\n"
          "    options.deterministic = True\n    return (\n"),
         (".batch(2)\n", ".batch(2)\n        .with_options(options)\n")],
        added=("options = tf.data.Options()", "options.threading.max_intra_op_parallelism = 1", "options.deterministic = True"),
    ),
    "options in an elif, the name is taken": Snippet(
        '''\
import tensorflow as tf

options = {"n": 8}
if options["n"] > 100:
    ds = None
elif (ds := tf.data.Dataset.range(options["n"]).batch(2)) is not None:
    pass
''',
        option("batch", "deterministic", True),
        [("if options[\"n\"] > 100", "options_2 = tf.data.Options()\noptions_2.deterministic = True\nif options[\"n\"] > 100"),
         ("batch(2)", "batch(2).with_options(options_2)")],
        added=("options_2 = tf.data.Options()", "options_2.deterministic = True"),
    ),
    "a cache, a prefetch and options behind one call": Snippet(
        "import tensorflow as tf\nds = tf.data.Dataset.range(9).batch(2)\n",
        lambda c: [SetOption(c("batch"), "deterministic", True), *prefetched()(c), *cached("batch")(c)],
        [("ds = tf", "options = tf.data.Options()\noptions.deterministic = True\nds = tf"),
         ("batch(2)", "batch(2).cache().prefetch(tf.data.AUTOTUNE).with_options(options)")],
        added=("options = tf.data.Options()", "options.deterministic = True"),
    ),
    "Keras' images from a folder": Snippet(
        IMAGES, lambda c: [InsertAfter(c.last(), "cache")], [("verbose=False\n)", "verbose=False\n).cache()")],
    ),
    "Keras' images, mapped": Snippet(
        IMAGES + "ds = ds.map(lambda x, y: (x / 255.0, y))\n",
        lambda c: [InsertAfter(c.last(), "prefetch", (("", AUTOTUNE),))],
        [("import keras\n", "import keras\nimport tensorflow as tf\n"),
         ("verbose=False\n)", "verbose=False\n).prefetch(tf.data.AUTOTUNE)")],
        added=("import tensorflow as tf",),
    ),
    "Keras' training and validation at once": Snippet(
        IMAGES.replace("ds =", "train, val =")
        .replace("verbose=False", 'verbose=False, validation_split=0.5, subset="both", seed=1')
        + "ds = train.map(lambda x, y: x)\n",
        lambda c: [InsertAfter(_input_of_map(c), "cache")],
        [("seed=1\n)\n", "seed=1\n)\ntrain = train.cache()\n")], added=("train = train.cache()",),
    ),
    "tfds.load": Snippet(
        '''\
import tensorflow as tf
import tensorflow_datasets as tfds

ds = tfds.load("numbers", data_dir="data/tfds", split="train")
ds = ds.map(lambda x: x["n"] * 2).batch(2)
''',
        lambda c: [InsertAfter(_input_of_map(c), "cache")], [('split="train")', 'split="train").cache()')],
    ),
    "tfds.load with info": Snippet(
        '''\
import tensorflow as tf
import tensorflow_datasets as tfds

(train, test), info = tfds.load(
    "numbers", data_dir="data/tfds", split=["train", "test"], with_info=True
)
test = test.batch(3)
train = train.map(lambda x: x["n"] * 2)
ds = train.batch(2)
''',
        lambda c: [InsertAfter(_input_of_map(c), "cache")],
        [("with_info=True\n)\n", "with_info=True\n)\ntrain = train.cache()\n")],
        added=("train = train.cache()",),
    ),
    "tfds.load of all splits": Snippet(
        '''\
import tensorflow_datasets as tfds

splits = tfds.load("numbers", data_dir="data/tfds")
ds = splits["train"].map(lambda x: x["n"] * 2)
''',
        lambda c: [InsertAfter(_input_of_map(c), "cache")], [('splits["train"].map', 'splits["train"].cache().map')],
        added=(".cache()",),
    ),
    "Keras' time series": Snippet(
        '''\
import numpy as np
import keras

ds = keras.utils.timeseries_dataset_from_array(np.arange(20.0), None, sequence_length=4, batch_size=3)
''',
        lambda c: [InsertAfter(c.last(), "cache")], [("batch_size=3)", "batch_size=3).cache()")],
    ),
}  # fmt: skip


def _input_of_map(c):
    return next(call.inputs[0] for call in reversed(c._calls) if call.method == "map" and call.library is None)
