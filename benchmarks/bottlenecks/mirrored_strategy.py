"""MirroredStrategy on two logical devices: `experimental_distribute_dataset` rebatches and feeds each device by itself."""

import lab
import tensorflow as tf
from lab import tick, without

tf.config.set_logical_device_configuration(
    tf.config.list_physical_devices("CPU")[0], [tf.config.LogicalDeviceConfiguration()] * 2
)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])


def make_image(index):
    if without("image"):
        return lab.constant(64, 64)
    return tf.cos(tf.cast(index, tf.float32) + tf.reshape(tf.range(4096.0), (64, 64)))


def distort(image):
    if without("distort"):
        return lab.constant(64, 64)
    return tf.sort(tf.linalg.qr(image + tf.random.normal((64, 64))).q)


with strategy.scope():
    weights = tf.Variable(tf.random.normal((64 * 64, 1), stddev=0.01))


def replica_step(images):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.square(tf.reshape(images, (-1, 64 * 64)) @ weights - 1.0))
    gradient = tape.gradient(loss, weights)
    tf.distribute.get_replica_context().merge_call(
        lambda strategy, value: strategy.extended.update(
            weights,
            lambda variable, gradient: variable.assign_sub(0.001 * gradient),
            args=(strategy.extended.reduce_to(tf.distribute.ReduceOp.MEAN, value, weights),),
        ),
        args=(gradient,),
    )
    return loss


@tf.function
def train_step(images):
    return strategy.run(replica_step, args=(images,))


def main():
    dataset = tf.data.Dataset.range(10_000_000)
    dataset = dataset.map(make_image)  # node: image
    dataset = dataset.map(distort)  # node: distort
    if without("batch"):
        dataset = lab.without_batch(dataset, 16, lab.constant(16, 64, 64))
    else:
        dataset = dataset.batch(16, drop_remainder=True)  # node: batch

    for images in strategy.experimental_distribute_dataset(dataset):
        train_step(images)
        if tick():
            break


lab.run(main)
