"""Datasets of every kind that a script may build, small; each is a function of TensorFlow and an empty folder."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any


def chain(tf: Any, folder: Path) -> Any:
    return tf.data.Dataset.range(30).map(lambda x: x * 2).filter(lambda x: x % 3 == 0).shuffle(9).batch(4).repeat(2)


def generator(tf: Any, folder: Path) -> Any:
    def rows() -> Any:
        for i in range(12):
            yield {"x": [float(i)] * (i % 3), "y": i}

    signature = {"x": tf.TensorSpec((None,), tf.float32), "y": tf.TensorSpec((), tf.int64)}
    dataset = tf.data.Dataset.from_generator(rows, output_signature=signature)
    return dataset.map(lambda row: (row["x"] + 1, row["y"])).padded_batch(4, ((None,), ()))


def lookup_table(tf: Any, folder: Path) -> Any:
    keys = tf.constant(["a", "b", "c"])
    table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer(keys, tf.constant([1, 2, 3])), 0)
    return tf.data.Dataset.from_tensor_slices(["a", "c", "x", "b"] * 3).map(table.lookup).batch(5)


def variable(tf: Any, folder: Path) -> Any:
    scale = tf.Variable(3, dtype=tf.int64)
    return tf.data.Dataset.range(9).map(lambda x: x * scale).batch(2)


def interleave(tf: Any, folder: Path) -> Any:
    for name in "ab":
        (folder / f"{name}.txt").write_text("\n".join(f"{name}{i}" for i in range(5)))
    files = tf.data.Dataset.list_files(str(folder / "*.txt"), shuffle=False)
    return files.interleave(
        lambda file: tf.data.TextLineDataset(file).map(tf.strings.upper).filter(lambda text: text != b"A3"),
        cycle_length=2,
    ).batch(3)


def deeper(tf: Any, folder: Path) -> Any:
    def inner(i: Any) -> Any:
        return tf.data.Dataset.range(i).flat_map(lambda j: tf.data.Dataset.range(j).map(lambda k: k + i))

    return tf.data.Dataset.range(5).flat_map(inner)


def branches(tf: Any, folder: Path) -> Any:
    images = tf.data.Dataset.range(20).map(lambda x: x + 1)
    labels = tf.data.Dataset.range(20).map(lambda x: -x)
    both = tf.data.Dataset.zip({"image": images, "label": labels})
    return both.concatenate(both.take(3)).enumerate()


def sampled(tf: Any, folder: Path) -> Any:
    sides = [tf.data.Dataset.range(10 * i, 10 * i + 10).map(lambda x: x * 1) for i in range(3)]
    return tf.data.Dataset.sample_from_datasets(sides, weights=[0.5, 0.2, 0.3], seed=4).batch(4)


def chosen(tf: Any, folder: Path) -> Any:
    sides = [tf.data.Dataset.range(100 * i, 100 * i + 5).repeat() for i in range(3)]
    return tf.data.Dataset.choose_from_datasets(sides, tf.data.Dataset.range(3).repeat(4)).map(lambda x: x + 1)


def options(tf: Any, folder: Path) -> Any:
    options = tf.data.Options()
    options.autotune.enabled = False
    options.threading.private_threadpool_size = 2
    return tf.data.Dataset.range(10).map(lambda x: x + 1).with_options(options).batch(3)


def kinds_of_tensors(tf: Any, folder: Path) -> Any:
    ragged = tf.ragged.constant([[1, 2], [], [3]])
    sparse = tf.sparse.from_dense([[0, 1], [2, 0], [0, 0]])
    return tf.data.Dataset.from_tensor_slices({"r": ragged, "s": sparse, "t": ["a", "b", ""]}).map(
        lambda row: (row["r"], row["s"], row["t"])
    )


def windows(tf: Any, folder: Path) -> Any:
    return tf.data.Dataset.range(10).map(lambda x: x * 3).window(4, shift=2)


def grouped(tf: Any, folder: Path) -> Any:
    dataset = tf.data.Dataset.range(20).map(lambda x: tf.range(x % 5))
    return dataset.bucket_by_sequence_length(lambda x: tf.size(x), [2, 4], [3, 3, 3])


def applied(tf: Any, folder: Path) -> Any:
    return tf.data.Dataset.range(10).apply(lambda dataset: dataset.map(lambda x: x + 5).batch(2)).unbatch()


def csv(tf: Any, folder: Path) -> Any:
    (folder / "rows.csv").write_text("a,b\n" + "".join(f"{i},{i / 2}\n" for i in range(10)))
    return tf.data.experimental.make_csv_dataset(str(folder / "rows.csv"), 3, num_epochs=1, shuffle=False)


def keras_images(tf: Any, folder: Path) -> Any:
    import keras

    for label in ("cat", "dog"):
        (folder / label).mkdir()
        for i in range(4):
            pixels = tf.cast(tf.fill([8, 8, 3], i * 20 + len(label)), tf.uint8)
            tf.io.write_file(str(folder / label / f"{i}.png"), tf.io.encode_png(pixels))
    dataset = keras.utils.image_dataset_from_directory(folder, image_size=(6, 6), batch_size=3, seed=1, verbose=False)
    return dataset.map(lambda images, labels: (images / 255.0, labels))


def keras_series(tf: Any, folder: Path) -> Any:
    import keras
    import numpy as np

    return keras.utils.timeseries_dataset_from_array(
        np.arange(40.0), np.arange(40.0), 5, batch_size=4, seed=2, shuffle=True
    )


def numpy_function(tf: Any, folder: Path) -> Any:
    return tf.data.Dataset.range(8).map(lambda x: tf.numpy_function(lambda v: v * v, [x], tf.int64)).prefetch(2)


def random_map(tf: Any, folder: Path) -> Any:
    return tf.data.Dataset.range(20).map(lambda x: tf.cast(x, tf.float32) + tf.random.uniform([3])).batch(4)


def scanned(tf: Any, folder: Path) -> Any:
    return (
        tf.data.Dataset.range(8)
        .scan(tf.constant(0, tf.int64), lambda total, x: (total + x, total))
        .take_while(lambda x: x < 9)
    )


KINDS: list[Callable[[Any, Path], Any]] = [
    chain, generator, lookup_table, variable, interleave, deeper, branches, sampled, chosen, options, kinds_of_tensors,
    windows, grouped, applied, csv, keras_images, keras_series, numpy_function, random_map, scanned,
]  # fmt: skip
