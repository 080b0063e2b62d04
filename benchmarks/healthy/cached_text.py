"""Lines of text become padded word ids once, in memory; only the shuffle and the padding are done in every epoch."""

import keras
import sample_data
import tensorflow as tf

keras.mixed_precision.set_global_policy("mixed_bfloat16")


def to_ids(line):
    words = tf.strings.split(tf.strings.substr(line, 2, 400))[:24]
    label = tf.strings.to_number(tf.strings.substr(line, 0, 1))
    return tf.strings.to_hash_bucket_fast(words, 5000), label


files = sorted(str(file) for file in sample_data.text_folder().glob("*.txt"))
dataset = tf.data.TextLineDataset(files, num_parallel_reads=tf.data.AUTOTUNE).take(8_000)
dataset = dataset.map(to_ids, num_parallel_calls=tf.data.AUTOTUNE)
dataset = dataset.cache().shuffle(8_000)
dataset = dataset.padded_batch(256, ([24], []), drop_remainder=True).prefetch(tf.data.AUTOTUNE)
model = keras.Sequential(
    [keras.layers.Embedding(5000, 64), keras.layers.Conv1D(256, 5, activation="relu"), keras.layers.GlobalMaxPooling1D(),
     keras.layers.Dense(1)]
)  # fmt: skip
model.compile("adam", keras.losses.BinaryCrossentropy(from_logits=True))
model.fit(dataset, epochs=40, verbose=0)
