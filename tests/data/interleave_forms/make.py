"""Captures the forms in this folder: each script's dataset, profiled by TensorFlow alone, without a recording.

python tests/data/interleave_forms/make.py [FORM...]
"""

import gzip
import sys
import tempfile
from pathlib import Path

import tensorflow as tf

HERE = Path(__file__).parent


def write_files(folder: Path) -> None:
    """Record and text files that the scripts read."""
    for number in range(4):
        with tf.io.TFRecordWriter(str(folder / f"part-{number}.tfrecord")) as writer:
            for record in range(2000):
                writer.write(f"{number},{record}".encode())
        (folder / f"part-{number}.txt").write_text("".join(f"{number},{line}\n" for line in range(2000)))


def capture(script: Path, data: Path) -> None:
    """Profile 8 elements of the script's `ds` after 5 others."""
    names = {"FILES": str(data)}
    exec(compile(script.read_text(), script, "exec"), names)  # noqa: S102
    iterator = iter(names["ds"])
    for _ in range(5):
        next(iterator)
    with tempfile.TemporaryDirectory() as logdir:
        options = tf.profiler.experimental.ProfilerOptions(2, 0, 0)
        tf.profiler.experimental.start(logdir, options)
        for _ in range(8):
            next(iterator)
        tf.profiler.experimental.stop()
        profile = next(Path(logdir).rglob("*.xplane.pb"))
        (HERE / f"{script.stem}.xplane.pb.gz").write_bytes(gzip.compress(profile.read_bytes(), 9, mtime=0))


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        for script in sorted(HERE.glob("*.py")):
            if script.name != Path(__file__).name and (script.stem in sys.argv[1:] or not sys.argv[1:]):
                capture(script, Path(folder))
