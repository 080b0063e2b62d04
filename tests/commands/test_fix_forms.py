"""`advisor fix --write` and `--undo` on a slow script for each form of change to a function, to what surrounds it, or to a cache.

`rebuilt-every-epoch` has a file of its own (`test_fix_build_once.py`).
"""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from tests.commands.test_fix import fix, leftovers
from tests.in_one_line import in_one_line

pytestmark = [pytest.mark.slow, pytest.mark.timed, pytest.mark.tensorflow]

PARTS = """\
SIDE = 28
records = [bytes(row) for row in np.random.default_rng(1).integers(0, 256, (4096, SIDE * SIDE), np.uint8)]


def decode(record):
    pixels = tf.reshape(tf.io.decode_raw(record, tf.uint8), [SIDE, SIDE])
    image = tf.cast(pixels, tf.int32)
    image -= tf.reduce_min(image)
    return tf.cast(tf.cumsum(image), tf.float32) / 16.0


dataset = tf.data.Dataset.from_tensor_slices(records)
dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(256)
"""
RAGGED = """\
random = np.random.default_rng(1)
words = [f"word{number}" for number in range(500)]
texts = [" ".join(random.choice(words, length)) for length in random.integers(0, 24, 8192)]
keys = tf.lookup.KeyValueTensorInitializer(words, tf.range(len(words), dtype=tf.int64))
table = tf.lookup.StaticVocabularyTable(keys, num_oov_buckets=1)


def encode(text):
    tokens = tf.strings.split(tf.strings.lower(text))
    return table.lookup(tokens) + 1


dataset = tf.data.Dataset.from_tensor_slices(texts)
dataset = dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.padded_batch(256)
"""
SIGNALS = """\
signals = tf.random.stateless_normal((512, 4096), seed=(1, 2))


"""
SPLIT = f"""\
{SIGNALS}def prepare(signal):
    spectrum = tf.abs(tf.signal.stft(signal, 256, 16))
    level = tf.round(tf.math.log1p(tf.reduce_mean(spectrum, axis=0)) * 10.0)
    noise = tf.random.uniform(tf.shape(level), 0.0, 0.4)
    return level + noise


dataset = tf.data.Dataset.from_tensor_slices(signals)
dataset = dataset.map(prepare, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32)
"""
SPECTRUM = f"""\
{SIGNALS}def spectrum(signal):
    return tf.reduce_mean(tf.abs(tf.signal.stft(signal, 256, 16)), axis=0)


"""
FLAT = """\
pixels = np.random.default_rng(1).integers(0, 256, (64, 512, 512, 3), np.uint8)
jpegs = [tf.io.encode_jpeg(image).numpy() for image in pixels]


def slices(jpeg):
    image = tf.io.decode_jpeg(jpeg, channels=3)
    rows = tf.reshape(image, (8, 64, 512, 3))[:, 0]
    return tf.data.Dataset.from_tensor_slices(rows)


dataset = tf.data.Dataset.from_tensor_slices(jpegs)
dataset = dataset.flat_map(slices)
dataset = dataset.batch(32)
"""
HOISTED = f"""\
{SPECTRUM}def read(parts):
    return tf.data.Dataset.from_tensor_slices(parts).map(spectrum)


dataset = tf.data.Dataset.from_tensor_slices(tf.reshape(signals, (64, 8, 4096)))
dataset = dataset.interleave(read, cycle_length=4)
dataset = dataset.batch(32)
"""
CACHED = f"""\
{SPECTRUM}dataset = tf.data.Dataset.from_tensor_slices(signals)
dataset = dataset.cache()
dataset = dataset.map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.batch(32)
"""
FORMS = {
    "vectorised in parts": (
        "vectorizable-map",
        PARTS,
        PARTS.replace(
            "\n\ndataset =",
            """

def decode_batch(record):
    value = tf.io.decode_raw(record, tf.uint8)

    def decode_rows(value):
        pixels = tf.reshape(value, [SIDE, SIDE])
        image = tf.cast(pixels, tf.int32)
        image -= tf.reduce_min(image)
        return tf.cast(tf.cumsum(image), tf.float32) / 16.0

    return tf.vectorized_map(decode_rows, value, fallback_to_while_loop=False)


dataset =""",
        ).replace(
            "dataset = dataset.map(decode, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.batch(256)\n",
            "dataset = dataset.batch(256)\ndataset = dataset.map(decode_batch, num_parallel_calls=tf.data.AUTOTUNE)\n",
        ),
    ),
    "vectorised with ragged tensors": (
        "vectorizable-map",
        RAGGED,
        RAGGED.replace(
            "\n\ndataset =",
            "\n\ndef encode_batch(*rows):\n    return encode(*rows).to_tensor()\n\n\ndataset =",
        ).replace(
            "dataset = dataset.map(encode, num_parallel_calls=tf.data.AUTOTUNE)\ndataset = dataset.padded_batch(256)\n",
            "dataset = dataset.padded_batch(256)\n"
            "dataset = dataset.map(encode_batch, num_parallel_calls=tf.data.AUTOTUNE)\n",
        ),
    ),
    "a function split before its random part": (
        "splittable-map",
        SPLIT,
        SPLIT.replace("def prepare(", "def prepare_cached(")
        .replace("    noise =", "    return level\n\n\ndef prepare(level):\n    noise =")
        .replace(
            ".map(prepare, num_parallel_calls=tf.data.AUTOTUNE)",
            ".map(prepare_cached, num_parallel_calls=tf.data.AUTOTUNE).cache()"
            ".map(prepare, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
    ),
    "a function of flat_map split before its dataset": (
        "costly-flat-map",
        FLAT,
        FLAT.replace("def slices(jpeg):", "def slices_values(jpeg):")
        .replace("    return tf.data", "    return rows\n\n\ndef slices(rows):\n    return tf.data")
        .replace(".flat_map(", ".map(slices_values, num_parallel_calls=tf.data.AUTOTUNE).flat_map("),
    ),
    "a map moved out of interleave": (
        "map-inside-interleave",
        HOISTED,
        HOISTED.replace("(parts).map(spectrum)", "(parts)").replace(
            "cycle_length=4)", "cycle_length=4).map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)"
        ),
    ),
    "a map moved out of flat_map": (
        "map-inside-interleave",
        HOISTED.replace("interleave(read, cycle_length=4)", "flat_map(read)"),
        HOISTED.replace("(parts).map(spectrum)", "(parts)").replace(
            "interleave(read, cycle_length=4)",
            "flat_map(read).map(spectrum, num_parallel_calls=tf.data.AUTOTUNE)",
        ),
    ),
    "a cache moved after the work": (
        "repeated-work",
        CACHED,
        CACHED.replace("dataset = dataset.cache()\n", "").replace(".batch(32)", ".batch(32).cache()"),
    ),
}
"""Name -> the rule, the pipeline and what becomes of it. All but the random part of a split function is the same in every run."""
HEAD = """\
import hashlib
import os
import sys

import numpy as np
import tensorflow as tf

with open(os.path.join(os.environ["TFDS_DATA_DIR"], "starts"), "a") as file:
    file.write(f"{os.getpid()}\\n")
"""
LOOP = """\
dataset = dataset.prefetch(tf.data.AUTOTUNE)

checked = int(sys.argv[1]) if len(sys.argv) > 1 else 0
digest = hashlib.sha256()
for epoch in range(2 if checked else 1_000_000):
    for step, batch in enumerate(dataset):
        loss = tf.reduce_sum(tf.cast(batch, tf.float32))
        if step < checked:
            digest.update(tf.floor(tf.cast(batch, tf.float64)).numpy().tobytes())
print("digest", digest.hexdigest())
"""


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    for name, variable in (("temporary", "TMPDIR"), ("datasets", "TFDS_DATA_DIR")):
        (tmp_path / name).mkdir()
        monkeypatch.setenv(variable, str(tmp_path / name))
    project = tmp_path / "project"
    project.mkdir()
    return project


def digest(folder):
    """Of the first elements of two epochs."""
    command = [sys.executable, "-B", "train.py", "20"]
    return subprocess.run(command, cwd=folder, check=True, capture_output=True, text=True).stdout.splitlines()[-1]


@pytest.mark.parametrize("form", FORMS)
def test_it_is_proposed_proved_written_and_taken_back(form, folder, validate):
    rule, before, after = FORMS[form]
    script = folder / "train.py"
    script.write_text(HEAD + before + LOOP)
    elements = digest(folder)
    options = ["--pipeline-only", "--only", rule, "--budget", "3min", "--write", "--json", "-"]
    code, out, err = fix(folder, *options, "train.py")
    assert code == 0, err
    report = json.loads(out)
    validate(report)
    outcomes = [(outcome["rule"], outcome["verdict"], outcome["safety_seen"]) for outcome in report["fixes"]]
    assert outcomes == [(rule, "faster", "exact")], (outcomes, report["rejected"], err)
    assert in_one_line(script.read_text()) == in_one_line(HEAD + after + LOOP)
    assert digest(folder) == elements
    code, out, err = fix(folder, "--undo", "train.py")
    assert (code, out) == (0, f"Restored {script}.\n"), err
    assert script.read_bytes() == (HEAD + before + LOOP).encode()
    assert leftovers(folder) == (set(), [])
