"""Two variants of a pipeline in one process: memory first, and speed only where much memory is saved."""

from __future__ import annotations

from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

import pytest

from advisor.model.edits import InsertAfter
from advisor.prove.trial.ab_side import CannotMeasure
from advisor.prove.trial.number_trial import compare_numbers

TUNED, FIXED = (InsertAfter("batch", "prefetch", (("", 48),)),), (InsertAfter("batch", "prefetch", (("", 1),)),)
MIB = 1 << 20


def compared(is_material):
    """The comparison and its phases. `prefetch` has the tuned and the fixed size if the difference is to be material."""
    import tensorflow as tf

    def dataset_of(edits):
        filled = tf.data.Dataset.range(10**9).map(lambda x: tf.fill([4 * MIB], tf.cast(x % 7, tf.uint8)))
        return filled.prefetch(edits[0].arguments[0][1] if is_material else 1)

    phases = []
    comparison = compare_numbers(
        dataset_of, TUNED, FIXED, 0.01, 60.0, lambda phase, done, total: phases.append((phase, done))
    )
    return comparison, phases


@pytest.mark.long
@pytest.mark.tensorflow
@pytest.mark.parametrize("is_material", [False, True])
def test_speed_is_measured_only_where_much_memory_is_saved(is_material):
    """In a process of its own: memory that other tests have freed would be used again, so that the process does not grow."""
    with ProcessPoolExecutor(1, get_context("spawn")) as pool:
        comparison, phases = pool.submit(compared, is_material).result()
    assert comparison.is_material is is_material
    assert (("measuring", 6) in phases) is is_material
    assert comparison.peak_bytes > 100 * MIB
    if not is_material:
        assert comparison.speed is None
        assert abs(comparison.autotune_bytes - comparison.fixed_bytes) < 64 * MIB
        return
    assert 120 * MIB < comparison.autotune_bytes - comparison.fixed_bytes < 400 * MIB
    assert 0.7 < comparison.speed.value < 1.4  # both wait for the same steps


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_pipeline_that_fails_is_one_sentence():
    import tensorflow as tf

    def dataset_of(edits):
        return tf.data.Dataset.range(100).map(lambda x: 1 // (x - x))

    with pytest.raises(CannotMeasure, match="the pipeline with fixed numbers fails"):
        compare_numbers(dataset_of, TUNED, FIXED, 0.0, 60.0, lambda phase, done, total: None)
