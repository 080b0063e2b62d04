import tensorflow as tf

ds = tf.data.Dataset.list_files(FILES + "/*.tfrecord")
ds = ds.interleave(tf.data.TFRecordDataset, cycle_length=4, num_parallel_calls=tf.data.AUTOTUNE)
ds = ds.map(tf.strings.length, num_parallel_calls=tf.data.AUTOTUNE)
ds = ds.batch(8).prefetch(2)
