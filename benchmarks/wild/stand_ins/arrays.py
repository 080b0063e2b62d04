"""Stand-in arrays in the files of `keras.datasets`, and as `.npz` files of small colour pictures."""

from __future__ import annotations

import gzip
import struct
from pathlib import Path
from typing import Any

import numpy as np

from wild.stand_ins.images import Pixels, random_of

SIDE = 28


def digits(folder: Path, train: int = 60000, test: int = 10000, form: str = "npz") -> None:
    """Grey pictures of 28 x 28 pixels with labels from 0 to 9.

    Args:
        folder: Where the files are written.
        train: Number of training pictures.
        test: Number of test pictures.
        form: `npz` as MNIST in Keras, `idx` as Fashion-MNIST in Keras.
    """
    parts = {name: grey_pictures(name, count) for name, count in (("train", train), ("test", test))}
    if form == "npz":
        (x_train, y_train), (x_test, y_test) = parts["train"], parts["test"]
        np.savez(folder / "mnist.npz", x_train=x_train, y_train=y_train, x_test=x_test, y_test=y_test)
        return
    for (pictures, labels), stem in zip(parts.values(), ("train", "t10k"), strict=True):
        write_idx(folder / f"{stem}-images-idx3-ubyte.gz", 2051, pictures)
        write_idx(folder / f"{stem}-labels-idx1-ubyte.gz", 2049, labels)


def grey_pictures(name: str, count: int) -> tuple[Pixels, Pixels]:
    """Pictures of shape (count, 28, 28) and their labels."""
    random = random_of("digits", name)
    return (
        random.integers(0, 256, (count, SIDE, SIDE), dtype=np.uint8),
        random.integers(0, 10, count, dtype=np.uint8),
    )


def write_idx(path: Path, magic: int, values: Pixels) -> None:
    """Write a file of the MNIST format."""
    header = struct.pack(f">{1 + values.ndim}I", magic, *values.shape)
    path.write_bytes(gzip.compress(header + values.tobytes(), compresslevel=1))


def small_pictures(folder: Path, train: int = 50000, test: int = 10000, side: int = 32, classes: int = 10) -> None:
    """`pictures.npz` with colour pictures and labels of shape (n, 1), the arrays of CIFAR-10 in Keras."""
    values: dict[str, Any] = {}
    for name, count in (("train", train), ("test", test)):
        random = random_of("pictures", name)
        values[f"x_{name}"] = random.integers(0, 256, (count, side, side, 3), dtype=np.uint8)
        values[f"y_{name}"] = random.integers(0, classes, (count, 1), dtype=np.uint8)
    np.savez(folder / "pictures.npz", **values)
