import tensorflow as tf

def read(name):
    ds = tf.data.TextLineDataset(name)
    ds = ds.skip(1)
    return ds.map(tf.strings.length)


ds = tf.data.Dataset.list_files(FILES + "/*.txt")
ds = ds.interleave(read, cycle_length=4, num_parallel_calls=2)
ds = ds.batch(8)
