"""The pipelines of `offload_decisions.py`, with the truth about them.

In: nothing.  Out: `PIPELINES`, the text of a script for each, and the files that they read.

The truth is what tf.data service of TensorFlow 2.21 does with worker processes of their own: they run what the serialised graph
contains, on their part of the source, with the state of the moment at which the dataset was registered.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

MARK = "# <-"
"""At the end of the line that speaks against the move."""
FILES, RECORDS = 8, 64


@dataclass(frozen=True)
class Pipeline:
    """A pipeline and whether it can move."""

    name: str
    what: str
    """What is special about it."""
    code: str
    """Statements that end with `dataset = ...`."""
    verdict: str = "movable"
    after: str = "batch"
    """The method after which its elements leave the workers; empty if it cannot move."""
    cause: str = ""
    """The cause of the refusal or the doubt."""
    in_loop: str = "pass"
    """A statement of the training loop, once per epoch."""
    is_keras: bool = False
    """Whether `fit` trains instead of the script's own loop."""
    written: tuple[str, ...] = ()
    """Lines that the change of the script adds; `...` stands for `.apply(...distribute(...))`."""


def refused(name: str, what: str, cause: str, code: str, in_loop: str = "pass") -> Pipeline:
    """A pipeline that cannot move."""
    return Pipeline(name, what, code, "refused", "", cause, in_loop)


_WORKED = "dataset = tf.data.Dataset.range(512).map(work, num_parallel_calls=2)\n"
_FILES = 'files = tf.data.Dataset.list_files(DATA + "/*.tfrecord"{})\n'
_PARSED = "dataset = dataset.map(parse, num_parallel_calls=2).batch(32).prefetch(2)\n"

PIPELINES = (
    Pipeline("map", "a map and a batch", _WORKED + "dataset = dataset.batch(32).prefetch(2)"),
    Pipeline(
        "endless", "shuffled and repeated", _WORKED + "dataset = dataset.shuffle(64).repeat().batch(32).prefetch(2)"
    ),
    Pipeline(
        "records",
        "record files read in parallel",
        _FILES.format("") + "dataset = files.interleave(tf.data.TFRecordDataset, num_parallel_calls=2)\n" + _PARSED,
    ),
    Pipeline(
        "records in turn",
        "shuffled files in a sequential interleave: becomes parallel",
        _FILES.format("") + "dataset = files.interleave(tf.data.TFRecordDataset)\n" + _PARSED,
    ),
    Pipeline(
        "take before batch",
        "a `take` of whole batches: moves after the batch",
        _WORKED + "dataset = dataset.take(320).batch(32).prefetch(2)",
    ),
    Pipeline(
        "take at the end",
        "a `take` after the batch: stays",
        _WORKED + "dataset = dataset.batch(32).take(10).prefetch(2)",
    ),
    Pipeline(
        "filter", "drops elements", _WORKED + "dataset = dataset.filter(lambda x: x < 400.0).batch(32).prefetch(2)"
    ),
    Pipeline("rows", "batches taken apart", _WORKED + "dataset = dataset.batch(8).unbatch().batch(32).prefetch(2)"),
    Pipeline(
        "noise",
        "unseeded random numbers",
        _WORKED
        + "dataset = dataset.map(lambda x: x + tf.random.normal([]), num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    Pipeline(
        "words",
        "a static look-up table",
        "keys = tf.constant([str(n) for n in range(10)])\n"
        "table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.range(10.0)), -1.0)\n"
        "dataset = tf.data.Dataset.range(512).map(work, num_parallel_calls=2)\n"
        "dataset = dataset.map(lambda x: table.lookup(tf.strings.as_string(tf.cast(x % 10.0, tf.int32)))).batch(32).prefetch(2)",
    ),
    Pipeline(
        "scale",
        "a variable that stays the same",
        "scale = tf.Variable(3.0)\n"
        "dataset = tf.data.Dataset.range(512).map(lambda x: work(x) * scale, num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    Pipeline("cache", "a cache in memory", _WORKED + "dataset = dataset.cache().shuffle(64).batch(32).prefetch(2)"),
    Pipeline(
        "whole batches",
        "drop_remainder on endless data",
        _WORKED + "dataset = dataset.repeat().batch(32, drop_remainder=True).prefetch(2)",
    ),
    Pipeline(
        "last batch dropped",
        "drop_remainder in every pass: the batch stays, and the elements travel in others",
        _WORKED + "dataset = dataset.batch(48, drop_remainder=True).prefetch(2)",
        after="map",
        written=(".batch(48)....unbatch()",),
    ),
    Pipeline(
        "whole passes",
        "drop_remainder in passes of whole batches, repeated: `repeat` moves before the batch",
        _WORKED + "dataset = dataset.batch(32, drop_remainder=True).repeat().prefetch(2)",
        written=(".repeat()", ".batch(32, drop_remainder=True)....prefetch(2)"),
    ),
    Pipeline(
        "repeat behind Python",
        "a py_function after the work: it stays, and `repeat` moves before `distribute`",
        _WORKED + "dataset = dataset.map(lambda x: tf.ensure_shape(tf.py_function(lambda y: y, [x], tf.float32), []))\n"
        "dataset = dataset.batch(32).repeat().prefetch(2)",
        after="map",
        written=(".repeat().batch(32)....unbatch()", "dataset = dataset.batch(32).prefetch(2)"),
    ),
    Pipeline(
        "steps per epoch",
        "several epochs of Keras over finite data: repeated, with `steps_per_epoch`",
        "dataset = tf.data.Dataset.range(512).map(lambda x: (work(x)[None], 0.0), num_parallel_calls=2)\n"
        "dataset = dataset.batch(32).prefetch(2)",
        is_keras=True,
        written=(".repeat()", ".batch(32)....prefetch(2)", "steps_per_epoch=16)"),
    ),
    Pipeline(
        "lengths",
        "padded batches",
        "dataset = tf.data.Dataset.range(512).map(lambda x: tf.fill([x % 5 + 1], work(x)), num_parallel_calls=2)\n"
        "dataset = dataset.padded_batch(32).prefetch(2)",
        after="padded_batch",
    ),
    Pipeline(
        "print",
        "prints to the log",
        "def printed(x):\n    tf.print(x, output_stream='file:///dev/null')\n    return work(x)\n"
        "dataset = tf.data.Dataset.range(512).map(printed, num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    refused(
        "Python",
        "a py_function",
        "python",
        "dataset = tf.data.Dataset.range(512)\n"
        f"dataset = dataset.map(lambda x: tf.py_function(lambda y: work(y), [x], tf.float32))  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "Python inside",
        "a numpy_function inside an interleave",
        "python",
        "def slow(y):\n    return np.float32(np.sort(np.arange(20000.0) * -y)[0])\n"
        "def part(x):\n    return tf.data.Dataset.range(8).map(lambda y: tf.numpy_function(slow, [y], tf.float32))\n"
        f"dataset = tf.data.Dataset.range(64).interleave(part)  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "generator",
        "a Python generator",
        "python",
        "def numbers():\n    for number in range(512):\n        yield np.float32(np.sort(np.arange(20000.0) * -number)[0])\n"
        f"dataset = tf.data.Dataset.from_generator(numbers, output_signature=tf.TensorSpec((), tf.float32))  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "seeded op",
        "a random op with a seed",
        "seeded random numbers",
        f"dataset = tf.data.Dataset.range(512).map(lambda x: work(x) + tf.random.uniform([], seed=7))  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "generator of numbers",
        "random numbers from a tf.random.Generator without a seed",
        "seeded random numbers",
        "noise = tf.random.Generator.from_non_deterministic_state()\n"
        f"dataset = tf.data.Dataset.range(512).map(lambda x: work(x) + noise.normal([]))  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "counting table",
        "a mutable table",
        "state",
        "table = tf.lookup.experimental.MutableHashTable(tf.int64, tf.float32, 0.0)\n"
        f"dataset = tf.data.Dataset.range(512).map(lambda x: work(x) + table.lookup(x))  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "curriculum",
        "a variable that training changes",
        "state",
        "level = tf.Variable(1.0)\n"
        f"dataset = tf.data.Dataset.range(512).map(lambda x: work(x) * level)  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
        in_loop="level.assign_add(1.0)",
    ),
    refused(
        "skip",
        "skips elements before the work",
        "counts per worker",
        f"dataset = tf.data.Dataset.range(512).skip(100)  {MARK}\n"
        "dataset = dataset.map(work, num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    refused(
        "shard",
        "takes every second element",
        "counts per worker",
        f"dataset = tf.data.Dataset.range(512).shard(2, 0)  {MARK}\n"
        "dataset = dataset.map(work, num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    refused(
        "numbered",
        "numbers the elements before the work",
        "counts per worker",
        f"dataset = tf.data.Dataset.range(512).enumerate()  {MARK}\n"
        "dataset = dataset.map(lambda i, x: (i, work(x)), num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    refused(
        "windows",
        "windows of neighbouring elements before the work",
        "counts per worker",
        "dataset = tf.data.Dataset.range(512)\n"
        f"dataset = dataset.window(8, drop_remainder=True)  {MARK}\n"
        "dataset = dataset.flat_map(lambda rows: rows.batch(8))\n"
        "dataset = dataset.map(lambda rows: work(rows[0]), num_parallel_calls=2).batch(32).prefetch(2)",
    ),
    refused(
        "asserted",
        "an asserted number of elements",
        "counts per worker",
        "dataset = tf.data.Dataset.range(600).filter(lambda x: x < 512)\n"
        f"dataset = dataset.apply(tf.data.experimental.assert_cardinality(512))  {MARK}\n"
        "dataset = dataset.map(work, num_parallel_calls=2)\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "cache file",
        "a cache on disk",
        "files",
        _WORKED
        + f'dataset = dataset.cache(OUT + "/cache")  {MARK}\ndataset = dataset.map(work, num_parallel_calls=2)\n'
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "file per element",
        "writes a file for each element",
        "files",
        "def written(x):\n    tf.io.write_file(OUT + '/last', tf.strings.as_string(x))\n    return work(x)\n"
        f"dataset = tf.data.Dataset.range(512).map(written)  {MARK}\n"
        "dataset = dataset.batch(32).prefetch(2)",
    ),
    refused(
        "split",
        "the same elements, split into training and validation",
        "counts per worker",
        "both = tf.data.Dataset.range(512).map(work, num_parallel_calls=2)\n"
        "both = both.batch(16)\n"
        f"validation, dataset = both.take(4), both.skip(4).prefetch(2)  {MARK}",
        in_loop="sum(1 for _ in validation)",
    ),
    Pipeline(
        "own file",
        "a file that the script writes",
        'Path(OUT, "rows.txt").write_text("".join(f"{number}\\n" for number in range(512)))\n'
        f'dataset = tf.data.TextLineDataset(OUT + "/rows.txt")  {MARK}\n'
        "dataset = dataset.map(lambda x: work(tf.strings.to_number(x)), num_parallel_calls=2).batch(32).prefetch(2)",
        "undecided",
        "batch",
        "files",
    ),
)

_HEAD = '''"""A pipeline of benchmarks/offload_pipelines.py."""

from pathlib import Path
import tempfile

import keras
import numpy as np
import tensorflow as tf

DATA = {data!r}
OUT = tempfile.mkdtemp()


@tf.function
def work(x):
    """Some 2 ms of computation."""
    x = tf.cast(x, tf.float32)
    return x + 0.0 * tf.reduce_min(tf.sort(tf.range(30000.0) * -x))


def parse(record):
    return work(tf.strings.to_number(record))


'''
_LOOP = """

@tf.function(reduce_retracing=True)
def step(batch):
    return tf.reduce_sum(tf.cast(tf.nest.flatten(batch)[-1], tf.float32))


for epoch in range(1000):
    for batch in dataset:
        step(batch)
    {in_loop}
"""


_FIT = """

model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(dataset, epochs=1000, verbose=0)
"""


def script_of(pipeline: Pipeline, data: Path) -> str:
    """Return the script that trains with a pipeline."""
    training = _FIT if pipeline.is_keras else _LOOP.format(in_loop=pipeline.in_loop)
    return _HEAD.format(data=str(data)) + pipeline.code + "\n" + training


def make_data(folder: Path) -> None:
    """Write the record files."""
    import tensorflow as tf

    folder.mkdir()
    for file in range(FILES):
        with tf.io.TFRecordWriter(str(folder / f"{file}.tfrecord")) as writer:
            for record in range(RECORDS):
                writer.write(str(file * RECORDS + record).encode())
