"""Near misses of the rules on caches and shuffles."""

from __future__ import annotations

from near_misses.script import NearMiss

CACHES = (
    NearMiss("cache-after-random", "The random op follows the cache.", """
dataset = range_(500).map(costly, num_parallel_calls=AUTOTUNE).cache()
dataset = dataset.map(noisy, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("cache-after-shuffle", "The shuffle follows the cache.", """
dataset = range_(500).map(costly, num_parallel_calls=AUTOTUNE).cache().shuffle(500)
dataset = dataset.batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("cache-cut-short", "The cache follows `take`, so it is read to its end.", """
dataset = range_(5_000).map(costly, num_parallel_calls=AUTOTUNE).take(500).cache()
dataset = dataset.batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
    NearMiss("cache-too-big", "What the cache holds fits many times over.", """
dataset = slices(jpegs()).map(load, num_parallel_calls=AUTOTUNE).cache()
dataset = dataset.batch(16).prefetch(AUTOTUNE)
train(dataset, epochs=500)
"""),
    NearMiss("cache-without-reuse", "Every epoch but the first reads the cache.", """
dataset = slices(jpegs()).map(load, num_parallel_calls=AUTOTUNE).cache()
dataset = dataset.shuffle(480).batch(16).prefetch(AUTOTUNE)
train(dataset, epochs=500)
"""),
    NearMiss("late-shuffle", "The buffer is small beside an epoch, so that it is soon full.", """
images = slices(jpegs()).repeat(20).map(load, num_parallel_calls=AUTOTUNE).map(noisy)
train(images.shuffle(64).batch(16).prefetch(AUTOTUNE), epochs=20)
"""),
    NearMiss("oversized-shuffle", "The buffer holds a thousand elements of a quarter of a megabyte.", """
dataset = range_(1_000).map(costly, num_parallel_calls=AUTOTUNE).cache().repeat().shuffle(1_000)
dataset = dataset.batch(4).prefetch(AUTOTUNE).take(20_000)
train(dataset)
"""),
    NearMiss("repeated-work", "The data is read once.", """
dataset = range_(100_000).map(costly, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset)
"""),
    NearMiss("repeated-work-on-disk", "What is made again in every epoch fits into memory.", """
dataset = slices(jpegs()).map(load, num_parallel_calls=AUTOTUNE).batch(16).prefetch(AUTOTUNE)
train(dataset, epochs=50)
"""),
    NearMiss("splittable-map", "All that the function does is random.", """
def make_noise(index):
    return tf.sort(tf.sort(tf.random.normal((256, 256)), 0), 1)

dataset = range_(500).map(make_noise, num_parallel_calls=AUTOTUNE).batch(4).prefetch(AUTOTUNE)
train(dataset, epochs=200)
"""),
)  # fmt: skip
