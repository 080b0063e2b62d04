"""What functions capture and do, on TensorFlow's own traces: all in one process, since starting TensorFlow costs seconds."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.traced_functions import function_facts
from advisor.model.calls import Call
from advisor.model.state import CapturedResource
from advisor.predict import cache_assumptions, cache_obstacles
from advisor.testing import map_, pipeline, source

pytestmark = pytest.mark.tensorflow


@pytest.fixture(scope="module")
def tf():
    return pytest.importorskip("tensorflow")


def facts(dataset, function=None):
    return function_facts(dataset, function, None)


def judged(captured) -> str:
    """`exact`, `asks`, or the reason against a cache behind a map with these facts."""
    import dataclasses

    analysis = pipeline(source(), map_("f", ms=1), consumer_ms=1).analysis
    call = Call("c1", "map", None, function=captured, inputs=("c0",))
    analysis = dataclasses.replace(analysis, calls=(Call("c0", "range", None), call))
    obstacles = cache_obstacles(analysis, call)
    if obstacles:
        return obstacles[0].reason
    return "asks" if cache_assumptions(analysis, call) else "exact"


class _Model:
    def __init__(self, tf):
        self.scale = tf.Variable(2, dtype=tf.int64)

    def __call__(self, x):
        return x * self.scale


def functions(tf):
    """name -> (function of one int64, verdict or a part of the reason, resources)."""
    import keras

    numbers = tf.lookup.KeyValueTensorInitializer([1], [2], tf.int64, tf.int64)
    words = tf.lookup.KeyValueTensorInitializer(["a"], [0], tf.string, tf.int64)
    static, vocabulary = tf.lookup.StaticHashTable(numbers, 0), tf.lookup.StaticVocabularyTable(words, 1)
    mutable = tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0)
    dense = tf.lookup.experimental.DenseHashTable(tf.int64, tf.int64, 0, -1, -2)
    scale, weight = tf.Variable(2, dtype=tf.int64), keras.Variable(3.0)
    generator, queue = tf.random.Generator.from_seed(1), tf.queue.FIFOQueue(10, [tf.int64])
    elements = iter(tf.data.Dataset.range(100))
    given, adapted = keras.layers.StringLookup(vocabulary=["a", "b"]), keras.layers.StringLookup()
    adapted.adapt(["x", "y"])
    integers, mean = keras.layers.IntegerLookup(vocabulary=[1, 2]), keras.layers.Normalization()
    mean.adapt(tf.constant([[1.0], [2.0]]))
    writer = tf.summary.create_file_writer("/tmp/never-written")
    model = _Model(tf)
    known = {
        "a static table": (lambda x: static.lookup(x), "exact", [("static table", "static")]),
        "a vocabulary": (lambda x: vocabulary.lookup(tf.strings.as_string(x)), "exact", "static table"),
        "StringLookup": (lambda x: given(tf.strings.as_string(x)), "exact", "static table"),
        "StringLookup, adapted": (lambda x: adapted(tf.strings.as_string(x)), "exact", "static table"),
        "IntegerLookup": (lambda x: integers(x), "exact", "static table"),
        "Normalization": (lambda x: mean(tf.reshape(tf.cast(x, tf.float32), (1, 1))), "exact", None),
        "a mutable table": (lambda x: mutable.lookup(x), "asks", [("mutable table", "mutable")]),
        "a dense table": (lambda x: dense.lookup(x), "asks", [("mutable table", "dense")]),
        "a variable": (lambda x: x * scale, "asks", [("variable", "scale")]),
        "a Keras variable": (lambda x: tf.cast(weight.value, tf.int64) * x, "asks", [("variable", "weight._value")]),
        "a variable of an object": (model, "asks", [("variable", "self.scale")]),
        "two tables": (
            lambda x: static.lookup(x) + mutable.lookup(x),
            "asks",
            [("static table", "static"), ("mutable table", "mutable")],
        ),
        "a tf.function": (tf.function(lambda x: mutable.lookup(x) * scale), "asks", None),
        "a branch": (
            lambda x: tf.cond(x > 1, lambda: mutable.lookup(x), lambda: x),
            "asks",
            [("mutable table", "mutable")],
        ),
        "a loop": (
            lambda x: tf.while_loop(lambda i: i < 3, lambda i: i + static.lookup(x), [x])[0],
            "exact",
            [("static table", "static")],
        ),
        "a random generator": (lambda x: generator.uniform([], maxval=3, dtype=tf.int64), "draws random numbers", None),
        "a queue": (lambda x: queue.dequeue(), "uses a queue", "queue"),
        "an iterator": (lambda x: next(elements), "takes elements from an iterator", "iterator"),
        "an insert": (lambda x: (mutable.insert(x, x), x)[1], "changes a lookup table", None),
        "an assignment": (lambda x: scale.assign_add(x), "assigns a variable", None),
        "a table of its own": (
            lambda x: tf.lookup.experimental.MutableHashTable(tf.int64, tf.int64, 0).size(),
            "MutableHashTableV2",
            None,
        ),
        "a clock": (lambda x: tf.timestamp(), "reads the clock", None),
        "a clock beside a static table": (
            lambda x: (static.lookup(x), tf.timestamp()),
            "reads the clock",
            [("static table", "static")],
        ),
        "a file beside a static table": (
            lambda x: (tf.io.write_file("/tmp/never-written", tf.strings.as_string(x)), static.lookup(x))[1],
            "writes a file",
            [("static table", "static")],
        ),
        "a file in a branch": (
            lambda x: tf.cond(x > 1, lambda: (tf.io.write_file("/tmp/never-written", "x"), x)[1], lambda: x),
            "writes a file",
            None,
        ),
        "print": (lambda x: (tf.print(x), x)[1], "prints in every call", None),
        "py_function": (lambda x: tf.py_function(lambda y: y, [x], tf.int64), "runs Python code", None),
        "numpy_function": (lambda x: tf.numpy_function(lambda y: y, [x], tf.int64), "runs Python code", None),
        "a check": (lambda x: (tf.debugging.assert_positive(x + 1), x)[1], "exact", None),
        "a file that is read": (lambda x: tf.io.read_file("/etc/hostname"), "exact", None),
        "plain arithmetic": (lambda x: x + 1, "exact", None),
        "stateless random numbers": (lambda x: tf.random.stateless_uniform([], seed=[x, 2]), "exact", None),
        "a TensorArray": (
            lambda x: tf.map_fn(lambda i: i * x, tf.range(3, dtype=tf.int64)),
            "exact",
            None,
        ),
    }

    def summarise(x):
        with writer.as_default(step=0):
            tf.summary.scalar("x", x)
        return x

    known["a summary"] = (summarise, "writes a summary", "summary writer")
    return known


def test_stateful_ops_and_captured_resources_are_judged_separately(tf):
    numbers = tf.data.Dataset.range(4)
    wrong = {}
    for name, (function, verdict, resources) in functions(tf).items():
        captured = facts(numbers.map(function), function)
        if verdict not in judged(captured):
            wrong[name] = judged(captured)
        kinds = [(resource.kind, resource.name) for resource in captured.resources]
        expected = [kind for kind, _ in kinds] if isinstance(resources, str) else kinds
        if resources is not None and expected != ([resources] if isinstance(resources, str) else resources):
            wrong[f"{name}: resources"] = kinds
    assert wrong == {}


def test_an_op_that_the_registry_does_not_know_may_do_anything(tf, monkeypatch):
    from tensorflow.python.framework import op_def_registry

    get = op_def_registry.get
    dataset = tf.data.Dataset.range(4).map(lambda x: x + 1)
    assert judged(facts(dataset)) == "exact"
    monkeypatch.setattr(op_def_registry, "get", lambda op: None if op == "AddV2" else get(op))
    assert "AddV2" in judged(facts(dataset))


def test_datasets_made_inside_functions(tf):
    numbers = tf.data.Dataset.range(4)
    records = facts(numbers.flat_map(lambda x: tf.data.TFRecordDataset(["none"]).cache().prefetch(2)))
    assert judged(records) == "exact"
    shuffled = facts(numbers.flat_map(lambda x: tf.data.Dataset.range(3).shuffle(2)))
    assert judged(shuffled) == "draws the seeds of a shuffle (DummySeedGenerator)"  # no recorded call made it
    noise = numbers.map(lambda x: x + tf.random.uniform([], maxval=9, dtype=tf.int64))
    for function in (lambda x: noise, lambda x: noise.batch(2)):
        captured = facts(numbers.flat_map(function), function)
        assert captured.resources == (CapturedResource("dataset", "noise"),)
        assert judged(captured) == "captures a dataset that no recorded call made"
