"""Causes that `service_sides` plants into a training that reads from a tf.data service.

In: nothing.  Out: `CAUSES`, each with its side; the script of the training, and the files that the workers read.
"""

from __future__ import annotations

import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

from advisor.model.run_hosts import CLIENT, STORAGE, TRAINER, WORKERS

KINDS = {
    "small": (64, 16, "", "os.urandom(16_384)"),
    "large": (16, 4, "", "os.urandom(1 << 20)"),
    "zipped small": (8, 500, "GZIP", "bytes(byte % 16 for byte in os.urandom(16_384))"),
    "zipped large": (8, 8, "GZIP", "os.urandom(4096) + bytes(4_000_000)"),
}
"""Kind of records -> files, records of a file, compression, and a record as an expression."""
_FAST_STEP_S = 0.002


@dataclass(frozen=True)
class Cause:
    """Something that makes one side the limit, by far."""

    name: str
    text: str
    side: str
    before: str
    """What the workers run: statements that assign `dataset`."""
    after: str = ""
    """What the trainer does with the elements: the rest of an expression."""
    step_s: float = _FAST_STEP_S
    link_bits_per_s: int = 0
    """What the link towards the trainer can carry; 0: no limit."""
    read_us: int = 0
    """How much longer each read of a file takes the workers."""
    files: str = ""
    """The kind of the records that the workers read, of `KINDS`; empty: none."""
    also: str = ""
    """Another right answer, if its sentence says that the profiles do not tell it from the planted side."""


_NUMBERS = "dataset = tf.data.Dataset.range(10**6).interleave(lambda part: tf.data.Dataset.range(1000), cycle_length=2)"
_LIGHT = f"{_NUMBERS}\ndataset = dataset.map(lambda x: tf.fill([64], x)).batch(8)"
_HEAVY = f"{_NUMBERS}\ndataset = dataset.map(heavy{{}}).batch(4)"
_WAITING = f"{_NUMBERS}\ndataset = dataset.apply(sleep(20_000)).map(lambda x: NOISE + x)"
"""Two workers send 100 elements of 256 KiB per second: 210 Mbit/s."""
_UNZIP = 'lambda file: tf.data.TFRecordDataset(file, "GZIP")'
_RECORDS = (
    "dataset = tf.data.Dataset.from_tensor_slices(files).repeat()\n"
    "dataset = dataset.interleave({}, cycle_length=2, num_parallel_calls=2)\n"
    "dataset = dataset.map(lambda record: tf.io.decode_raw(tf.strings.substr(record, 0, 4096), tf.uint8)).batch({})"
)
CAUSES = (
    Cause("slow-step", "A step takes 100 ms", TRAINER, _LIGHT, step_s=0.1),
    Cause(
        "own-map",
        "The trainer applies the heavy `map` itself, after `distribute`",
        TRAINER,
        f"{_NUMBERS}\ndataset = dataset.map(lambda x: x + 1)",
        ".map(heavy).batch(4)",
    ),
    Cause(
        "slow-link",
        "The trainer's link carries 24 Mbit/s, and a batch has 256 KiB",
        CLIENT,
        f"{_NUMBERS}\ndataset = dataset.map(lambda x: NOISE + x)",
        link_bits_per_s=24_000_000,
    ),
    Cause(
        "tight-link",
        "The link carries two thirds of what the workers could send: 140 Mbit/s",
        CLIENT,
        _WAITING,
        link_bits_per_s=140_000_000,
    ),
    Cause(
        "wide-link",
        "Each element takes a worker 20 ms, and the link carries half as much again as they send: 320 Mbit/s",
        WORKERS,
        _WAITING,
        link_bits_per_s=320_000_000,
    ),
    Cause("serial-map", "A heavy `map` on the workers", WORKERS, _HEAVY.format("")),
    Cause(
        "parallel-map",
        "The same with `num_parallel_calls=AUTOTUNE` and `prefetch`",
        WORKERS,
        _HEAVY.format(", num_parallel_calls=tf.data.AUTOTUNE") + ".prefetch(2)",
    ),
    Cause(
        "unzip-small",
        "The workers unpack compressed records of 16 KiB, which takes their CPU and little storage",
        WORKERS,
        _RECORDS.format(_UNZIP, 64),
        files="zipped small",
    ),
    Cause(
        "unzip-large",
        "The same with records of 4 MB",
        WORKERS,
        _RECORDS.format(_UNZIP, 4),
        files="zipped large",
    ),
    Cause(
        "slow-records",
        "Each read of a record file takes the workers 100 ms longer",
        STORAGE,
        _RECORDS.format("tf.data.TFRecordDataset", 4),
        read_us=100_000,
        files="small",
    ),
    Cause(
        "slow-large-records",
        "The same with 30 ms and records of 1 MiB, larger than the buffer of the reader",
        STORAGE,
        _RECORDS.format("tf.data.TFRecordDataset", 4),
        read_us=30_000,
        files="large",
        also=WORKERS,
    ),
    Cause(
        "slow-files",
        "Each read takes 30 ms longer, by `tf.io.read_file` in a `map`",
        STORAGE,
        "dataset = tf.data.Dataset.from_tensor_slices(files).repeat()\n"
        "dataset = dataset.map(lambda file: tf.io.decode_raw(tf.io.read_file(file), tf.uint8)[:4096]).batch(4)",
        read_us=30_000,
        files="small",
    ),
)
_SCRIPT = '''"""Trains on the elements of a tf.data service."""

import sys
import time
from pathlib import Path

import numpy as np
import tensorflow as tf
from tensorflow.python.data.experimental.ops.testing import sleep

data, service, profiler_port = sys.argv[1:]
files = sorted(map(str, Path(data).iterdir()))
NOISE = tf.constant(np.random.default_rng(0).integers(0, 2**62, 32768))  # cannot be compressed


def heavy(x):
    """Take about 20 ms of CPU time."""
    matrix = tf.fill((96, 96), tf.cast(x, tf.float32) / 1e6)
    return tf.foldl(lambda product, _: tf.tanh(product @ matrix), tf.range(200), matrix)


def train_step(batch):
    time.sleep({step_s})


tf.profiler.experimental.server.start(int(profiler_port))
{before}
distribute = tf.data.experimental.service.distribute("distributed_epoch", service)
dataset = dataset.apply(distribute){after}
for step, batch in enumerate(dataset):
    train_step(batch)
    if step == 10:
        print(f"ready: trainer, port {{profiler_port}}", flush=True)
'''
_WRITE_FILES = """
import os
import sys

import tensorflow as tf

for number in range({files}):
    with tf.io.TFRecordWriter(f"{{sys.argv[1]}}/{{number:03}}.tfrecord", "{compression}") as writer:
        for _ in range({records}):
            writer.write({record})
"""


def script_of(cause: Cause) -> str:
    """Return the training script; its arguments are the folder of the files, the dispatcher and the port of its profiler."""
    return _SCRIPT.format(before=cause.before, after=cause.after, step_s=cause.step_s)


def write_files(cause: Cause, folder: Path) -> None:
    """Write the files that the workers read."""
    files, records, compression, record = KINDS[cause.files]
    text = _WRITE_FILES.format(files=files, records=records, compression=compression, record=record)
    subprocess.run([sys.executable, "-c", text, str(folder)], check=True, stderr=subprocess.DEVNULL)
