"""The rows of batches, digested from their arrays, against those that `unbatch` emits."""

from collections.abc import Callable
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from advisor.prove.trial.elements.element_digests import Bounds, collect
from advisor.prove.trial.elements.row_digests import RowsBeside, has_plain_rows, rows_of_batch

tf = pytest.importorskip("tensorflow")
pytestmark = pytest.mark.tensorflow

BOUNDS = Bounds(10_000, 60.0)
NUMBERS = [np.float32, np.float16, np.float64, np.int64, np.uint8, np.bool_]


@st.composite
def tables(draw: st.DrawFn) -> tuple[np.ndarray, ...]:
    """Components with equally many rows of any shape but an empty one, at which `unbatch` of TensorFlow 2.21 crashes."""
    count = draw(st.integers(1, 7))
    shapes = st.lists(st.integers(1, 3), max_size=2).map(lambda shape: (count, *shape))
    numbers = st.sampled_from(NUMBERS).flatmap(lambda kind: arrays.arrays(kind, shapes))
    texts = arrays.arrays(object, shapes, elements=st.binary(max_size=5), fill=st.nothing())
    return tuple(draw(st.lists(st.one_of(numbers, texts), min_size=1, max_size=3)))


@settings(deadline=None, max_examples=60)
@given(tables(), st.integers(1, 4), st.booleans())
def test_rows_have_the_digests_of_unbatched_elements(table: tuple[np.ndarray, ...], size: int, drop: bool) -> None:
    components = tuple(
        tf.constant(column.tolist(), tf.string, shape=column.shape) if column.dtype == object else tf.constant(column)
        for column in table
    )
    batches = tf.data.Dataset.from_tensor_slices(components).batch(size, drop_remainder=drop)
    assert has_plain_rows(batches)
    rows = collect(batches, BOUNDS, digests_of=rows_of_batch)
    expected = collect(batches.unbatch(), BOUNDS)
    assert rows.rows == expected.rows
    assert rows.kinds == expected.kinds
    assert rows.size_bytes == expected.size_bytes
    assert rows.is_complete
    for got, wanted in zip(rows.figures, expected.figures, strict=True):
        for component in range(len(wanted)):
            np.testing.assert_allclose(got[component], wanted[component], rtol=1e-6)


@pytest.mark.parametrize(
    "dataset",
    [
        pytest.param(lambda: tf.data.Dataset.range(4), id="scalars"),
        pytest.param(lambda: tf.data.Dataset.range(4).batch(2).map(lambda x: (x, 0)), id="a batch beside a scalar"),
        pytest.param(lambda: tf.data.Dataset.range(4).window(2), id="windows"),
        pytest.param(lambda: tf.data.Dataset.range(4).map(tf.range).ragged_batch(2), id="ragged"),
        pytest.param(
            lambda: (
                tf.data.Dataset.range(4).map(lambda x: tf.sparse.expand_dims(tf.sparse.from_dense([x]), 0)).batch(2)
            ),
            id="sparse",
        ),
    ],
)
def test_elements_that_are_no_dense_batches_have_none(dataset: Callable[[], object]) -> None:
    assert not has_plain_rows(dataset())


def test_a_scalar_text_is_a_text_even_if_it_looks_like_a_number() -> None:
    stream = collect(tf.data.Dataset.from_tensor_slices(["1.5", "abc"]), BOUNDS)
    assert stream.kinds == ("text",)
    assert [figures[0][0] for figures in stream.figures] == [3.0, 3.0]  # their lengths


def batches(rows: int, size: int = 4) -> object:
    return tf.data.Dataset.range(rows).map(lambda x: (x, tf.strings.as_string(x))).batch(size)


def test_rows_beside_batches_are_those_of_a_pass_of_their_own() -> None:
    beside = RowsBeside()
    stream = collect(batches(10), BOUNDS, digests_of=beside)
    assert stream.rows == collect(batches(10), BOUNDS).rows
    assert beside.of(stream) == collect(batches(10), BOUNDS, digests_of=rows_of_batch)


def test_rows_of_a_part_are_not_kept() -> None:
    beside = RowsBeside()
    stream = collect(batches(10), Bounds(2, 60.0), digests_of=beside)
    assert len(stream.rows) == 2
    assert beside.of(stream) is None


def test_too_many_rows_are_not_kept() -> None:
    beside = RowsBeside()
    stream = collect(batches(60_000, 30_000), BOUNDS, digests_of=beside)
    assert len(stream.rows) == 2
    assert beside.of(stream) is None


def test_of_too_many_rows_those_of_the_first_batches_may_suffice() -> None:
    beside = RowsBeside(may_be_cut=True)
    stream = collect(batches(60_000, 20_000), BOUNDS, digests_of=beside)
    assert len(stream.rows) == 3
    whole = collect(batches(40_000, 20_000), Bounds(100_000, 60.0), digests_of=rows_of_batch)
    assert beside.of(stream) == replace(whole, size_bytes=0)


def test_a_first_batch_with_too_many_rows_is_not_cut() -> None:
    beside = RowsBeside(may_be_cut=True)
    assert beside.of(collect(batches(60_000, 60_000), BOUNDS, digests_of=beside)) is None


def test_large_rows_are_not_kept() -> None:
    beside = RowsBeside()
    large = tf.data.Dataset.from_tensors(tf.zeros([2, 20 << 20], tf.uint8)).repeat(2)
    stream = collect(large, BOUNDS, digests_of=beside)
    assert beside.of(stream) is None


def test_batches_without_equally_many_rows_are_digested_as_a_whole() -> None:
    beside = RowsBeside()
    stream = collect(tf.data.Dataset.range(8).batch(4).map(lambda x: (x, x[:2])), BOUNDS, digests_of=beside)
    assert stream.is_complete
    assert not stream.error
    assert beside.of(stream) is None


def test_components_of_different_length_are_an_error() -> None:
    batches = tf.data.Dataset.range(8).batch(4).map(lambda x: (x, x[:2]))
    stream = collect(batches, BOUNDS, digests_of=rows_of_batch)
    assert "different numbers of rows" in stream.error
    assert not stream.is_complete
