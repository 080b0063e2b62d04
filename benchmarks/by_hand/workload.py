"""What the scripts of this folder share: input files, made once and always the same, and a small training step.

In: nothing.  Out: paths of real TFRecord, JPEG, CSV and text files below the user's cache (`$BY_HAND_DATA` names another folder).
"""

from __future__ import annotations

import atexit
import io
import os
import shutil
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import platformdirs
import tensorflow as tf
from PIL import Image

DATA = Path(os.environ.get("BY_HAND_DATA", Path(platformdirs.user_cache_dir("tfdata-advisor")) / "by_hand"))
COPIES = 3
"""How often a script reads each file in a pass. Whole runs then take some seconds at least: of runs of half a second, a quarter
was the time to trace functions, which a training spends once."""
WORDS = [f"{first}{middle}{last}" for first in "bdfgklmnprst" for middle in "aeiou" for last in "lmnrst"]


def files(name: str, count: int, make: Callable[[Path, np.random.Generator], None], suffix: str) -> list[str]:
    """Return `count` files of a folder, `COPIES` times; `make(path, generator)` writes each of them the first time."""
    folder = DATA / f"{name}-{count}"
    if not folder.is_dir():
        folder.parent.mkdir(parents=True, exist_ok=True)
        unfinished = Path(tempfile.mkdtemp(prefix=f".{name}-", dir=folder.parent))
        for number in range(count):
            make(unfinished / f"{number:05d}{suffix}", np.random.default_rng(number))
        try:
            unfinished.rename(folder)
        except OSError:  # another process was first, with the same bytes
            shutil.rmtree(unfinished)
    return sorted(str(file) for file in folder.iterdir()) * COPIES


def jpegs(count: int = 400, side: int = 320) -> list[str]:
    """JPEG files of `side` times `side` pixels: smooth noise, which compresses like a photograph."""

    def make(path: Path, generator: np.random.Generator) -> None:
        coarse = generator.integers(0, 255, [side // 8, side // 8, 3], dtype=np.uint8)
        Image.fromarray(coarse).resize([side, side], Image.Resampling.BICUBIC).save(path, quality=90)

    return files(f"jpeg{side}", count, make, ".jpg")


def jpeg_records(count: int = 4, images: int = 100, side: int = 320) -> list[str]:
    """TFRecord files of examples with the fields `image` (JPEG) and `label`."""

    def make(path: Path, generator: np.random.Generator) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for _ in range(images):
                coarse = generator.integers(0, 255, [side // 8, side // 8, 3], dtype=np.uint8)
                data = io.BytesIO()
                Image.fromarray(coarse).resize([side, side], Image.Resampling.BICUBIC).save(data, "JPEG", quality=90)
                writer.write(example(image=[data.getvalue()], label=[int(generator.integers(10))]))

    return files(f"jpeg_records{side}x{images}", count, make, ".tfrecord")


def click_records(count: int = 4, rows: int = 5_000, compression: str = "") -> list[str]:
    """TFRecord files of examples with 16 floats `numeric`, 8 strings `words` and an integer `label`."""

    def make(path: Path, generator: np.random.Generator) -> None:
        with tf.io.TFRecordWriter(str(path), tf.io.TFRecordOptions(compression_type=compression)) as writer:
            for _ in range(rows):
                words = [WORDS[index].encode() for index in generator.integers(len(WORDS), size=8)]
                numeric = generator.standard_normal(16).tolist()
                writer.write(example(numeric=numeric, words=words, label=[int(generator.integers(2))]))

    return files(f"clicks{compression}{rows}", count, make, ".tfrecord")


def history_records(count: int = 4, rows: int = 10_000) -> list[str]:
    """TFRecord files of examples with 1 to 50 integers `clicks`, as many floats `seconds`, and an integer `label`."""

    def make(path: Path, generator: np.random.Generator) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for _ in range(rows):
                size = int(generator.integers(1, 51))
                clicks, seconds = (
                    generator.integers(1, 10_000, size).tolist(),
                    generator.exponential(30.0, size).tolist(),
                )
                writer.write(example(clicks=clicks, seconds=seconds, label=[int(generator.integers(2))]))

    return files(f"histories{rows}", count, make, ".tfrecord")


def signal_records(count: int = 8, rows: int = 40) -> list[str]:
    """TFRecord files of serialised float32 tensors of 64,000 samples: four seconds of sound each."""

    def make(path: Path, generator: np.random.Generator) -> None:
        with tf.io.TFRecordWriter(str(path)) as writer:
            for _ in range(rows):
                writer.write(tf.io.serialize_tensor(generator.standard_normal(64_000).astype(np.float32)).numpy())

    return files(f"signals{rows}", count, make, ".tfrecord")


def text_files(count: int = 4, lines: int = 6_000) -> list[str]:
    """Text files: a label, a tab, and 10 to 60 words with capitals and punctuation, on each line."""

    def make(path: Path, generator: np.random.Generator) -> None:
        with path.open("w", encoding="utf-8") as file:
            for _ in range(lines):
                words = [WORDS[index] for index in generator.integers(len(WORDS), size=generator.integers(10, 60))]
                file.write(f"{generator.integers(2)}\t{' '.join(words).capitalize()}, and so on.\n")

    return files(f"text{lines}", count, make, ".txt")


def csv_files(count: int = 4, rows: int = 10_000, columns: int = 20) -> list[str]:
    """CSV files without a header: `columns` numbers and a label on each line."""

    def make(path: Path, generator: np.random.Generator) -> None:
        table = np.column_stack([generator.standard_normal([rows, columns]), generator.integers(0, 2, rows)])
        np.savetxt(path, table, fmt=["%.5f"] * columns + ["%d"], delimiter=",")

    return files(f"csv{rows}x{columns}", count, make, ".csv")


def example(**features: list[Any]) -> bytes:
    """Return a serialised `tf.train.Example`."""
    kinds = {float: ("float_list", tf.train.FloatList), int: ("int64_list", tf.train.Int64List)}
    fields = {}
    for name, values in features.items():
        kind, make = kinds.get(type(values[0]), ("bytes_list", tf.train.BytesList))
        fields[name] = tf.train.Feature(**{kind: make(value=values)})
    data: bytes = tf.train.Example(features=tf.train.Features(feature=fields)).SerializeToString()
    return data


weights = tf.Variable(tf.random.stateless_normal([256, 256], [1, 2]))


@tf.function(reduce_retracing=True)
def step(batch: Any) -> tf.Tensor:
    """Do a little training: a matrix product and one look at every number of the batch."""
    total = tf.constant(0.0)
    for part in tf.nest.flatten(batch):
        flat = part.flat_values if isinstance(part, tf.RaggedTensor) else part
        if flat.dtype != tf.string:
            total += tf.reduce_sum(tf.cast(flat, tf.float32))
    weights.assign(0.999 * weights + 1e-9 * total * tf.matmul(weights, weights))
    return total


def _write_seconds(path: str, start: float) -> None:
    Path(path).write_text(str(time.perf_counter() - start), encoding="utf-8")


if "BY_HAND_SECONDS" in os.environ:  # the time of the whole run, without Python's and TensorFlow's start
    atexit.register(_write_seconds, os.environ["BY_HAND_SECONDS"], time.perf_counter())
