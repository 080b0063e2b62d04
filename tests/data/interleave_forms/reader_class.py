import tensorflow as tf

ds = tf.data.Dataset.list_files(FILES + "/*.tfrecord")
ds = ds.interleave(tf.data.TFRecordDataset)
ds = ds.batch(8)
