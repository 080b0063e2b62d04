"""Real input for the examples and the benchmarks, created once and offline from data in Python packages.

In: the photographs in the wheels of scikit-image and scikit-learn, and the source text of Python's standard library.
Out: a folder below the user's cache (`platformdirs`, `tfdata-advisor/examples`) or below `data_dir`: varied JPEGs in a folder
per class, text files with one labelled paragraph a line, or files and TFRecord files of raw images.

A folder is written under another name and moved into place when it is complete, so interrupted and simultaneous runs
are harmless. The same arguments always create the same bytes.
"""

from __future__ import annotations

import importlib.util
import io
import os
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from PIL import Image

PHOTOGRAPHS = {
    "astronaut": ("skimage", "data/astronaut.png"),
    "cat": ("skimage", "data/chelsea.png"),
    "coffee": ("skimage", "data/coffee.png"),
    "galaxies": ("skimage", "data/hubble_deep_field.jpg"),
    "retina": ("skimage", "data/retina.jpg"),
    "rocket": ("skimage", "data/rocket.jpg"),
    "palace": ("sklearn", "datasets/images/china.jpg"),
    "flower": ("sklearn", "datasets/images/flower.jpg"),
}
"""Class name -> (package, file in it). All colour, all in the wheels: none is downloaded on first use."""

CLASS_NAMES = tuple(sorted(PHOTOGRAPHS))

SHORTEST_SIDE, LONGEST_SIDE = 240, 500
"""Pixels: the range of most photographs of tf_flowers and of image folders collected from the web."""

JPEG_QUALITY = 90

SMALLEST_PARAGRAPH, LARGEST_PARAGRAPH = 40, 2000
"""Characters: what is shorter says little, what is longer is a table."""


def cache_folder(data_dir: str | os.PathLike[str] | None = None) -> Path:
    """The folder under which everything is made: `data_dir` where given, else the user's cache."""
    if data_dir is not None:
        return Path(data_dir).expanduser().resolve()
    import platformdirs

    return Path(platformdirs.user_cache_dir("tfdata-advisor")) / "examples"


def make_once(folder: Path, make: Callable[[Path], None]) -> Path:
    """Call `make(empty folder)` unless `folder` is already there, and put the result in its place. Returns `folder`."""
    if folder.is_dir():
        return folder
    folder.parent.mkdir(parents=True, exist_ok=True)
    unfinished = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        make(unfinished)
        unfinished.chmod(0o755)
        try:
            unfinished.rename(folder)
        except OSError:
            if not folder.is_dir():  # else another run was first, with the same bytes
                raise
    finally:
        shutil.rmtree(unfinished, ignore_errors=True)
    return folder


def show_progress(what: str, done: int, total: int) -> None:
    """Keep one line on stderr up to date; on a pipe, write only the first and the last state."""
    is_first_or_last = done in (0, total)
    if not (sys.stderr.isatty() or is_first_or_last):
        return
    end = "\n" if done == total or not sys.stderr.isatty() else ""
    print(f"\r{what}: {done}/{total}", end=end, file=sys.stderr, flush=True)


def read_photograph(class_name: str) -> Image.Image:
    """One of the shipped photographs in RGB. ImportError (one sentence) if its package is missing."""
    package, file = PHOTOGRAPHS[class_name]
    spec = importlib.util.find_spec(package)
    if spec is None or not spec.submodule_search_locations:
        raise ImportError(f"The examples need {package}'s sample images: pip install 'tfdata-advisor[examples]'")
    return Image.open(Path(spec.submodule_search_locations[0]) / file).convert("RGB")


def vary(photograph: Image.Image, draw: np.random.Generator) -> bytes:
    """A JPEG of a random part of the photograph, at random scale, mirrored or not, at random brightness."""
    width, height = (int(side) for side in draw.integers(SHORTEST_SIDE, LONGEST_SIDE + 1, size=2))
    part_width, part_height = (int(side * draw.uniform(0.5, 1.0)) for side in photograph.size)
    left = int(draw.integers(0, photograph.width - part_width + 1))
    top = int(draw.integers(0, photograph.height - part_height + 1))
    # The box is resized in one pass, so that the sensor noise that makes real photographs costly to decode stays in.
    part = photograph.resize((width, height), box=(left, top, left + part_width, top + part_height))
    if draw.random() < 0.5:
        part = part.transpose(Image.Transpose.FLIP_LEFT_RIGHT)
    brightness = draw.uniform(0.7, 1.3)
    part = part.point(lambda value: min(255, int(value * brightness)))
    encoded = io.BytesIO()
    part.save(encoded, "JPEG", quality=JPEG_QUALITY)
    return encoded.getvalue()


def varied_jpegs(count: int, seed: int = 0) -> Iterator[tuple[str, bytes]]:
    """`count` pairs (class name, JPEG), the classes in turn. Each JPEG depends on `seed` and its index alone."""
    photographs = {name: read_photograph(name) for name in CLASS_NAMES}
    for index in range(count):
        class_name = CLASS_NAMES[index % len(CLASS_NAMES)]
        yield class_name, vary(photographs[class_name], np.random.default_rng((seed, index)))


def image_folder(count: int = 2000, data_dir: str | os.PathLike[str] | None = None, seed: int = 0) -> Path:
    """A folder of `<class>/<index>.jpg` with `count` files."""

    def make(folder: Path) -> None:
        for class_name in CLASS_NAMES:
            (folder / class_name).mkdir()
        for index, (class_name, jpeg) in enumerate(varied_jpegs(count, seed)):
            if index % 100 == 0:
                show_progress("making JPEG files", index, count)
            (folder / class_name / f"{index:05d}.jpg").write_bytes(jpeg)
        show_progress("making JPEG files", count, count)

    return make_once(cache_folder(data_dir) / f"images-{count}-{seed}", make)


def raw_image_records(
    files: int, images: int, side: int, compression: str = "", data_dir: str | os.PathLike[str] | None = None
) -> list[str]:
    """`files` TFRecord files of `images` square images each: uint8, three channels, `side` pixels wide, not encoded.

    Their values are random below 64, so that GZIP has something to do and something to gain.
    """

    def make(folder: Path) -> None:
        import tensorflow as tf

        draw = np.random.default_rng(0)
        for number in range(files):
            with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord"), compression) as writer:
                for _ in range(images):
                    writer.write(draw.integers(0, 64, side * side * 3).astype(np.uint8).tobytes())

    folder = (
        cache_folder(data_dir) / f"raw-images-{files}x{images}-{side}{f'-{compression.lower()}' if compression else ''}"
    )
    return sorted(str(file) for file in make_once(folder, make).glob("*.tfrecord"))


def raw_image_files(count: int, side: int, data_dir: str | os.PathLike[str] | None = None) -> list[str]:
    """`count` files of one square image each: uint8, three channels, `side` pixels wide, not encoded."""

    def make(folder: Path) -> None:
        draw = np.random.default_rng(0)
        for number in range(count):
            (folder / f"{number:04d}.raw").write_bytes(
                draw.integers(0, 256, side * side * 3).astype(np.uint8).tobytes()
            )

    folder = make_once(cache_folder(data_dir) / f"raw-files-{count}-{side}", make)
    return sorted(str(file) for file in folder.glob("*.raw"))


def paragraphs() -> Iterator[tuple[int, str]]:
    """(label, text) of the standard library's paragraphs: 1 where the text is code, 0 where it is a comment or prose."""
    library = Path(sysconfig.get_paths()["stdlib"])
    for file in sorted(library.rglob("*.py")):
        if "site-packages" in file.parts or "test" in file.parts or "tests" in file.parts:
            continue
        for paragraph in re.split(r"\n\s*\n", file.read_text(encoding="utf-8", errors="ignore")):
            text = " ".join(paragraph.split())
            if SMALLEST_PARAGRAPH <= len(text) <= LARGEST_PARAGRAPH:
                yield int(re.search(r"\w\(.*\)|\w = \w|return |import ", text) is not None), text


def text_folder(files: int = 8, data_dir: str | os.PathLike[str] | None = None) -> Path:
    """A folder of `part-<n>.txt`, some MB in all, each line `<label>\\t<paragraph>`."""

    def make(folder: Path) -> None:
        show_progress("making text files", 0, files)
        lines = [f"{label}\t{text}\n" for label, text in paragraphs()]
        np.random.default_rng(0).shuffle(lines)
        for part in range(files):
            (folder / f"part-{part}.txt").write_text("".join(lines[part::files]), encoding="utf-8")
        show_progress("making text files", files, files)

    return make_once(cache_folder(data_dir) / f"text-{files}", make)
