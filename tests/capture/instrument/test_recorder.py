"""What the recorder writes down of calls, and that it changes nothing."""

from __future__ import annotations

import itertools

import pytest

from advisor.host.disk_speed import disk_read_bytes_per_s
from tests.capture.conftest import plain

pytestmark = pytest.mark.tensorflow


def span(call):
    return call.site.line, call.site.column, call.site.end_line, call.site.end_column


@pytest.mark.long
def test_spans_start_at_the_method_and_end_at_the_parenthesis(watch):
    run = watch("""\
        import tensorflow as tf
        größe = 4; ds = tf.data.Dataset.range(größe).map(lambda x: (x, "ü"), num_parallel_calls=2).batch(2)
        ds = (
            ds.unbatch()
              .shuffle(
                  buffer_size=3,
              )
              .repeat(2)
        )
    """)
    assert span(run.call("range")) == (2, 33, 2, 45)
    assert span(run.call("map")) == (2, 46, 2, 91)
    assert span(run.call("batch")) == (2, 92, 2, 100)
    assert span(run.call("unbatch")) == (4, 8, 4, 17)
    assert span(run.call("shuffle")) == (5, 8, 7, 8)
    assert span(run.call("repeat")) == (8, 8, 8, 17)
    assert run.call("shuffle").text == ".shuffle( buffer_size=3, )"
    assert run.call("map").text == '.map(lambda x: (x, "ü"), num_parallel_calls=2)'
    chain = ["range", "map", "batch", "unbatch", "shuffle", "repeat"]
    for before, after in itertools.pairwise(chain):
        assert run.call(after).inputs == (run.call(before).id,)
    assert run.call("map").arguments["num_parallel_calls"] == 2
    assert run.call("map").explicit == ("map_func", "num_parallel_calls")
    assert run.call("shuffle").arguments["seed"] is None and run.call("shuffle").explicit == ("buffer_size",)
    assert run.call("batch").cardinality == 2 and run.call("repeat").cardinality == -2
    assert run.call("range").element_bytes == 8 and run.call("map").element_bytes is None


@pytest.mark.long
def test_nested_made_and_library_calls(watch):
    run = watch("""\
        import keras, numpy as np
        import tensorflow as tf
        def make(i):
            if i > 1:
                i = i - 1
            return tf.data.Dataset.from_tensors(i).map(lambda x: x + 1)
        ds = tf.data.Dataset.range(9).interleave(make, cycle_length=2)
        gen = tf.data.Dataset.from_generator(lambda: range(3), output_signature=tf.TensorSpec((), tf.int32))
        both = tf.data.Dataset.zip((ds, gen)).apply(tf.data.experimental.ignore_errors())
        series = keras.utils.timeseries_dataset_from_array(np.arange(20.), None, sequence_length=3)
    """)
    (inside,) = [c for c in run.calls("map") if c.nested_in is not None]
    assert inside.nested_in == run.call("interleave").id and inside.made_by is None
    assert (inside.site.line, inside.site.column) == (6, 44), "AutoGraph's generated code maps back to the user's line"
    assert inside.function.name == "<lambda>"
    generator = run.call("from_generator")
    (flat_map,) = [c for c in run.calls("flat_map") if c.made_by == generator.id]
    assert flat_map.site == generator.site and flat_map.library == "tensorflow"
    assert generator.function.python_ops == ("PyFunc",)
    assert set(run.call("zip").inputs) == {run.call("interleave").id, generator.id}
    (errors,) = run.calls("ignore_errors")
    assert errors.inputs == (run.call("zip").id,) and errors.site.line == 9 and errors.library == "tensorflow"
    library = [c for c in run.recording.calls if c.library == "keras"]
    assert library and {c.site.line for c in library} == {10}
    assert {c.text.split("(")[0] for c in library} == {".timeseries_dataset_from_array"}


@pytest.mark.long
def test_function_facts_tell_random_from_seeded(watch):
    run = watch("""\
        import numpy as np, tensorflow as tf, keras
        table = tf.lookup.StaticHashTable(tf.lookup.KeyValueTensorInitializer([1], [2], tf.int64, tf.int64), 0)
        generator = tf.random.Generator.from_seed(1)
        flip = keras.layers.RandomFlip()
        scale = tf.Variable(2.0)
        r = tf.data.Dataset.range(4)
        r.map(lambda x: tf.random.uniform([]))
        r.map(lambda x: tf.random.stateless_uniform([], seed=[1, 2]))
        r.map(lambda x: tf.random.stateless_uniform([], seed=[x, 2]))
        r.map(lambda x: generator.normal([]))
        r.map(lambda x: tf.cond(x > 1, lambda: tf.random.normal([]), lambda: 0.0))
        r.map(lambda x: tf.numpy_function(lambda v: v, [x], tf.int64))
        r.map(lambda x: table.lookup(x))
        r.map(lambda x: scale * 2)
        r.map(lambda x: flip(tf.zeros([1, 8, 8, 3]), training=True))
        def assert_and_add(x):
            tf.debugging.assert_positive(x)
            return x + 1
        r.map(assert_and_add)
    """)
    uniform, fixed, by_element, gen, nested, python, lookup, variable, layer, checked = (
        c.function for c in sorted(run.calls("map"), key=lambda c: c.site.line)
    )
    assert uniform.random_ops == ("RandomUniform",) and uniform.is_stateful
    assert fixed.random_ops == () and not fixed.is_stateful and fixed.ops["StatelessRandomUniformV2"] == 1
    assert by_element.random_ops == () and not by_element.is_stateful
    assert gen.random_ops and gen.is_stateful
    assert nested.random_ops == ("RandomStandardNormal",)
    assert python.python_ops == ("PyFunc",) and python.is_stateful
    assert lookup.captured == ("HashTableV2",) and lookup.is_stateful, "tf.data leaves maps with look-ups serial"
    assert variable.captured == ("VarHandleOp",) and variable.random_ops == ()
    assert layer.random_ops, "a seed that is counted up in a variable draws other numbers each time"
    assert not checked.is_stateful and checked.name == "assert_and_add" and checked.site.line == 16


def test_names_options_and_readers(watch, tmp_path):
    (tmp_path / "lines.txt").write_text("a\nb\n")
    (tmp_path / "big").write_bytes(bytes(5 << 20))
    run = watch("""\
        import tensorflow as tf
        class Lines(tf.data.TextLineDataset):
            def __init__(self, path):
                super().__init__(path, buffer_size=1000)
        ds = Lines("lines.txt").map(tf.strings.upper, name="mine")
        options = tf.data.Options()
        options.autotune.enabled = False
        options.threading.private_threadpool_size = 3
        options.deterministic = False
        ds = ds.with_options(options)
        ds = tf.data.Dataset.sample_from_datasets([ds, ds.take(1)], weights=[0.5, 0.5])
        old = tf.compat.v1.data.Dataset.range(3).map(lambda x: x).batch(2)
        unbound = tf.data.Dataset.map(ds, lambda x: x)
        tf.data.TFRecordDataset(["none", "big"], num_parallel_reads=2)
        assert isinstance(ds, tf.data.Dataset) and isinstance(Lines("lines.txt"), tf.data.TextLineDataset)
        print([x.decode() for x in Lines("lines.txt").as_numpy_iterator()], len(list(old)))
    """)
    assert run.out == "['a', 'b'] 2\n"
    lines = run.calls("TextLineDataset")
    assert len(lines) == 3 and lines[0].arguments["buffer_size"] == 1000
    mine = next(c for c in run.calls("map") if c.user_name == "mine")
    assert mine.inputs == (lines[0].id,) and mine.arguments["name"] == "mine"
    assert run.call("with_options").options == {
        "autotune.enabled": False,
        "threading.private_threadpool_size": 3,
        "deterministic": False,
    }
    sample = run.call("sample_from_datasets")
    assert set(sample.inputs) == {run.call("with_options").id, run.call("take").id}
    assert run.call("TFRecordDataset").arguments["num_parallel_reads"] == 2
    unbound = next(c for c in run.calls("map") if c.site.line == 13)
    assert unbound.inputs == (sample.id,)
    can_tell = disk_read_bytes_per_s([str(tmp_path / "big")]) is not None  # tmpfs cannot
    assert (run.recording.host.disk_read_bytes_per_s is not None) is can_tell


@pytest.mark.long
def test_a_class_passed_as_a_function_is_no_dataset(watch):
    run = watch("""\
        import tensorflow as tf
        list(tf.data.Dataset.from_tensors("none").take(0).interleave(tf.data.TFRecordDataset))
    """)
    (interleave,) = run.calls("interleave")
    assert interleave.unrecorded == ()
    assert interleave.inputs == (run.call("take").id,)


@pytest.mark.long
def test_what_apply_makes_without_public_calls_is_named(watch):
    """Otherwise a transformation that draws an order would pass for one that only makes other calls."""
    run = watch("""\
        import tensorflow as tf
        ds = tf.data.Dataset.range(3)
        list(ds.apply(lambda rows: rows.batch(2)))
        list(ds.apply(tf.data.experimental.assert_cardinality(3)))
        list(ds.apply(tf.data.experimental.shuffle_and_repeat(3, count=1)))
    """)
    assert [call.unrecorded for call in run.calls("batch")] == [()]
    classes = [call.unrecorded for call in run.calls("apply")]
    assert classes == [("_AssertCardinalityDataset",), ("_ShuffleAndRepeatDataset",)]


@pytest.mark.long
def test_names_reach_the_profile(watch):
    run = watch(
        """\
        import tensorflow as tf
        ds = tf.data.Dataset.range(10**6).map(lambda x: tf.random.normal([50, 50])).batch(4)
        for _ in ds.take(3000):
            pass
    """,
        steps=50,
        warmup=5,
    )
    profile = run.profiles[0].read_bytes()
    for method in ("map", "batch", "range"):
        assert run.call(method).id.encode() in profile


@pytest.mark.long
def test_results_and_errors_are_those_of_the_plain_script(watch, tmp_path):
    text = """\
        import copy, inspect, warnings
        import tensorflow as tf
        tf.keras.utils.set_random_seed(7)
        ds = tf.data.Dataset.range(6).shuffle(6).map(lambda x: (x, tf.random.uniform([])))
        print([(int(a), float(b)) for a, b in ds])
        print(inspect.signature(tf.data.Dataset.map))
        print(inspect.signature(tf.data.TFRecordDataset.__init__))
        print(tf.data.Dataset.map.__name__, tf.data.Dataset.map.__doc__[:30], tf.data.Dataset.range.__module__)
        for bad in (lambda: ds.map(), lambda: ds.batch("x"), lambda: ds.map(3), lambda: ds.nothing(),
                    lambda: ds.map(lambda x, y: x, name="not an identifier!"), lambda: tf.data.Dataset.range()):
            try:
                bad()
            except Exception as error:
                print(type(error).__name__, str(error)[:60])
        class Mine(tf.data.Dataset):
            def __init__(self):
                self._ds = tf.data.Dataset.range(3)
                super().__init__(self._ds._variant_tensor)
            def _inputs(self):
                return []
            @property
            def element_spec(self):
                return self._ds.element_spec
        print([int(x) for x in Mine().map(lambda x: x * 2)])
        @tf.function
        def total(d):
            t = tf.constant(0, tf.int64)
            for x in d.map(lambda v: v + 1):
                t += x
            return t
        zero = tf.constant(0, tf.int64)
        print(int(total(tf.data.Dataset.range(4))), int(tf.data.Dataset.range(5).reduce(zero, lambda a, b: a + b)))
        print(copy.copy(ds).element_spec)
        it = iter(tf.data.Dataset.range(2))
        print(int(next(it)), int(it.get_next()))
        try:
            it.get_next()
        except tf.errors.OutOfRangeError as error:
            print("out of range")
        with tf.Graph().as_default():
            v1 = tf.compat.v1.data.make_one_shot_iterator(tf.compat.v1.data.Dataset.range(3).map(lambda x: x * 3))
            element = v1.get_next()
            with tf.compat.v1.Session() as session:
                print([session.run(element) for _ in range(3)])
    """
    run = watch(text)
    expected = plain(tmp_path / "train.py").stdout
    assert run.out == expected and "out of range" in expected
    assert run.recording.warnings == ()


@pytest.mark.long
def test_loops_that_make_datasets_stay_bounded(watch):
    run = watch("""\
        import tensorflow as tf
        base = tf.data.Dataset.range(3)
        for _ in range(300):
            base = base.take(3) if _ % 2 else base.skip(0)
        print(len(list(base)))
    """)
    assert run.out == "3\n" and len(run.recording.calls) == 301


@pytest.mark.long
def test_equal_calls_are_told_from_others(watch):
    run = watch("""\
        import numpy as np
        import tensorflow as tf
        rows = np.arange(4000.0).reshape(1000, 4)
        factor = 2.0
        def make(kept):
            return tf.data.Dataset.from_tensor_slices(kept).map(lambda row: row * factor).batch(8)
        make(rows)
        make(rows.copy())
        rows[0, 0] = 7.0
        make(rows)
        factor = 3.0
        make(rows)
        make(tf.constant(rows))
        make(tf.constant(rows))
    """)
    numbers = {}
    for method in ("from_tensor_slices", "map", "batch"):
        calls = run.calls(method)
        assert all(call.identity and call.made_ns > 0 for call in calls)
        identities = [call.identity for call in calls]
        numbers[method] = [identities.index(identity) for identity in identities]
    assert numbers["from_tensor_slices"] == [0, 0, 2, 2, 2, 2]
    assert numbers["map"] == [0, 0, 0, 3, 3, 3]
    assert numbers["batch"] == [0, 0, 0, 0, 0, 0]
    assert max(call.made_ns for call in run.calls("map")) > max(call.made_ns for call in run.calls("batch"))
