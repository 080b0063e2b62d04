"""padding-waste: texts of very different lengths are padded to the longest of their batch.

Most of the data that is copied, transferred and computed is padding. `bucket_by_sequence_length` batches texts of similar
length; replace the marked call with it.
"""

import argparse

import sample_data
import tensorflow as tf

parser = argparse.ArgumentParser()
parser.add_argument("--epochs", type=int, default=3)
args = parser.parse_args()


def to_codes(line):
    return tf.cast(tf.io.decode_raw(line, tf.uint8), tf.int32)


files = sorted(str(file) for file in sample_data.text_folder().glob("*.txt"))
dataset = tf.data.TextLineDataset(files)
dataset = dataset.map(to_codes, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(2000)
dataset = dataset.padded_batch(64, drop_remainder=True)  # <- padding-waste
dataset = dataset.prefetch(tf.data.AUTOTUNE)

embeddings = tf.Variable(tf.random.normal((256, 32), stddev=0.1))


@tf.function(reduce_retracing=True)
def train_step(codes):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reduce_mean(tf.gather(embeddings, codes), axis=1) - 1.0))
    embeddings.assign_sub(0.01 * tf.convert_to_tensor(tape.gradient(loss, embeddings)))
    return loss


for _ in range(args.epochs):
    for codes in dataset:
        loss = train_step(codes)
print(f"loss {loss:.4f}")
