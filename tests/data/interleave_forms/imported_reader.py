import tensorflow as tf

from tensorflow.data import Dataset, TFRecordDataset

ds = Dataset.list_files(FILES + "/*.tfrecord").repeat()
ds = ds.interleave(TFRecordDataset, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
ds = ds.shuffle(64)
ds = ds.batch(8, drop_remainder=True)
