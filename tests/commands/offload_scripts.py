"""Scripts on which `advisor offload` is tried."""

from __future__ import annotations

MOVABLE_SCRIPT = """
    import time
    import tensorflow as tf

    def heavy(x):
        m = tf.fill((150, 150), tf.cast(x, tf.float32) / 1e6)
        for _ in range(8):
            m = tf.matmul(m, m)
        return tf.reduce_sum(m), x

    dataset = tf.data.Dataset.range(256).map(heavy, num_parallel_calls=tf.data.AUTOTUNE).batch(8)
    for epoch in range(10_000):
        for batch in dataset:
            time.sleep(0.001)
    """
FINITE_SCRIPT = """
    import time
    import tensorflow as tf

    dataset = tf.data.Dataset.range(200)
    dataset = dataset.map(lambda x: x * 2)
    dataset = dataset.batch(8)
    total = 0
    for batch in dataset:
        total += int(tf.reduce_sum(batch))
        time.sleep(0.1)
    print(total)
    """
REPEATED_SCRIPT = """
    import collections
    import time
    import tensorflow as tf

    seen = collections.Counter()

    def heavy(x):
        m = tf.fill((150, 150), tf.cast(x, tf.float32) / 1e6)
        for _ in range(8):
            m = tf.matmul(m, m)
        return x + tf.cast(0.0 * tf.reduce_sum(m), tf.int64)

    def noted(x):
        seen[int(x)] += 1
        return x

    dataset = tf.data.Dataset.range(96).map(heavy)
    dataset = dataset.map(lambda x: tf.ensure_shape(tf.numpy_function(noted, [x], tf.int64), []))
    dataset = dataset.batch(8).repeat(3)
    for batch in dataset:
        time.sleep(0.1)
    print(len(seen), set(seen.values()))
    """
KERAS_SCRIPT = """
    import time
    import keras
    import tensorflow as tf

    class Steps(keras.callbacks.Callback):
        counts = []

        def on_epoch_begin(self, epoch, logs=None):
            self.counts.append(0)

        def on_train_batch_end(self, batch, logs=None):
            self.counts[-1] += 1
            time.sleep(0.05)

    def row(x):
        x = tf.reshape(tf.cast(x, tf.float32) / 100, [1])
        return x, 3 * x

    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.range(100).map(row)
    rows = rows.batch(8)
    model.fit(rows, epochs=3, verbose=0, callbacks=[Steps()])
    print(Steps.counts)
    """
PYTHON_SCRIPT = """
    import tensorflow as tf

    def work(x):
        return x * 2

    dataset = tf.data.Dataset.range(200).map(lambda x: tf.numpy_function(work, [x], tf.int64)).batch(4)
    for epoch in range(10_000):
        for batch in dataset:
            pass
    """
WAITING_SCRIPT = """
    import time
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    def read(part):
        return tf.data.Dataset.range(part * 8, part * 8 + 8).apply(sleep(20_000))

    dataset = tf.data.Dataset.range(16).repeat()
    dataset = dataset.interleave(read, cycle_length=2, num_parallel_calls=2)
    dataset = dataset.batch(4)
    for batch in dataset:
        time.sleep(0.004)
    """
WAITING_FIT_SCRIPT = """
    import keras
    import tensorflow as tf
    from tensorflow.python.data.experimental.ops.testing import sleep

    def read(part):
        return tf.data.Dataset.range(part * 8, part * 8 + 8).apply(sleep(20_000))

    def row(x):
        x = tf.reshape(tf.cast(x, tf.float32) / 128, [1])
        return x, 3 * x

    model = keras.Sequential([keras.layers.Input((1,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    rows = tf.data.Dataset.range(16)
    rows = rows.interleave(read, cycle_length=2, num_parallel_calls=2)
    rows = rows.map(row).batch(4)
    model.fit(rows, epochs=1000, verbose=0)
    """
