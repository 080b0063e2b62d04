"""Stand-in images: folders of JPEG or PNG files, captchas, segmentation masks, pairs side by side."""

from __future__ import annotations

import io
import string
import zlib
from collections.abc import Sequence
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from PIL import Image, ImageDraw, ImageFont

Pixels = NDArray[np.uint8]
FORMATS = {"jpg": "JPEG", "png": "PNG"}


def random_of(*names: object) -> np.random.Generator:
    """The generator of random numbers that belongs to these names, the same in every run."""
    return np.random.default_rng(zlib.crc32("/".join(map(str, names)).encode()))


def picture(random: np.random.Generator, width: int, height: int) -> Image.Image:
    """A picture with shapes and grain, whose JPEG is about as large as a photograph's."""
    coarse = random.integers(0, 256, (max(2, height // 40), max(2, width // 40), 3), dtype=np.uint8)
    smooth = np.asarray(Image.fromarray(coarse).resize((width, height), Image.Resampling.BICUBIC), dtype=np.int16)
    grain = random.integers(-12, 13, (height, width, 1), dtype=np.int16)
    return Image.fromarray(np.clip(smooth + grain, 0, 255).astype(np.uint8))


def file_bytes(image: Image.Image, form: str) -> bytes:
    """The picture as a file of this format."""
    buffer = io.BytesIO()
    image.save(buffer, form)
    return buffer.getvalue()


def picture_folders(
    folder: Path,
    classes: Sequence[str],
    count: int,
    width: int,
    height: int,
    suffix: str = "jpg",
    stem: str = "{index:05}",
    distinct: int = 24,
) -> None:
    """One folder per class (`.`: the folder itself) with `count` files; every `distinct`-th picture is the same."""
    for name in classes:
        place = folder / name
        place.mkdir(parents=True, exist_ok=True)
        made: list[bytes] = []
        for index in range(count):
            target = place / f"{stem.format(index=index)}.{suffix}"
            if index < distinct:
                made.append(file_bytes(picture(random_of(name, index), width, height), FORMATS[suffix]))
            target.write_bytes(made[index % distinct])


def captchas(folder: Path, count: int, width: int = 200, height: int = 50, length: int = 5) -> None:
    """PNG files of distorted characters; the file name is the text."""
    letters = string.digits[2:9] + "bcdefgmnpwxy"
    for index in range(count):
        random = random_of("captcha", index)
        text = "".join(random.choice(list(letters), length))
        image = Image.new("RGB", (width, height), (230, 230, 230))
        draw = ImageDraw.Draw(image)
        for position, letter in enumerate(text):
            at = (
                10 + position * (width - 20) // length + int(random.integers(0, 6)),
                int(random.integers(2, height // 3)),
            )
            draw.text(at, letter, fill=(20, 20, 20), font=ImageFont.load_default(size=height // 2))
        for _ in range(4):
            draw.line(
                [tuple(random.integers(0, (width, height)).tolist()) for _ in range(2)], fill=(90, 90, 90), width=2
            )
        image.save(folder / f"{text}.png")


def masks(
    folder: Path, count: int, width: int, height: int, first: int = 1, last: int = 3, stem: str = "{index:05}"
) -> None:
    """Grey PNG files whose pixels are the numbers of classes from `first` to `last`, in blocks."""
    for index in range(count):
        blocks = random_of("mask", index).integers(first, last + 1, (height // 40 + 1, width // 40 + 1), dtype=np.uint8)
        image = Image.fromarray(blocks).resize((width, height), Image.Resampling.NEAREST)
        image.save(folder / f"{stem.format(index=index)}.png")


def facades(folder: Path, count: int, side: int = 256) -> None:
    """JPEG files that hold two pictures side by side, a photograph and its labels."""
    for index in range(count):
        both = Image.new("RGB", (2 * side, side))
        for half in range(2):
            both.paste(picture(random_of("facade", half, index % 24), side, side), (half * side, 0))
        both.save(folder / f"{index + 1}.jpg")
