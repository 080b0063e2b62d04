"""Text cleaned by Python inside `tf.py_function`: one element at a time under the interpreter's lock."""

import itertools
import re
from pathlib import Path

import lab
import records
import tensorflow as tf
from lab import tick, without

WORD = re.compile(r"[a-z_]+")


def count_letters(line):
    words = WORD.findall(line.numpy().decode("utf-8", "ignore").lower())
    counts = [0.0] * 256
    for word in words:
        for first, second in itertools.pairwise(word):
            counts[(31 * ord(first) + ord(second)) % 256] += 1.0
    return tf.constant(counts)


def to_features(line):
    if without("features"):
        return lab.constant(256)
    return tf.ensure_shape(tf.py_function(count_letters, [line], tf.float32), (256,))


def scale(features):
    if without("scale"):
        return lab.constant(256)
    return features / (1.0 + tf.reduce_sum(features))


def main():
    if without("lines"):
        dataset = tf.data.Dataset.from_tensors(LINE).repeat()
    else:
        dataset = tf.data.TextLineDataset(FILES)  # node: lines
        dataset = dataset.repeat()
    dataset = dataset.map(to_features)  # node: features
    dataset = dataset.map(scale)  # node: scale
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 256))
    else:
        dataset = dataset.batch(16)  # node: batch

    for features in dataset:
        train_step(features)
        if tick():
            break


FILES = records.text_files()
LINE = max(Path(FILES[0]).read_text(encoding="utf-8").splitlines()[:200], key=len)
train_step = lab.dense_step(256, 128)
lab.run(main)
