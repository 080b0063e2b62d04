import tensorflow as tf

import functools

reader = functools.partial(tf.data.TFRecordDataset, buffer_size=100_000)
ds = tf.data.Dataset.list_files(FILES + "/*.tfrecord").repeat()
ds = ds.interleave(reader, cycle_length=3)
ds = ds.batch(8)
