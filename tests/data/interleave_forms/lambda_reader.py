import tensorflow as tf

ds = tf.data.Dataset.list_files(FILES + "/*.txt")
ds = ds.repeat()
ds = ds.interleave(lambda name: tf.data.TextLineDataset(name), cycle_length=2)
ds = ds.batch(8)
