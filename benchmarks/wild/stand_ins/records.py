"""Stand-in TFRecord files of pictures. Needs TensorFlow, which is imported where it is used."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from wild.stand_ins.images import file_bytes, picture, random_of


def write_records(path: Path, examples: Sequence[dict[str, Any]]) -> None:
    """Write examples; a value is a list of bytes, of int or of float."""
    import tensorflow as tf

    kinds = {
        bytes: lambda values: tf.train.Feature(bytes_list=tf.train.BytesList(value=values)),
        int: lambda values: tf.train.Feature(int64_list=tf.train.Int64List(value=values)),
        float: lambda values: tf.train.Feature(float_list=tf.train.FloatList(value=values)),
    }
    with tf.io.TFRecordWriter(str(path)) as writer:
        for example in examples:
            features = {name: kinds[type(values[0])](values) for name, values in example.items()}
            writer.write(tf.train.Example(features=tf.train.Features(feature=features)).SerializeToString())


def boxed_pictures(
    folder: Path, count: int, classes: Sequence[str], files: int = 1, width: int = 500, height: int = 375
) -> None:
    """Records of Pascal VOC: a JPEG, its boxes with the names of their classes; `classes.txt` lists these."""
    (folder / "classes.txt").write_text("\n".join(classes) + "\n", encoding="utf-8")
    jpegs = [file_bytes(picture(random_of("boxed", index), width, height), "JPEG") for index in range(min(count, 24))]
    for number in range(files):
        examples = []
        for index in range(number, count, files):
            random = random_of("boxes", index)
            boxes = random.uniform(0.05, 0.45, (int(random.integers(1, 6)), 4))
            low, high = boxes[:, :2], boxes[:, :2] + boxes[:, 2:] + 0.05
            names = [classes[int(random.integers(0, len(classes)))].encode() for _ in boxes]
            examples.append(
                {
                    "image/encoded": [jpegs[index % len(jpegs)]],
                    "image/object/bbox/xmin": low[:, 0].tolist(),
                    "image/object/bbox/ymin": low[:, 1].tolist(),
                    "image/object/bbox/xmax": high[:, 0].tolist(),
                    "image/object/bbox/ymax": high[:, 1].tolist(),
                    "image/object/class/text": names,
                }
            )
        write_records(folder / f"stand_in-{number}.tfrecord", examples)


def picture_pairs(folder: Path, count: int, side: int = 480, scale: int = 4, name: str = "pairs.tfrecord") -> None:
    """Records of super-resolution: a PNG and the same smaller by `scale`."""
    examples = []
    for index in range(count):
        image = picture(random_of("pair", index % 16), side, side)
        small = image.resize((side // scale, side // scale))
        examples.append(
            {
                "image/img_name": [f"{index:06}".encode()],
                "image/hr_encoded": [file_bytes(image, "PNG")],
                "image/lr_encoded": [file_bytes(small, "PNG")],
            }
        )
    write_records(folder / name, examples)
