import tensorflow as tf

ds = tf.data.Dataset.range(100)
ds = ds.interleave(lambda n: tf.data.Dataset.range(n, n + 100).map(lambda x: x * 2), cycle_length=4)
ds = ds.filter(lambda x: x % 3 > 0)
ds = ds.batch(8)
