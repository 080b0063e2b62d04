"""Who takes the elements, and when a step begins and ends."""

from __future__ import annotations

import statistics

import pytest

from tests.capture.instrument.loops import PIPE, SHORT

pytestmark = pytest.mark.tensorflow


def durations(series):
    return [end - start for start, end in zip(series.start_ns, series.end_ns, strict=True)]


def test_every_kind_of_consumer_in_one_run(watch):
    text = """
import keras
import numpy as np
import tensorflow as tf

ds = tf.data.Dataset.range(48).map(lambda i: (tf.random.normal([8]), tf.ones([1]))).batch(4)
for batch in ds:  # for
    pass
iterator = iter(ds)  # tf.function: its steps are those of the function
pulled = iter(ds)  # next
next(pulled), pulled.get_next()
for batch in ds.as_numpy_iterator():  # as_numpy_iterator
    pass
ds.reduce(0.0, lambda total, batch: total + tf.reduce_sum(batch[0]))  # reduce
@tf.function
def step(iterator):
    return tf.reduce_sum(next(iterator)[0])
step(iterator), step(iterator)
@tf.function
def train(data):
    total = 0.0
    for x, y in data:  # tf.function: the loop
        total += tf.reduce_sum(x)
    return total
train(ds)
strategy = tf.distribute.MirroredStrategy(["CPU:0"])
for batch in strategy.experimental_distribute_dataset(ds):  # distributed
    pass
for batch in strategy.distribute_datasets_from_function(lambda context: ds):  # distributed: from a function
    pass
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds, verbose=0)  # keras.fit
model.evaluate(ds, verbose=0)  # keras.evaluate
model.predict(ds, verbose=0)  # keras.predict
"""
    run = watch(text, to_end=True, is_profiled=False)
    marked = {
        (line.partition("  # ")[2].partition(":")[0], number)
        for number, line in enumerate(text.splitlines(), 1)
        if "  # " in line
    }
    assert len(marked) == 11
    assert {(consumer.kind, consumer.site.line) for consumer in run.recording.consumers} == marked
    assert {consumer.call_id for consumer in run.recording.consumers} == {run.call("batch").id}
    steps = {series.consumer_id: len(series.start_ns) for series in run.recording.steps}
    taken = {consumer.kind: steps.get(consumer.id) for consumer in run.recording.consumers}
    assert [taken[kind] for kind in ("for", "as_numpy_iterator", "distributed", "keras.fit", "keras.predict")] == [
        12
    ] * 5


@pytest.mark.long
def test_a_for_loop_with_its_wait(watch):
    run = watch(
        """
        import time
        import tensorflow as tf
        def slow(i):
            time.sleep(0.02)
            return i
        ds = tf.data.Dataset.range(10**6).map(lambda i: tf.numpy_function(slow, [i], tf.int64))
        for x in ds:
            time.sleep(0.01)
    """,
        **SHORT,
    )
    assert run.main.kind == "for" and run.main.site.line == 8 and run.main.site.column == 10
    assert run.main.call_id == run.call("map").id
    assert statistics.median(durations(run.steps)) > 19e6
    assert 5e6 < statistics.median(run.steps.wait_ns) < statistics.median(durations(run.steps))


LOOP = """
for epoch in range(1000):
    for batch in ds:
        time.sleep(0.001)
"""
FIT = """
import keras
model = keras.Sequential([keras.layers.Dense(1)])
model.compile("sgd", "mse")
model.fit(ds.map(lambda x: (x[:, 0], x[:, 0, :1])), epochs=1000, verbose=0)
"""


@pytest.mark.long
@pytest.mark.parametrize("consume", [LOOP, FIT])
def test_the_wait_for_an_iterator_to_go_away_lies_between_two_epochs(watch, consume):
    run = watch(PIPE.replace("10**6", "40") + consume, steps=60, warmup=10)
    releases, steps = run.main.releases, run.steps
    assert len(releases) >= 4
    assert list(releases) == sorted(releases)
    between = [(end, start) for end, start in zip(steps.end_ns, steps.start_ns[1:], strict=False) if start > end]
    for now_ns, took_ns in releases[1:-1]:
        assert took_ns > 0
        assert any(end - 1e6 <= now_ns - took_ns and now_ns <= start + 1e6 for end, start in between)


@pytest.mark.long
def test_next_and_get_next(watch):
    run = watch(
        PIPE
        + """
it = iter(ds)
other = iter(ds)
while True:
    x = next(it)
    y = other.get_next()
    time.sleep(0.001)
""",
        **SHORT,
    )
    assert {c.kind for c in run.recording.consumers} == {"next"} and len(run.recording.consumers) == 2
    assert run.recording.window.steps == 30


@pytest.mark.long
def test_numpy_consumers(watch):
    run = watch(
        PIPE
        + """
w = np.random.rand(30, 30)
for batch in ds.as_numpy_iterator():
    for _ in range(50):
        w = np.tanh(w @ batch[0])
""",
        **SHORT,
    )
    assert run.main.kind == "as_numpy_iterator" and run.main.site.line == 8 and run.main.call_id == run.call("batch").id


@pytest.mark.long
def test_keras_fit_with_validation(watch):
    run = watch(
        """
        import keras, numpy as np, tensorflow as tf
        x, y = np.random.rand(400, 5).astype("f4"), np.random.rand(400, 1).astype("f4")
        train = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)
        val = tf.data.Dataset.from_tensor_slices((x, y)).batch(100)
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse", run_eagerly=False)
        class Slow(keras.callbacks.Callback):
            def on_test_batch_end(self, batch, logs=None):
                import time; time.sleep(0.1)
        model.fit(train, validation_data=val, epochs=100, verbose=0, callbacks=[Slow()])
    """,
        steps=120,
        warmup=10,
    )
    kinds = {c.kind: c for c in run.recording.consumers}
    train, validation = run.calls("batch")
    assert kinds["keras.fit"].is_main and kinds["keras.fit"].call_id == train.id
    assert kinds["keras.evaluate"].call_id == validation.id and not kinds["keras.evaluate"].is_main
    assert kinds["keras.fit"].site.line == 11
    assert run.recording.keras["epochs"] == 100 and run.recording.keras["steps_per_execution"] == 1
    assert run.recording.window.steps == 120
    assert max(durations(run.steps)[60:]) < 0.4e9, "an epoch's last step does not hold the validation"


@pytest.mark.long
def test_keras_fit_on_arrays(watch):
    run = watch(
        """
        import keras, numpy as np
        model = keras.Sequential([keras.layers.Dense(1)])
        model.compile("sgd", "mse")
        model.fit(np.random.rand(4000, 5), np.random.rand(4000, 1), batch_size=4, epochs=50, verbose=0)
    """,
        **SHORT,
    )
    assert run.main.kind == "keras.fit" and run.main.site.line == 5
    assert run.recording.calls and {c.library for c in run.recording.calls} <= {"keras", "tensorflow"}
    assert run.recording.keras["batch_size"] == 4


@pytest.mark.long
@pytest.mark.parametrize("how", ["dataset", "function"])
def test_distributed_steps_count_once(watch, how):
    make = {
        "dataset": "strategy.experimental_distribute_dataset(ds)",
        "function": "strategy.distribute_datasets_from_function(lambda context: ds)",
    }[how]
    run = watch(
        """
import tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
tf.config.set_logical_device_configuration(cpu, [tf.config.LogicalDeviceConfiguration()] * 2)
"""
        + PIPE
        + f"""
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
taken = 0
for x in {make}:
    taken += 1
    time.sleep(0.002)
    print(taken, flush=True)
""",
        **SHORT,
    )
    assert run.main.kind == "distributed" and run.main.call_id == run.call("batch").id
    assert int(run.out.split()[-1]) == 70 == len(run.steps.start_ns)


@pytest.mark.long
def test_training_wins_over_counting(watch):
    run = watch(
        PIPE
        + """
count = 0
for x in ds.take(300):
    count += 1
w = tf.Variable(tf.ones([30, 30]))
for x in ds:
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(x @ w)
    w.assign_sub(tape.gradient(loss, w) * 1e-3)
"""
    )
    assert run.main.site.line == 11 and run.recording.script_exit.kind == "stopped"


@pytest.mark.long
def test_a_thread_that_trains_is_stopped_quietly(watch):
    run = watch(
        PIPE
        + """
import threading
def train():
    for x in ds:
        time.sleep(0.005)
thread = threading.Thread(target=train)
thread.start()
thread.join()
""",
        **SHORT,
    )
    assert run.recording.window.steps == 30 and "Traceback" not in run.err


@pytest.mark.long
def test_the_ceiling_run_repeats_the_first_element(watch):
    text = """
        import time
        import tensorflow as tf
        def slow(i):
            time.sleep(0.03)
            return i
        ds = tf.data.Dataset.range(12).map(lambda i: tf.numpy_function(slow, [i], tf.int64)).batch(2)
        for epoch in range(40):
            seen = [x.numpy().tolist() for x in ds]
            print(seen, flush=True)
    """
    run = watch(text, steps=30, warmup=12, ceiling_for="tfadv_3")
    first = eval(run.out.splitlines()[0])
    assert len(first) == 6 and all(batch == [0, 1] for batch in first), "finite epochs stay finite"
    assert len(run.recording.ceiling_step_ns) == 30
    assert statistics.median(run.recording.ceiling_step_ns) < 20e6
    assert run.profiles == [] and [c.method for c in run.recording.calls] == ["range", "map", "batch"]
