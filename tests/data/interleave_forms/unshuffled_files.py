import tensorflow as tf

files = tf.data.Dataset.list_files(FILES + "/*.tfrecord", shuffle=False)
ds = files.interleave(tf.data.TFRecordDataset, cycle_length=2, block_length=4)
ds = ds.shuffle(100).batch(8)
