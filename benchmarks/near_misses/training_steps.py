"""Near misses of the rules on training steps and epochs."""

from __future__ import annotations

from near_misses.script import NearMiss

TRAINING_STEPS = (
    NearMiss("epoch-pauses", "Epochs are short, and one iterator goes through all of them.", """
data = slices(np.zeros((4096, 64), np.float32)).shuffle(1024).batch(64).repeat(500).prefetch(AUTOTUNE)
train(data)
"""),
    NearMiss("eager-step", "One op of a step is outside of the function: its loss is added up.", """
features = np.random.default_rng(0).random((4096, 256), np.float32)
weights, total = tf.Variable(tf.random.normal((256, 256))), 0.0

@tf.function
def train_step(batch):
    for _ in range(8):
        batch = tf.tanh(batch @ weights)
    return tf.reduce_mean(batch)

for batch in slices(features).batch(64).cache().repeat(500).prefetch(AUTOTUNE):
    total += train_step(batch)
"""),
    NearMiss("full-precision", "The products are in 32 bit, but so small that casts would cost more.", """
import keras

data = slices((np.zeros((4096, 64), np.float32), np.zeros((4096, 1), np.float32))).cache().repeat(1000)
model = keras.Sequential([keras.Input((64,)), keras.layers.Dense(64, "relu"), keras.layers.Dense(1)])
model.compile("adam", "mse", steps_per_execution=16)
model.fit(data.batch(32, drop_remainder=True).prefetch(AUTOTUNE), verbose=0)
"""),
    NearMiss("rebuilt-every-epoch", "Each epoch has a dataset of its own, which is made in a fraction of its time.", """
rows = np.random.default_rng(0).random((4096, 64), np.float32)
weights = tf.Variable(tf.random.normal((64, 64)))

@tf.function
def train_step(batch):
    return tf.reduce_mean(tf.tanh(batch @ weights))

for epoch in range(300):
    for batch in slices(rows).batch(16).prefetch(AUTOTUNE):
        train_step(batch)
"""),
    NearMiss("retracing", "The last batch is smaller: two graphs, each made once.", """
weights = tf.Variable(tf.random.normal((64, 512)))

@tf.function
def train_step(batch):
    for _ in range(4):
        batch = tf.tanh(batch @ weights @ tf.transpose(weights))
    return tf.reduce_mean(batch)

data = slices(np.random.default_rng(0).random((1000, 64), np.float32)).batch(64).cache().prefetch(AUTOTUNE)
for epoch in range(500):
    for batch in data:
        train_step(batch)
"""),
    NearMiss("short-steps", "Keras does one step per call, and the step is long.", """
import keras

data = slices((np.zeros((2048, 1024), np.float32), np.zeros((2048, 1), np.float32))).cache().repeat(50)
layers = [keras.layers.Dense(1024, "relu") for _ in range(3)]
model = keras.Sequential([keras.Input((1024,)), *layers, keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(data.batch(256, drop_remainder=True).prefetch(AUTOTUNE), verbose=0)
"""),
    NearMiss("small-batch", "The batch is of 4, and each row is long work.", """
data = slices(np.zeros((512, 64), np.float32)).cache().repeat(500)
train(data.batch(4, drop_remainder=True).prefetch(AUTOTUNE), work=512)
"""),
    NearMiss("step-outliers", "A checkpoint now and then, so small that it costs nothing.", """
import tempfile

weights = tf.Variable(tf.random.normal((512, 512)))
checkpoint = tf.train.Checkpoint(bias=tf.Variable(tf.zeros((8,))))

@tf.function
def train_step(batch):
    for _ in range(6):
        weights.assign(tf.tanh(weights @ weights))
    return tf.reduce_mean(batch)

data = slices(np.zeros((4096, 64), np.float32)).batch(64).cache().repeat(500).prefetch(AUTOTUNE)
with tempfile.TemporaryDirectory() as folder:
    for step, batch in enumerate(data):
        train_step(batch)
        if step % 50 == 49:
            checkpoint.write(folder + "/checkpoint")
"""),
)  # fmt: skip
