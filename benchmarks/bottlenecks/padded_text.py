"""Lines of text cut into words, looked up in a table (a stateful map), padded to the longest of the batch."""

from pathlib import Path

import lab
import records
import tensorflow as tf
from lab import tick, without

BUCKETS = 4096


def to_word_ids(line):
    if without("words"):
        return tf.zeros((40,), tf.int64)
    text = tf.strings.regex_replace(tf.strings.lower(line), r"([a-z])([0-9])", r"\1 \2")
    text = tf.strings.regex_replace(text, r"[^a-z0-9_]+", " ")
    text = tf.strings.regex_replace(text, r"(ing|ed|es|s)( |$)", " ")
    return table.lookup(tf.strings.split(text))


def clip(word_ids):
    if without("clip"):
        return tf.zeros((40,), tf.int64)
    return word_ids[:200]


@tf.function(reduce_retracing=True)
def train_step(word_ids):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.embedding_lookup(embedding, word_ids) - 1.0))
    gradient = tape.gradient(loss, embedding)
    embedding.scatter_sub(tf.IndexedSlices(0.01 * gradient.values, gradient.indices))
    return loss


def main():
    if without("lines"):
        dataset = tf.data.Dataset.from_tensors(LINE).repeat()
    else:
        dataset = tf.data.TextLineDataset(FILES)  # node: lines
        dataset = dataset.repeat()
    dataset = dataset.map(to_word_ids)  # node: words
    dataset = dataset.map(clip)  # node: clip
    if without("batch"):
        dataset = lab.without_batch(dataset, 64, lab.constant(64, 120, dtype=tf.int64))
    else:
        dataset = dataset.padded_batch(64)  # node: batch
    dataset = dataset.prefetch(tf.data.AUTOTUNE)

    for word_ids in dataset:
        train_step(word_ids)
        if tick():
            break


FILES = records.text_files()
LINES = Path(FILES[0]).read_text(encoding="utf-8").splitlines()
LINE = sorted(LINES, key=len)[len(LINES) // 2]
WORDS = sorted(set(" ".join(LINES).lower().split()))[:20_000]
table = tf.lookup.StaticVocabularyTable(
    tf.lookup.KeyValueTensorInitializer(WORDS, tf.range(len(WORDS), dtype=tf.int64) % BUCKETS), num_oov_buckets=1
)
embedding = tf.Variable(tf.random.normal((len(WORDS) + 1, 2)))
lab.run(main)
