"""Other ways to call: helpers, loops, classes, lambdas, `functools.partial`, the class' own methods, aliases."""

from advisor.model.edits import InsertAfter, SetArgument
from tests.rewrite.snippets import AUTOTUNE, Snippet, cached, moved, parallel, prefetched, removed

PARALLEL = ", num_parallel_calls=tf.data.AUTOTUNE"


def all_parallel(c):
    return [SetArgument(call, "num_parallel_calls", AUTOTUNE) for call in c.all("map")]


SNIPPETS = {
    "a helper for training and validation": Snippet(
        '''\
import tensorflow as tf

def make(n, training):
    ds = tf.data.Dataset.range(n)
    ds = ds.map(lambda x: x * 2)
    return ds.batch(4)

datasets = [make(10, training=True), make(6, training=False)]
''',
        all_parallel, [("x * 2)", f"x * 2{PARALLEL})")], serves=2,
    ),
    "a helper, one of whose datasets is named": Snippet(
        '''\
import tensorflow as tf

def make(n):
    return tf.data.Dataset.range(n).map(lambda x: x * 2)

datasets = [make(10), make(6)]
''',
        lambda c: [InsertAfter(call, "cache") for call in c.all("map")], [("x * 2)", "x * 2).cache()")], serves=2,
    ),
    "a loop that makes several": Snippet(
        '''\
import tensorflow as tf

datasets = []
for split, n in {"train": 8, "test": 5, "val": 3}.items():
    datasets.append(tf.data.Dataset.range(n).map(lambda x: x + 1).batch(2))
''',
        all_parallel, [("x + 1)", f"x + 1{PARALLEL})")], serves=3,
    ),
    "a comprehension": Snippet(
        '''\
import tensorflow as tf

datasets = [tf.data.Dataset.range(n).map(lambda x: x + 1) for n in (3, 4)]
''',
        all_parallel, [("x + 1)", f"x + 1{PARALLEL})")], serves=2,
    ),
    "a function that is mapped over datasets": Snippet(
        '''\
import functools
import tensorflow as tf

steps = [lambda x: x + 1, lambda x: x * 2]
ds = functools.reduce(lambda ds, step: ds.map(step), steps, tf.data.Dataset.range(5))
''',
        all_parallel, [("ds.map(step)", f"ds.map(step{PARALLEL})")], serves=2,
    ),
    "a class": Snippet(
        '''\
import tensorflow as tf

class Pipeline:
    def __init__(self, n):
        self.n = n
        self.ds = None

    def build(self):
        self.ds = tf.data.Dataset.range(self.n)
        self.ds = self.ds.map(self._double)
        return self

    @staticmethod
    def _double(x):
        return 2 * x

ds = Pipeline(7).build().ds
''',
        cached(), [("self._double)\n", "self._double).cache()\n")],
    ),
    "a line of an attribute moved down": Snippet(
        '''\
import tensorflow as tf

class Data:
    def __init__(self):
        self.seed = 3
        self.ds = tf.data.Dataset.range(9)
        self.ds = self.ds.shuffle(9, seed=self.seed)
        self.ds = self.ds.map(lambda x: x + 1)
        self.ds = self.ds.batch(2)

ds = Data().ds
''',
        moved("shuffle", "map"),
        [("        self.ds = self.ds.shuffle(9, seed=self.seed)\n        self.ds = self.ds.map(lambda x: x + 1)\n",
          "        self.ds = self.ds.map(lambda x: x + 1)\n        self.ds = self.ds.shuffle(9, seed=self.seed)\n")],
        gone=("self.ds = self.ds.shuffle(9, seed=self.seed)",), added=("self.ds = self.ds.shuffle(9, seed=self.seed)",),
    ),
    "a line of an attribute taken out": Snippet(
        '''\
import tensorflow as tf

class Data:
    def __init__(self):
        self.ds = tf.data.Dataset.range(9)
        self.ds = self.ds.cache()
        self.ds = self.ds.batch(2)

ds = Data().ds
''',
        removed("cache"), [("        self.ds = self.ds.cache()\n", "")], gone=("self.ds = self.ds.cache()",),
    ),
    "a partial as the function": Snippet(
        '''\
import functools
import tensorflow as tf

def scale(x, by):
    return x * by

ds = tf.data.Dataset.range(7).map(functools.partial(scale, by=3))
''',
        parallel(), [("by=3))", f"by=3){PARALLEL})")],
    ),
    "a partial of the method": Snippet(
        '''\
import functools
import tensorflow as tf

fast_map = functools.partial(tf.data.Dataset.map, num_parallel_calls=2)
ds = tf.data.Dataset.range(7)
ds = fast_map(ds, lambda x: x + 5)
''',
        parallel(), [("x + 5)", f"x + 5{PARALLEL})")],
    ),
    "a link behind a partial of the method": Snippet(
        '''\
from functools import partial
import tensorflow as tf

pairs = partial(tf.data.Dataset.batch, batch_size=2, drop_remainder=True)
ds = pairs(tf.data.Dataset.range(7))
''',
        prefetched(), [("range(7))", "range(7)).prefetch(tf.data.AUTOTUNE)")],
    ),
    "a partial that is applied": Snippet(
        '''\
import functools
import tensorflow as tf

ds = tf.data.Dataset.range(7).apply(functools.partial(tf.data.Dataset.map, map_func=lambda x: x + 5))
''',
        parallel(), [("x + 5)", f"x + 5{PARALLEL})")],
    ),
    "a partial of a reader": Snippet(
        '''\
import functools
import tensorflow as tf

read = functools.partial(tf.data.TFRecordDataset, buffer_size=1000)
ds = read(["data/a.tfrecord", "data/b.tfrecord"]).batch(2)
''',
        lambda c: [SetArgument(c("TFRecordDataset"), "buffer_size", 4096)],
        [('tfrecord"])', 'tfrecord"], buffer_size=4096)')],
    ),
    "the class' own method": Snippet(
        '''\
import tensorflow as tf

ds = tf.data.Dataset.range(7)
ds = tf.data.Dataset.map(ds, lambda x: x + 5, 2)
''',
        parallel(), [("+ 5, 2)", "+ 5, tf.data.AUTOTUNE)")],
    ),
    "the class' own method taken out": Snippet(
        '''\
from tensorflow.data import Dataset

ds = Dataset.batch(Dataset.cache(Dataset.range(7)), 2)
''',
        removed("cache"), [("Dataset.cache(Dataset.range(7))", "Dataset.range(7)")], gone=("Dataset.cache",),
        added=("Dataset.range(7)",),
    ),
    "an alias of a reader": Snippet(
        '''\
from tensorflow.data import TFRecordDataset as Records

ds = Records(["data/a.tfrecord", "data/b.tfrecord"])
''',
        lambda c: [SetArgument(c("TFRecordDataset"), "num_parallel_reads", 1)],
        [('tfrecord"])', 'tfrecord"], num_parallel_reads=1)')],
    ),
    "apply with a function of the script": Snippet(
        '''\
import tensorflow as tf

def augment(ds):
    return ds.map(lambda x: x - 1)

ds = tf.data.Dataset.range(7).apply(augment)
''',
        parallel(), [("x - 1)", f"x - 1{PARALLEL})")],
    ),
    "inside the function of an interleave": Snippet(
        '''\
import tensorflow as tf

def read(file):
    return tf.data.TFRecordDataset(file).map(lambda r: tf.strings.length(r))

ds = tf.data.Dataset.from_tensor_slices(["data/a.tfrecord", "data/b.tfrecord"]).interleave(read)
''',
        parallel(), [("length(r))", f"length(r){PARALLEL})")],
    ),
    "inside a lambda": Snippet(
        '''\
import tensorflow as tf

names = tf.data.Dataset.from_tensor_slices(["data/a.tfrecord", "data/b.tfrecord"])
ds = names.flat_map(lambda f: tf.data.TFRecordDataset(f).map(tf.strings.length)).batch(2)
''',
        parallel(), [("map(tf.strings.length)", f"map(tf.strings.length{PARALLEL})")],
    ),
    "from a generator": Snippet(
        '''\
import tensorflow as tf

def rows():
    for i in range(6):
        yield {"x": float(i), "y": [i, i + 1]}

ds = tf.data.Dataset.from_generator(
    rows,
    output_signature={
        "x": tf.TensorSpec([], tf.float32),
        "y": tf.TensorSpec([2], tf.int32),
    },
).batch(4)
''',
        cached("from_generator"), [("    },\n)", "    },\n).cache()")],
    ),
    "zipped branches": Snippet(
        '''\
import tensorflow as tf

images = tf.data.Dataset.range(8).map(lambda x: x * 10)
labels = tf.data.Dataset.range(8).map(lambda x: x % 2)
ds = tf.data.Dataset.zip((images, labels)).batch(4)
''',
        parallel(index=1), [("x % 2)", f"x % 2{PARALLEL})")],
    ),
    "a walrus in a condition": Snippet(
        '''\
import tensorflow as tf

if (ds := tf.data.Dataset.range(8).batch(4)) is not None:
    pass
''',
        prefetched(), [("batch(4)", "batch(4).prefetch(tf.data.AUTOTUNE)")],
    ),
    "an argument of a call": Snippet(
        '''\
import tensorflow as tf

def identity(ds, epochs):
    return ds

ds = identity(tf.data.Dataset.range(8).batch(4), epochs=3)
''',
        prefetched(), [("batch(4)", "batch(4).prefetch(tf.data.AUTOTUNE)")],
    ),
    "a condition around a map": Snippet(
        '''\
import tensorflow as tf

augment = True
ds = tf.data.Dataset.range(8)
if augment:
    ds = ds.map(lambda x: x + 1)
ds = ds.batch(2) if augment else ds.batch(3)
''',
        lambda c: [*parallel()(c), *prefetched()(c)],
        [("x + 1)", f"x + 1{PARALLEL})"), ("batch(2)", "batch(2).prefetch(tf.data.AUTOTUNE)")],
    ),
    "a type annotation and a decorator": Snippet(
        '''\
from __future__ import annotations
import functools
import tensorflow as tf

@functools.cache
def make(n: int) -> tf.data.Dataset:
    ds: tf.data.Dataset = tf.data.Dataset.range(n).map(lambda x: x + 1)
    return ds

ds = make(5)
''',
        cached(), [("x + 1)", "x + 1).cache()")],
    ),
    "a method under another name": Snippet(
        '''\
import tensorflow as tf

class Data:
    def map(self):
        return tf.data.Dataset.range(6).map(lambda x: x + 1)

ds = Data().map()
''',
        parallel(), [("x + 1)", f"x + 1{PARALLEL})")],
    ),
}  # fmt: skip
