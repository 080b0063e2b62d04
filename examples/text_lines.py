"""Train a text classifier on lines of text: is a paragraph of Python's standard library code or prose?

Reads text files line by line, splits each line into words, looks the words up in a vocabulary, pads, and trains with Keras
`fit`. The first run writes the text files (offline, seconds) below the user's cache or `--data-dir`. Training waits for
`map(to_word_ids)`.
"""

import argparse
import collections

import keras
import sample_data
import tensorflow as tf

BATCH_SIZE = 64
VOCABULARY_SIZE = 5000

parser = argparse.ArgumentParser()
parser.add_argument("--data-dir", help="where the text files are kept (default: the user's cache)")
parser.add_argument("--epochs", type=int, default=5)
args = parser.parse_args()

files = sorted(str(file) for file in sample_data.text_folder(data_dir=args.data_dir).glob("*.txt"))


def read_vocabulary():
    counts = collections.Counter()
    for line in open(files[0], encoding="utf-8"):
        counts.update(line.lower().split())
    return [word for word, _ in counts.most_common(VOCABULARY_SIZE)]


vocabulary = read_vocabulary()
table = tf.lookup.StaticVocabularyTable(
    tf.lookup.KeyValueTensorInitializer(vocabulary, tf.range(len(vocabulary), dtype=tf.int64)), num_oov_buckets=1
)


def to_word_ids(line):
    label, text = tf.unstack(tf.strings.split(line, "\t", maxsplit=1), num=2)
    text = tf.strings.regex_replace(tf.strings.lower(text), r"[^a-z0-9_]+", " ")
    words = tf.strings.split(text)
    return table.lookup(words) + 1, tf.strings.to_number(label, tf.int32)


dataset = tf.data.TextLineDataset(files)
dataset = dataset.map(to_word_ids)
dataset = dataset.shuffle(2000)
dataset = dataset.padded_batch(BATCH_SIZE, drop_remainder=True)

model = keras.Sequential(
    [
        keras.layers.Embedding(len(vocabulary) + 2, 8),
        keras.layers.GlobalAveragePooling1D(),
        keras.layers.Dense(1),
    ]
)
model.compile(
    optimizer="adam",
    loss=keras.losses.BinaryCrossentropy(from_logits=True),
    metrics=[keras.metrics.BinaryAccuracy(threshold=0)],
)
model.fit(dataset, epochs=args.epochs, verbose=2)
