"""Stand-in data sets of tensorflow-datasets, prepared so that `tfds.load` reads them without a download."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from wild.stand_ins.images import Pixels, file_bytes, picture, random_of


def prepared_dataset(folder: Path, name: str, splits: Mapping[str, int], width: int = 500, height: int = 375) -> None:
    """Records, `dataset_info.json` and `features.json` of the data set `name`, with random examples.

    Args:
        folder: What `TFDS_DATA_DIR` names.
        name: Name of a data set that tensorflow-datasets knows.
        splits: Number of examples per split.
        width: Of pictures whose size the data set leaves open.
        height: Likewise.
    """
    import tensorflow_datasets as tfds

    builder = tfds.builder(name, data_dir=folder)
    Path(builder.data_dir).mkdir(parents=True, exist_ok=True)
    writer = tfds.core.SequentialWriter(
        builder.info, max_examples_per_shard=-(-max(splits.values()) // 2), overwrite=True
    )
    writer.initialize_splits(list(splits))
    for split, count in splits.items():
        writer.add_examples({split: list(examples(tfds, builder.info.features, split, count, (height, width)))})
    writer.close_all()


def examples(tfds: Any, features: Any, split: str, count: int, size: tuple[int, int]) -> Iterator[dict[str, Any]]:
    """Random examples of these features; every 24th picture is the same."""
    pictures: dict[int, Any] = {}
    for index in range(count):
        random = random_of(split, index)
        at = index % 24
        yield {
            key: value_of(tfds, feature, random, size, pictures.setdefault(at, {}), key)
            for key, feature in features.items()
        }


def value_of(
    tfds: Any, feature: Any, random: np.random.Generator, size: tuple[int, int], made: dict[str, Any], key: str
) -> Any:
    """A random value of one feature; pictures are taken from `made` if they are there."""
    kinds = tfds.features
    if isinstance(feature, kinds.Image):
        if key not in made:
            made[key] = picture_of(feature.shape, random, size)
        return made[key]
    if isinstance(feature, kinds.ClassLabel):
        return int(random.integers(0, feature.num_classes))
    if isinstance(feature, kinds.BBoxFeature):
        low, high = random.uniform(0.05, 0.3, 2), random.uniform(0.6, 0.95, 2)
        return kinds.BBox(ymin=low[0], xmin=low[1], ymax=high[0], xmax=high[1])
    if isinstance(feature, kinds.Text):
        return f"text {int(random.integers(0, 1000))}"
    return np.zeros([side or 1 for side in feature.shape], feature.np_dtype)


def picture_of(shape: Sequence[int | None], random: np.random.Generator, size: tuple[int, int]) -> bytes | Pixels:
    """A JPEG file, which such data sets store as it is, or an array where the data set fixes the size or the channels."""
    height, width = (given or default for given, default in zip(shape[:2], size, strict=True))
    image = picture(random, width, height)
    return file_bytes(image, "JPEG") if shape[0] is None and shape[2] == 3 else np.asarray(image)[:, :, : shape[2]]
