"""Measures the overhead of a capture: step times in the measured window compared with the same script without the advisor.

    python benchmarks/capture_overhead.py [--repeats 5] [--json FILE]

In: five kinds of scripts (a Keras `fit` on JPEG files, custom training loops, many tiny elements). Each script records the
time of every step itself, with and without the advisor.  Out: a table. For each script it shows the median over the repeats
of (median step time in the window / median step time without the advisor) with the smallest and largest value: for the whole
window, for its part without the profiler (which the report prints), and for the steps under the profiler.

Runs with and without the advisor alternate. The steps without the advisor are taken from the same part of the run (after the
warm-up), so that AUTOTUNE has had the same time to settle.
"""

from __future__ import annotations

import argparse
import itertools
import json
import os
import statistics
import subprocess
import sys
import tempfile
import textwrap
from pathlib import Path

from advisor.capture.launch import capture
from advisor.capture.request import CaptureRequest
from advisor.host.calibration.window import SETTLE_S
from advisor.host.machine import describe_host
from advisor.model.codec import decode
from advisor.model.recording import Recording

SECONDS = 12
"""Training time of each script: warm-up, window, and a margin. `TRAINING_S` in the environment replaces it."""

COMMON = f"""
import os, sys, time, json, atexit
import numpy as np
import tensorflow as tf
stamps = []
atexit.register(lambda: json.dump(stamps, open(os.environ["STAMPS"], "w")))
deadline = time.time() + 3600
def tick():
    global deadline
    stamps.append(time.time_ns())
    if len(stamps) == 2:
        deadline = time.time() + float(os.environ.get("TRAINING_S", {SECONDS}))
    return time.time() < deadline
"""

KERAS_JPEG = (
    COMMON
    + """
import keras
folder = sys.argv[1]
def decode(path, label):
    image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3)
    return tf.image.resize(image, [64, 64]) / 255.0, label
files = sorted(tf.io.gfile.glob(folder + "/*.jpg"))
ds = tf.data.Dataset.from_tensor_slices((files, np.arange(len(files)) % 5)).repeat().shuffle(64).map(decode).batch(16)
model = keras.Sequential([keras.layers.Conv2D(16, 3, 2), keras.layers.Conv2D(32, 3, 2), keras.layers.GlobalMaxPooling2D(),
                          keras.layers.Dense(5)])
model.compile("adam", keras.losses.SparseCategoricalCrossentropy(from_logits=True))
class Tick(keras.callbacks.Callback):
    def on_train_batch_begin(self, batch, logs=None):
        if not tick():
            self.model.stop_training = True
model.fit(ds, steps_per_epoch=100_000, epochs=1, verbose=0, callbacks=[Tick()])
"""
)

CUSTOM_LOOP = (
    COMMON
    + """
def records():
    example = tf.train.Example(features=tf.train.Features(feature={
        "x": tf.train.Feature(float_list=tf.train.FloatList(value=np.random.rand(2048)))})).SerializeToString()
    path = os.path.join(sys.argv[1], "data.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for _ in range(2000):
            writer.write(example)
    return path
def parse(record):
    x = tf.io.parse_single_example(record, {"x": tf.io.FixedLenFeature([2048], tf.float32)})["x"]
    return tf.nn.l2_normalize(x)
ds = tf.data.TFRecordDataset(records()).map(parse, num_parallel_calls=tf.data.AUTOTUNE).repeat().shuffle(500).batch(64)
weights = tf.Variable(tf.random.normal([2048, 256]))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.matmul(x, weights)))
    weights.assign_sub(0.1 * tape.gradient(loss, weights))
    return loss
for x in ds.prefetch(2):
    if not tick():
        break
    step(x)
"""
)

IMAGES = (
    COMMON
    + """
photos = np.random.randint(0, 255, (512, 160, 160, 3), np.uint8)
def augment(photo):
    image = tf.image.random_crop(tf.cast(photo, tf.float32), [128, 128, 3])
    image = tf.image.random_flip_left_right(image)
    return tf.image.random_contrast(tf.image.random_brightness(image, 0.2), 0.8, 1.2)
ds = tf.data.Dataset.from_tensor_slices(photos).repeat().shuffle(256).map(augment).batch(16)
kernel = tf.Variable(tf.random.normal([5, 5, 3, 8]))
@tf.function
def step(x):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.conv2d(x, kernel, 4, "SAME")))
    kernel.assign_sub(1e-6 * tape.gradient(loss, kernel))
    return loss
for x in ds:
    if not tick():
        break
    step(x)
"""
)

MODEL_BOUND = (
    COMMON
    + """
ds = tf.data.Dataset.range(10**9).map(lambda i: tf.fill((256, 256), tf.cast(i, tf.float32))).batch(4)
weights = tf.Variable(tf.random.normal([256, 256]))
@tf.function
def step(x):
    for _ in range(12):
        x = tf.matmul(x, weights) / 256.0
    return tf.reduce_sum(x)
for x in ds.prefetch(tf.data.AUTOTUNE):
    if not tick():
        break
    step(x)
"""
)

TINY_ELEMENTS = (
    COMMON
    + """
ds = tf.data.Dataset.range(10**12).map(lambda i: i * 2).filter(lambda i: i % 3 != 0).batch(256)
total = 0
for x in ds:
    if not tick():
        break
    total += int(x[0])
"""
)

SCRIPTS = {
    "keras fit, jpeg": KERAS_JPEG,
    "custom loop, images": IMAGES,
    "model-bound": MODEL_BOUND,
    "custom loop, records": CUSTOM_LOOP,
    "tiny elements": TINY_ELEMENTS,
}
"""The first three resemble training scripts; the last two produce many cheap elements per step."""


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--only", help="part of a script's name")
    parser.add_argument("--json", type=Path, help="also write the figures to this file")
    options = parser.parse_args()
    results = {}
    with tempfile.TemporaryDirectory() as folder:
        data = Path(folder)
        make_images(data)
        for name, text in SCRIPTS.items():
            if options.only and options.only not in name:
                continue
            script = data / "script.py"
            script.write_text(textwrap.dedent(text))
            rows = results[name] = [measure(script, data) for _ in range(options.repeats)]
            parts = [f"{name:22} without {statistics.median(row['without'] for row in rows) / 1e6:8.3f} ms"]
            for part in ("window", "unprofiled", "profiled"):
                ratios = [row[part] / row["without"] for row in rows]
                parts.append(f"{part} {statistics.median(ratios):.3f} ({min(ratios):.3f} to {max(ratios):.3f})")
            print("   ".join(parts), flush=True)
    host = describe_host()
    print(
        f"{host.cores:g} cores, {host.cpu_model}, {host.memory_bytes / 2**30:.0f} GiB, Python {host.python_version}, "
        f"{options.repeats} alternating repeats"
    )
    if options.json:
        options.json.write_text(json.dumps({"median_step_ns": results}, indent=1))


def measure(script: Path, data: Path) -> dict[str, float]:
    """Return the median step in ns of one run `without` the advisor, and of the `window` and its two parts in another run."""
    stamps = data / "stamps.json"
    environment = {**os.environ, "STAMPS": str(stamps), "TF_CPP_MIN_LOG_LEVEL": "2"}
    subprocess.run([sys.executable, str(script), str(data)], env=environment, check=True, capture_output=True)
    without = json.loads(stamps.read_text())
    start = without[2] + int(SETTLE_S.value * 1e9)
    os.environ["STAMPS"] = str(stamps)
    run = capture(CaptureRequest(out=data / "run", script=script, args=(str(data),)), lambda _: None)
    window = decode((run / "recording.json").read_bytes(), Recording).window
    assert window is not None and window.plain_start_ns
    watched = json.loads(stamps.read_text())
    return {
        "without": median_step(without, start, without[-1]),
        "window": median_step(watched, window.plain_start_ns, window.end_ns),
        "unprofiled": median_step(watched, window.plain_start_ns, window.plain_end_ns),
        "profiled": median_step(watched, window.start_ns, window.end_ns),
    }


def median_step(stamps: list[int], start: int, end: int) -> float:
    """Return the median time between the stamps in that part of the run."""
    inside = [stamp for stamp in stamps if start <= stamp <= end]
    return statistics.median(b - a for a, b in itertools.pairwise(inside))


def make_images(folder: Path) -> None:
    """Write a few JPEG files that are as expensive to decode as photographs (noise on a gradient, 256 x 256)."""
    import numpy as np
    from PIL import Image

    random = np.random.default_rng(0)
    gradient = np.linspace(0, 200, 256, dtype=np.float32)
    for i in range(64):
        pixels = gradient[None, :, None] + random.normal(0, 20, (256, 256, 3)) + i % 40
        Image.fromarray(pixels.clip(0, 255).astype("uint8")).save(folder / f"{i}.jpg", quality=85)


if __name__ == "__main__":
    main()
