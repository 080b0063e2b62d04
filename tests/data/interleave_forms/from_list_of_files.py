import tensorflow as tf

names = [f"{FILES}/part-{number}.tfrecord" for number in range(4)]
ds = tf.data.Dataset.from_tensor_slices(names)
ds = ds.shuffle(4).repeat()
ds = ds.interleave(lambda name: tf.data.TFRecordDataset(name).repeat(2), cycle_length=4, block_length=2)
ds = ds.map(tf.strings.length).batch(8)
