"""Steps of Keras' `fit` without concurrent input: what the train function gets, what is timed, and how the script ends."""

from __future__ import annotations

import contextlib
import statistics
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.stop_script import StopScript
from advisor.capture.window import fit_idle_steps
from advisor.capture.window.fit_idle_steps import FitIdleSteps, repeated
from advisor.capture.window.idle_steps import IdleSteps
from advisor.host.calibration.window import IDLE_STEPS

MS = 1_000_000


class Fit:
    """A `fit` whose script is to be stopped at a step boundary."""

    def __init__(self, monkeypatch, train_function, goes_on=False):
        self.consumer = Consumers().at("keras.fit", None, None)
        for number in range(1, 20):
            self.consumer.begin(number * 100 * MS)
            self.consumer.batch_end_ns = number * 100 * MS + 93 * MS  # callbacks take 7 ms
        self.idle = IdleSteps()
        self.idle.is_wanted = True
        self.now_ns = 0
        monkeypatch.setattr("advisor.capture.window.idle_steps.time", SimpleNamespace(time_ns=lambda: self.now_ns))
        monkeypatch.setattr(fit_idle_steps, "repeated", lambda arguments: "the same batch")
        assert self.idle.begin(self.consumer, (), 0, goes_on)
        self.model = SimpleNamespace(train_function=train_function)
        self.steps = FitIdleSteps(self.idle, contextlib.nullcontext, self.stop)

    def stop(self):
        assert not self.idle.is_running and self.consumer.repeated is None
        raise StopScript


def test_train_steps_are_made_until_enough_are_timed(monkeypatch):
    got = []

    def train(iterator):
        got.append(iterator)
        fit.now_ns += 10 * MS

    fit = Fit(monkeypatch, train)
    fit.steps.begin(fit.model, fit.consumer)
    assert fit.model.train_function is not train and not got  # Keras calls it next, with its iterator
    with pytest.raises(StopScript):
        fit.model.train_function("Keras' own iterator")
    assert fit.model.train_function is train and set(got) == {"the same batch"}
    assert fit.idle.durations_ns == [17 * MS] * IDLE_STEPS.value  # with the time of the callbacks


def test_a_fit_that_goes_on_trains_on_the_batch_that_was_repeated(monkeypatch):
    """Its iterator does not give it again."""
    got = []

    def train(iterator):
        got.append(iterator)
        fit.now_ns += 10 * MS
        return {"loss": len(got)}

    fit = Fit(monkeypatch, train, goes_on=True)
    fit.steps.begin(fit.model, fit.consumer)
    logs = fit.model.train_function("Keras' own iterator")
    assert set(got) == {"the same batch"} and logs == {"loss": len(got)}
    assert fit.idle.durations_ns == [17 * MS] * IDLE_STEPS.value
    assert fit.model.train_function is train and not fit.idle.is_running
    assert fit.consumer.repeated is None and fit.consumer.open_since_ns  # this step counts


def test_a_fit_whose_data_end_goes_on_to_its_end(monkeypatch):
    def no_more(arguments):
        raise StopIteration

    got = []
    fit = Fit(monkeypatch, got.append, goes_on=True)
    monkeypatch.setattr(fit_idle_steps, "repeated", no_more)
    fit.steps.begin(fit.model, fit.consumer)
    fit.model.train_function("Keras' own iterator")
    assert got == ["Keras' own iterator"] and fit.idle.durations_ns == []


def test_there_are_no_times_if_a_step_fails(monkeypatch):
    def train(iterator):
        fit.now_ns += 50 * MS
        if fit.now_ns > 1000 * MS:
            raise ValueError("the loss is not finite")

    fit = Fit(monkeypatch, train)
    fit.steps.begin(fit.model, fit.consumer)
    with pytest.raises(StopScript):
        fit.model.train_function("Keras' own iterator")
    assert fit.idle.durations_ns == [] and fit.model.train_function is train


def test_the_watchdog_ends_it(monkeypatch):
    """It does if a step takes long, and stops the script from its own thread. An exception there may come later."""

    def train(iterator):
        fit.idle.end()

    fit = Fit(monkeypatch, train)
    fit.steps.begin(fit.model, fit.consumer)
    with pytest.raises(StopScript):
        fit.model.train_function("Keras' own iterator")
    assert fit.idle.durations_ns == []


def test_an_interrupt_of_the_user_is_not_swallowed(monkeypatch):
    def train(iterator):
        raise KeyboardInterrupt

    fit = Fit(monkeypatch, train)
    fit.steps.begin(fit.model, fit.consumer)
    with pytest.raises(KeyboardInterrupt):
        fit.model.train_function("Keras' own iterator")
    assert not fit.idle.is_running


@pytest.mark.parametrize("model", [None, SimpleNamespace(train_function=None)])
def test_a_model_without_a_train_function_is_stopped_at_once(monkeypatch, model):
    fit = Fit(monkeypatch, None)
    with pytest.raises(StopScript):
        fit.steps.begin(model, fit.consumer)
    assert fit.idle.durations_ns == []


@pytest.mark.tensorflow
def test_the_repeated_batch_has_the_type_of_the_iterator():
    """Otherwise a train function would be traced again. The sizes of the last batch and of texts are open."""
    import tensorflow as tf

    traces = []

    @tf.function
    def train(iterator):
        traces.append(1)
        batch = next(iterator)
        return tf.reduce_sum(batch["x"]), batch["name"]

    dataset = tf.data.Dataset.range(10).map(
        lambda x: {"x": x, "name": tf.strings.as_string(x), "parts": tf.RaggedTensor.from_row_lengths([x], [1])}
    )
    iterator = iter(dataset.ragged_batch(4))
    assert train(iterator)[0].numpy() == 0 + 1 + 2 + 3
    same = repeated((iterator,))
    assert same.element_spec == iterator.element_spec
    assert [train(same)[0].numpy() for _ in range(5)] == [4 + 5 + 6 + 7] * 5
    assert len(traces) == 1
    assert train(iterator)[0].numpy() == 8 + 9
    with pytest.raises(StopIteration):
        repeated((iterator,))


@pytest.mark.tensorflow
def test_only_iterators_of_one_process_are_replaced():
    import tensorflow as tf

    dataset = tf.data.Dataset.range(8).batch(2)
    strategy = tf.distribute.MirroredStrategy(["cpu:0"])
    assert (
        repeated((iter(strategy.experimental_distribute_dataset(dataset)),)) is None
        or strategy.num_replicas_in_sync == 1
    )
    assert repeated(((), iter(dataset))) is None and repeated((iter([1]),)) is None


FIT = """
    import time, keras, tensorflow as tf
    keras.utils.set_random_seed(1)

    def slow(x):
        y = tf.cast(x, tf.float32) * tf.ones([300, 300])
        for _ in range(5):
            y = tf.linalg.matmul(y, y) / 1e3
        return tf.fill([8], tf.reduce_sum(y) * 0), tf.cast([x % 2], tf.float32)

    def wait(x, y):
        seconds = tf.numpy_function(lambda: time.sleep(0.01) or 1.0, [], tf.float64)
        return x, tf.ensure_shape(y * tf.cast(seconds, tf.float32), y.shape)

    class Notes(keras.callbacks.Callback):
        def on_train_batch_begin(self, batch, logs=None):
            print("batch")
        def on_epoch_end(self, epoch, logs=None):
            print("end")

    class Model(keras.Sequential):
        def train_step(self, data):
            print("trace")
            return super().train_step(data)

    data = tf.data.Dataset.range(1_000_000).map(slow).batch(16).prefetch(2)
    model = Model([keras.layers.Dense(16), keras.layers.Dense(1)])
    model.compile(optimizer="sgd", loss="mse"COMPILE)
    model.fit(data, epochs=2, verbose=0, callbacks=[Notes()])
"""


@pytest.mark.tensorflow
@pytest.mark.long
@pytest.mark.parametrize(
    "keras",
    ["keras", pytest.param("tf_keras", marks=pytest.mark.skipif(find_spec("tf_keras") is None, reason="no tf_keras"))],
)
@pytest.mark.parametrize("changes", ["", ", steps_per_execution=4", ", run_eagerly=True"])
def test_a_real_fit_repeats_a_batch_after_its_window(watch, keras, changes):
    text = FIT.replace("import time, keras", f"import time, {keras} as keras").replace("COMPILE", changes)
    run = watch(text, reads_alone=True, seconds=1.0)
    recording = run.recording
    assert len(recording.idle_step_ns) == IDLE_STEPS.value and recording.script_exit.kind == "stopped"
    (series,) = recording.steps
    durations = [end - start for start, end in zip(series.start_ns, series.end_ns, strict=True)]
    assert statistics.median(recording.idle_step_ns) < 0.7 * statistics.median(durations)
    assert not any(call.method == "from_tensors" for call in recording.calls)
    (fit,) = recording.consumers
    assert fit.iterators == (1 if keras == "keras" else 2)  # as without the advisor
    printed = run.out.split()
    assert abs(printed.count("batch") - len(durations)) <= 1 and "end" not in printed
    if "eager" not in changes:
        assert "trace" in printed and "trace" not in printed[len(printed) // 2 :]  # none for the other iterator


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_short_fit_makes_steps_without_input_before_its_end(watch):
    """It waits in a sleep and computes little, so that it ends before its window on a slow machine, too."""
    text = FIT.replace("COMPILE", "").replace("range(1_000_000)", "range(16 * 60)").replace("epochs=2", "epochs=3")
    text = text.replace("[300, 300]", "[30, 30]").replace("prefetch(2)", "map(lambda *xy: wait(*xy)).prefetch(2)")
    text += '    print("made", int(model.optimizer.iterations))\n'
    run = watch(text, reads_alone=True)
    recording = run.recording
    assert len(recording.idle_step_ns) == IDLE_STEPS.value and recording.script_exit.kind == "finished"
    (fit,) = recording.consumers
    assert fit.finished_epochs == 3 and fit.finished_steps == 3 * 60
    printed = run.out.split()
    assert printed.count("batch") == 3 * 60 and printed.count("end") == 3
    assert int(printed[-1]) > 3 * 60 + IDLE_STEPS.value


@pytest.mark.tensorflow
@pytest.mark.long
def test_a_real_fit_that_does_not_wait_repeats_nothing(watch):
    text = FIT.replace("COMPILE", "").replace("for _ in range(5)", "for _ in range(0)")
    text = text.replace("Dense(16)", "Dense(16384)")
    assert watch(text, reads_alone=True, seconds=1.0).recording.idle_step_ns == ()
