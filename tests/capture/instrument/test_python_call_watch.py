"""Which Python functions count as returning the same for the same element, and that nothing else happens to them."""

from __future__ import annotations

import numpy as np
import pytest

from advisor.capture.instrument.generator_watch import MAX_FOLLOWED, element_digest
from advisor.capture.instrument.python_call_watch import FIRST_CALLS, STRIDE, PythonCallWatch


def calls_of(function, elements):
    """What is seen of a function that is called for these elements."""
    watch = PythonCallWatch(lambda: True)
    watch.follow("pyfunc_0", "c1")
    followed = watch.function("pyfunc_0")
    for element in elements:
        digest = followed.element_of([element])
        result = function(element)
        if digest is not None:
            followed.returned(digest, element_digest(result))
    (seen,) = watch.observed()
    return seen


ROWS = [np.full(100, i, np.float32) for i in range(2_000)]


def test_epochs_in_any_order_are_compared():
    order = np.random.default_rng(0).permutation(len(ROWS))
    seen = calls_of(np.sort, [*ROWS, *(ROWS[i] for i in order)])
    assert seen.calls == 4_000 and seen.is_same
    assert FIRST_CALLS <= seen.repeats <= FIRST_CALLS + 3 * len(ROWS) // STRIDE


def test_one_epoch_says_nothing():
    seen = calls_of(np.sort, ROWS)
    assert (seen.repeats, seen.is_same) == (0, True)


def test_random_results_differ():
    numbers = np.random.default_rng(0)
    assert not calls_of(lambda row: row + numbers.normal(), ROWS[:100] * 2).is_same


def test_results_that_depend_on_earlier_calls_differ():
    seen = []

    def numbered(row):
        seen.append(row)
        return row + len(seen)

    assert not calls_of(numbered, ROWS[:100] * 2).is_same


def test_a_function_that_changes_its_argument_is_followed_by_what_it_was_given():
    def in_place(row):
        row += 1
        return row

    assert calls_of(in_place, [row.copy() for row in ROWS[:100]] * 1 + [row.copy() for row in ROWS[:100]]).is_same


def test_of_many_functions_the_first_are_followed():
    watch = PythonCallWatch(lambda: True)
    for number in range(MAX_FOLLOWED + 5):
        watch.follow(f"pyfunc_{number}", f"c{number}")
    assert watch.function(f"pyfunc_{MAX_FOLLOWED - 1}") is not None
    assert watch.function(f"pyfunc_{MAX_FOLLOWED}") is None


def test_all_functions_of_a_call_must_have_been_called():
    watch = PythonCallWatch(lambda: True)
    for token in ("pyfunc_0", "pyfunc_1"):
        watch.follow(token, "c1")
    watch.function("pyfunc_0").element_of([ROWS[0]])
    assert watch.observed() == ()
    watch.function("pyfunc_1").element_of([ROWS[0]])
    assert [seen.call_id for seen in watch.observed()] == ["c1"]


def test_a_call_with_a_function_that_is_not_followed_is_left_out():
    watch = PythonCallWatch(lambda: True)
    for number in range(MAX_FOLLOWED + 1):
        watch.follow(f"pyfunc_{number}", "c1")
        function = watch.function(f"pyfunc_{number}")
        if function is not None:
            function.element_of([ROWS[0]])
    assert watch.observed() == ()


def test_results_without_values_are_not_compared():
    assert not calls_of(lambda row: object(), ROWS[:100] * 2).is_same


@pytest.mark.tensorflow
@pytest.mark.long
def test_the_functions_of_a_script(watch):
    run = watch("""\
        import numpy as np
        import tensorflow as tf
        numbers = np.random.default_rng(0)
        state = {"calls": 0}
        def twice(x):
            return x + x  # float32 with NumPy 1, too
        def drawn(x):
            return x + np.float32(numbers.normal())
        def counted(x):
            state["calls"] += 1
            return x + np.float32(state["calls"])
        def name(text):
            return text.numpy().upper()
        ds = tf.data.Dataset.range(60).shuffle(60).map(lambda x: tf.cast(x, tf.float32))
        same = ds.map(lambda x: tf.numpy_function(twice, [x], tf.float32))
        strings = same.map(lambda x: tf.py_function(name, [tf.strings.as_string(x)], tf.string), num_parallel_calls=2)
        random = ds.map(lambda x: tf.py_function(drawn, [x], tf.float32))
        counting = ds.map(lambda x: tf.py_function(counted, [x], tf.float32))
        generated = tf.data.Dataset.from_generator(lambda: range(5), output_signature=tf.TensorSpec((), tf.int32))
        for epoch in range(3):
            for _ in strings: pass
            for _ in random: pass
            for _ in counting: pass
            for _ in generated: pass
    """)
    of_call = {seen.call_id: seen for seen in run.recording.python_calls}
    _, same, strings, random, counting = run.calls("map")
    assert set(of_call) == {same.id, strings.id, random.id, counting.id}
    assert (of_call[same.id].calls, of_call[same.id].repeats, of_call[same.id].is_same) == (180, 120, True)
    assert of_call[strings.id].is_same and of_call[strings.id].repeats == 120
    assert not of_call[random.id].is_same and not of_call[counting.id].is_same
