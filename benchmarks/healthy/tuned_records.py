"""TFRecord files read side by side, parsed a batch at a time, prefetched; the training is the larger part."""

import numpy as np
import sample_data
import tensorflow as tf


def write(folder):
    draw = np.random.default_rng(0)
    for number in range(8):
        with tf.io.TFRecordWriter(str(folder / f"{number}.tfrecord")) as writer:
            for row in draw.random((1_000, 256), np.float32):
                value = tf.train.Feature(float_list=tf.train.FloatList(value=row))
                writer.write(tf.train.Example(features=tf.train.Features(feature={"row": value})).SerializeToString())


def parse(records):
    return tf.io.parse_example(records, {"row": tf.io.FixedLenFeature([256], tf.float32)})["row"]


folder = sample_data.make_once(sample_data.cache_folder() / "rows-of-256", write)
dataset = tf.data.Dataset.list_files(str(folder / "*.tfrecord"))
dataset = dataset.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.shuffle(1_000).repeat().batch(128, drop_remainder=True)
dataset = dataset.map(parse, num_parallel_calls=tf.data.AUTOTUNE).prefetch(tf.data.AUTOTUNE)
first = tf.Variable(tf.random.normal((256, 4096), stddev=0.02))
second = tf.Variable(tf.random.normal((4096, 2048), stddev=0.02))


@tf.function
def train_step(rows):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.nn.relu(rows @ first) @ second))
    for variable, gradient in zip((first, second), tape.gradient(loss, (first, second)), strict=True):
        variable.assign_sub(0.01 * gradient)
    return loss


for step, rows in enumerate(dataset):
    train_step(rows)
    if step == 2_000:
        break
