"""`advisor.optimize`, `analyze(dataset)`, `watch` and the Keras callback leave the program as it was. One real TensorFlow."""

from __future__ import annotations

import functools
import random

import numpy as np
import pytest

import advisor
from advisor.model.errors import AdvisorError

pytestmark = pytest.mark.tensorflow

NO_RULE = ("no-such-rule",)
"""Nothing is tried: the pipeline is made again and profiled, which reads thousands of elements."""


@pytest.fixture(scope="module")
def tf():
    import tensorflow

    return tensorflow


def public_api(tf):
    """The objects in the dictionaries of what the hooks replace."""
    import keras
    from tensorflow.python.autograph.pyct import loader
    from tensorflow.python.data.ops import iterator_ops
    from tensorflow.python.distribute import input_lib
    from tensorflow.python.eager.polymorphic_function.polymorphic_function import Function
    from tensorflow.python.profiler import profiler_v2

    owners = [
        *(base for base in tf.compat.v1.data.Dataset.__mro__ if base is not object),
        tf.data.TFRecordDataset,
        tf.data.TextLineDataset,
        tf.data.experimental,
        tf.data.experimental.service,
        tf.profiler.experimental,
        tf.GradientTape,
        profiler_v2,
        loader,
        Function,
        iterator_ops.OwnedIterator,
        input_lib.DistributedDataset,
        input_lib.DistributedDatasetsFromFunction,
        input_lib.DistributedIteratorBase,
        *(base for base in keras.Model.__mro__ if base is not object),
        keras.callbacks.CallbackList,
    ]
    return {(owner, name): value for owner in owners for name, value in vars(owner).items() if callable(value) or
            isinstance(value, staticmethod)}  # fmt: skip


def changed(before, after):
    return [f"{owner.__name__}.{name}" for owner, name in before if after.get((owner, name)) is not before[owner, name]]


class Program:
    """A pipeline whose functions change everything that can be put back."""

    def __init__(self, tf):
        self.tf = tf
        self.variable = tf.Variable([1.0, 2.0])
        self.table = tf.lookup.experimental.MutableHashTable(tf.string, tf.int64, -1)
        self.table.insert(["mine"], [7])
        self.generator = tf.random.Generator.from_seed(3)
        self.own_random, self.own_numpy = random.Random(5), np.random.default_rng(6)
        self.old_numpy = np.random.RandomState(8)
        tf.random.get_global_generator().reset_from_seed(11)
        self.dataset = tf.data.Dataset.range(1000).shuffle(10).map(self.change).batch(2)

    def draw(self, scale, x):
        random.random()
        np.random.rand()
        self.own_random.random(), self.own_numpy.random(), self.old_numpy.rand()
        return np.float32(scale * x)

    def change(self, x):
        tf = self.tf
        self.variable.assign_add([1.0, 1.0])
        self.table.insert(tf.strings.as_string(x), x)
        noise = self.generator.uniform([]) + tf.random.get_global_generator().uniform([]) + tf.random.uniform([])
        drawn = tf.numpy_function(functools.partial(self.draw, 2.0), [x], tf.float32)
        return drawn + noise

    def state(self):
        from tensorflow.python.eager import context

        keys, values = self.table.export()
        return {
            "variable": self.variable.numpy().tolist(),
            "table": sorted(zip(keys.numpy().tolist(), values.numpy().tolist(), strict=True)),
            "generator": self.generator.state.numpy().tolist(),
            "global generator": self.tf.random.get_global_generator().state.numpy().tolist(),
            "eager": (context.context()._seed, context.context()._rng.getstate()),
            "python": random.getstate(),
            "numpy": repr(np.random.get_state()),
            "own": (
                self.own_random.getstate(),
                repr(self.own_numpy.bit_generator.state),
                repr(self.old_numpy.get_state()),
            ),
        }


@pytest.fixture
def program(tf):
    tf.random.set_seed(1)
    random.seed(2)
    np.random.seed(3)
    return Program(tf)


def different(before, after):
    return [name for name in before if before[name] != after[name]]


def test_reading_the_dataset_does_change_it(program):
    """Else the tests below prove nothing."""
    before = program.state()
    for _ in program.dataset.take(3):
        pass
    assert set(different(before, program.state())) == set(before) - {"eager"}


@pytest.mark.long
def test_optimize_puts_the_state_back(tf, program):
    state, api = program.state(), public_api(tf)
    result = advisor.optimize(program.dataset, budget=20, only=NO_RULE)
    assert different(state, program.state()) == []
    assert changed(api, public_api(tf)) == []
    assert result is program.dataset
    assert any("Python code of the pipeline ran" in note for note in result.report.proof.notes)


@pytest.mark.long
def test_a_trial_puts_the_state_back(tf):
    variable = tf.Variable(0)

    def count_up(x):
        variable.assign_add(1)
        return x

    dataset = tf.data.Dataset.range(64).map(count_up).batch(4)
    state, api = random.getstate(), public_api(tf)
    advisor.optimize(dataset, "reordered", budget=20)
    assert variable.numpy() == 0 and random.getstate() == state
    assert changed(api, public_api(tf)) == []


@pytest.mark.long
def test_an_error_puts_the_state_back(tf, program, monkeypatch):
    from advisor.prove.trial.in_process_proof import InProcessSession

    def profile(session, edits):
        for _ in session.dataset(edits).take(5):
            pass
        assert different(state, program.state()), "the trial did change it"
        raise KeyboardInterrupt

    monkeypatch.setattr(InProcessSession, "profile", profile)
    state, api = program.state(), public_api(tf)
    for call in (advisor.optimize, advisor.analyze):
        with pytest.raises(KeyboardInterrupt):
            call(program.dataset)
        assert different(state, program.state()) == []
        assert changed(api, public_api(tf)) == []


@pytest.mark.long
def test_analyze_puts_the_state_back(tf, program):
    state, api = program.state(), public_api(tf)
    report = advisor.analyze(program.dataset)
    assert different(state, program.state()) == []
    assert changed(api, public_api(tf)) == []
    assert any("Python code of the pipeline ran" in text for text in report.warnings)


@pytest.mark.long
def test_a_generator_that_did_not_exist_does_not_afterwards(tf, monkeypatch):
    from tensorflow.python.ops import stateful_random_ops

    monkeypatch.setattr(stateful_random_ops, "global_generator", None)
    advisor.optimize(tf.data.Dataset.range(100).batch(2), budget=10, only=NO_RULE)
    assert stateful_random_ops.global_generator is None


def test_what_cannot_be_put_back_is_refused_before_anything_runs(tf, tmp_path):
    def write(x):
        tf.io.write_file(str(tmp_path) + "/" + tf.strings.as_string(x), "text")
        return x

    queue = tf.queue.FIFOQueue(10, tf.int64)

    def fill(x):
        queue.enqueue(x)
        return x

    for function, op in ((write, "WriteFile"), (fill, "QueueEnqueueV2")):
        dataset = tf.data.Dataset.range(9).map(function).batch(2)
        for call in (advisor.optimize, advisor.analyze):
            with pytest.raises(AdvisorError, match=f"{op} in the function {function.__name__}"):
                call(dataset)
    assert list(tmp_path.iterdir()) == [] and queue.size().numpy() == 0


@pytest.mark.long
def test_state_of_datasets_that_are_used_as_they_are_is_reported(tf):
    dataset = tf.data.Dataset.range(100).shuffle(10).padded_batch(4).map(lambda x: x + 1)
    result = advisor.optimize(dataset, budget=10, only=NO_RULE)
    assert any("the order of a shuffle, which could not be restored" in note for note in result.report.proof.notes)
    alone = tf.data.Dataset.range(100).shuffle(10).batch(4).map(lambda x: x + 1)
    assert not any("restored" in note for note in advisor.optimize(alone, budget=10, only=NO_RULE).report.proof.notes)


def test_install_and_uninstall_are_counted_and_restore_the_identical_objects(tf):
    import keras

    import advisor.workflows.watch

    api = public_api(tf)
    advisor.uninstall()
    assert changed(api, public_api(tf)) == [], "nor did the imports replace anything"
    advisor.install()
    replaced = changed(api, public_api(tf))
    assert {"DatasetV2.map", "DatasetV2.range", "OwnedIterator.__next__", "CallbackList.on_epoch_end"} <= set(replaced)
    inside = public_api(tf)
    advisor.install()
    assert changed(inside, public_api(tf)) == [], "nothing is wrapped twice"
    advisor.uninstall()
    assert changed(inside, public_api(tf)) == [], "it was installed twice"
    assert [x.numpy() for x in tf.data.Dataset.range(3)] == [0, 1, 2]
    advisor.uninstall()
    advisor.uninstall()
    assert changed(api, public_api(tf)) == []
    with pytest.raises(ValueError, match="boom"), advisor.install():
        assert tf.data.Dataset.map is not api[tf.data.Dataset, "map"]
        raise ValueError("boom")
    assert changed(api, public_api(tf)) == []
    assert isinstance(tf.data.Dataset.__dict__["range"], staticmethod)
    assert "fit" in {name for _, name in api} and keras.Model.fit.__name__ == "fit"


def test_somebody_elses_patch_is_left_alone(tf):
    before = tf.data.Dataset.__dict__["take"]
    advisor.install()
    ours = tf.data.Dataset.take

    def theirs(dataset, *args, **kwargs):
        return ours(dataset, *args, **kwargs)

    tf.data.Dataset.take = theirs
    try:
        advisor.uninstall()
        assert tf.data.Dataset.__dict__["take"] is theirs
        assert [x.numpy() for x in tf.data.Dataset.range(9).take(2)] == [0, 1]
    finally:
        tf.data.Dataset.take = before


def test_watch_puts_everything_back_and_draws_nothing(tf, tmp_path, program):
    dataset = tf.data.Dataset.range(1000).shuffle(10, seed=3).batch(2)
    expected = [x.numpy().tolist() for x in dataset.take(40)]
    state, api = program.state(), public_api(tf)
    fresh = tf.data.Dataset.range(1000).shuffle(10, seed=3).batch(2)
    with advisor.watch(tmp_path, warmup=5, steps=10, quiet=True) as run:
        assert [x.numpy().tolist() for _, x in zip(range(40), fresh)] == expected  # noqa: B905
    assert run.report is not None, run.problem
    assert different(state, program.state()) == [] and changed(api, public_api(tf)) == []
    with pytest.raises(ValueError, match="boom"), advisor.watch(tmp_path, warmup=5, steps=10, quiet=True):
        next(iter(dataset))
        raise ValueError("boom")
    assert changed(api, public_api(tf)) == []
    with pytest.raises(ValueError, match="boom"):
        advisor.analyze(failing, (dataset,), out=tmp_path)
    assert different(state, program.state()) == [] and changed(api, public_api(tf)) == []


def failing(dataset):
    next(iter(dataset))
    raise ValueError("boom")


def test_the_keras_callback_puts_everything_back(tf, tmp_path):
    import keras

    model = keras.Sequential([keras.layers.Input((2,)), keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    dataset = tf.data.Dataset.range(200).map(lambda x: (tf.ones([2]), tf.ones([1]))).batch(2)
    api, state = public_api(tf), random.getstate()
    callback = advisor.AdvisorCallback(tmp_path, warmup=5, steps=10, quiet=True)
    assert changed(api, public_api(tf)) == []
    model.fit(dataset, verbose=0, callbacks=[callback])
    assert callback.report is not None, callback.problem
    assert [consumer.kind for consumer in callback.report.analysis.recording.consumers if consumer.is_main] == [
        "keras.fit"
    ]
    assert changed(api, public_api(tf)) == [] and random.getstate() == state
