"""MirroredStrategy on two logical CPU devices: host pipeline, device buffers, and steps counted once."""

import tensorflow as tf

cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def heavy(x):
    m = tf.random.normal((96, 96)) + tf.cast(x, tf.float32)
    for _ in range(8):
        m = tf.matmul(m, m) / 96.0
    return m


dataset = tf.data.Dataset.range(1_000_000).map(heavy).batch(8)  # <- bottleneck


@tf.function
def step(batch):
    return strategy.run(lambda part: tf.reduce_sum(part), args=(batch,))


for batch in strategy.experimental_distribute_dataset(dataset):
    step(batch)
