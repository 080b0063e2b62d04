"""The files that the benchmark scripts read, made once in the cache folder of the examples.

In: the sample data of `examples/sample_data.py`.  Out: lists of paths; each function's docstring says what a record holds.
"""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import tensorflow as tf

sys.path.append(str(Path(__file__).resolve().parents[2] / "examples"))
import sample_data

PHOTOGRAPHS = 480
RAW_SIDE = 256
"""Pixels a side of a raw image: 192 KiB, so that inflating one takes about a millisecond."""


def jpeg_files() -> list[str]:
    """JPEG files, 240 to 500 pixels a side."""
    return sorted(str(file) for file in sample_data.image_folder(PHOTOGRAPHS).glob("*/*.jpg"))


def one_jpeg() -> bytes:
    """The bytes of one JPEG of middling size, for sources replaced by memory."""
    return Path(sorted(jpeg_files(), key=lambda file: Path(file).stat().st_size)[PHOTOGRAPHS // 2]).read_bytes()


def jpeg_record_files(files: int = 4) -> list[str]:
    """TFRecord files whose records are JPEGs."""

    def make(folder: Path) -> None:
        jpegs = jpeg_files()
        for index in range(files):
            with tf.io.TFRecordWriter(str(folder / f"{index:04d}.tfrecord")) as writer:
                for jpeg in jpegs[index::files]:
                    writer.write(Path(jpeg).read_bytes())

    return _paths(sample_data.make_once(sample_data.cache_folder() / f"jpeg-records-{files}", make))


def raw_record_files(compression: str = "") -> list[str]:
    """TFRecord files whose records are raw `uint8` images of (RAW_SIDE, RAW_SIDE, 3), compressed or not."""

    def make(folder: Path) -> None:
        for index in range(2):
            with tf.io.TFRecordWriter(str(folder / f"{index}.tfrecord"), compression) as writer:
                for _, jpeg in sample_data.varied_jpegs(160, seed=7 + index):
                    image = tf.image.resize(tf.io.decode_jpeg(jpeg, channels=3), (RAW_SIDE, RAW_SIDE))
                    writer.write(tf.cast(image, tf.uint8).numpy().tobytes())

    return _paths(sample_data.make_once(sample_data.cache_folder() / f"raw-records-{compression or 'plain'}", make))


def example_record_files() -> list[str]:
    """TFRecord files of `tf.train.Example` with 40 scalar float features `f00`.. and a `label`."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        for index in range(2):
            with tf.io.TFRecordWriter(str(folder / f"{index}.tfrecord")) as writer:
                for _ in range(4000):
                    values = draw.normal(size=40)
                    features = {f"f{i:02d}": _floats([value]) for i, value in enumerate(values)}
                    features["label"] = _floats([float(values.sum() > 0)])
                    writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())

    return _paths(sample_data.make_once(sample_data.cache_folder() / "example-records", make))


def small_record_files(files: int = 2000) -> list[str]:
    """Many TFRecord files of two records of 4 KiB (1024 floats) each."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        for index in range(files):
            with tf.io.TFRecordWriter(str(folder / f"{index:05d}.tfrecord")) as writer:
                for _ in range(2):
                    writer.write(draw.normal(size=1024).astype(np.float32).tobytes())

    return _paths(sample_data.make_once(sample_data.cache_folder() / f"small-records-{files}", make))


def text_files() -> list[str]:
    """Text files, each line `<label>\\t<paragraph>`."""
    return sorted(str(file) for file in sample_data.text_folder().glob("*.txt"))


def _floats(values: list[float]) -> tf.train.Feature:
    return tf.train.Feature(float_list=tf.train.FloatList(value=values))


def _paths(folder: Path) -> list[str]:
    return sorted(str(file) for file in folder.glob("*.tfrecord"))
