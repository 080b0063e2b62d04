"""Digests of the rows of batches, as if the batches had been taken apart with `unbatch`, but from their arrays.

In: one element, a batch of dense tensors.  Out: the digests of its rows.

`unbatch` emits each row as tensors of its own, which takes more time than all else. With it, 43,200 rows of nine numbers took 6 s
(2 s of them the pipeline's). From arrays, 40,000 rows of two components took 0.3 to 0.7 s in all (2 cores, 2026-11-28).
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from advisor.host.calibration.proof import ROWS_BESIDE, ROWS_BESIDE_BYTES
from advisor.prove.trial.elements.compared_streams import WANTED
from advisor.prove.trial.elements.element_digests import Digest, add, digest_array, digest_element, figures_of, hash_of
from advisor.prove.trial.elements.streams import Stream


def has_plain_rows(dataset: Any) -> bool:  # noqa: ANN401
    """Whether all components of the elements are dense tensors with a known rank of at least 1."""
    import tensorflow as tf

    specs = tf.nest.flatten(dataset.element_spec)
    return bool(specs) and all(
        type(spec) is tf.TensorSpec and bool(spec.shape.rank) and spec.dtype not in (tf.variant, tf.resource)
        for spec in specs
    )


def rows_of_batch(element: Any) -> Iterator[Digest]:  # noqa: ANN401
    """Yield the digests of the rows of a batch.

    Args:
        element: An element of a dataset for which `has_plain_rows` holds.

    Raises:
        ValueError: The components have different numbers of rows.
    """
    import numpy as np
    import tensorflow as tf

    arrays = [np.asarray(tensor.numpy()) for tensor in tf.nest.flatten(element)]
    if len({len(array) for array in arrays}) != 1:
        raise ValueError("the components of a batch have different numbers of rows")
    columns = [_column(array) for array in arrays]
    for row in zip(*columns, strict=True):
        digests, figures, kinds, sizes = zip(*row, strict=True)
        yield Digest(digests, figures, kinds, sum(sizes))


class RowsBeside:
    """Digests batches as a whole, and keeps the digests of their rows, so that the rows need no pass of their own."""

    def __init__(self, may_be_cut: bool = False) -> None:
        """Begin without rows.

        Args:
            may_be_cut: Whether the rows of the first batches suffice if those of all are too many to be kept.
        """
        self._rows: Stream | None = Stream()
        self._may_be_cut, self._is_cut = may_be_cut, False

    def __call__(self, batch: Any) -> tuple[Digest]:  # noqa: ANN401
        """Return the digest of an element of a dataset for which `has_plain_rows` holds."""
        if self._rows is not None and not self._is_cut:
            self._rows = self._with_rows(self._rows, batch)
        return (digest_element(batch),)

    def of(self, batches: Stream) -> Stream | None:
        """Return the rows of a stream of batches; None if it is not complete, or the rows are too many to be kept.

        If they may be cut, both sides of a comparison get the rows of equally many batches, as these are equally large.
        """
        if self._rows is None or not batches.is_complete:
            return None
        self._rows.is_complete = True
        return self._rows

    def _with_rows(self, rows: Stream, batch: Any) -> Stream | None:  # noqa: ANN401
        before = len(rows.rows)
        try:
            for digest in rows_of_batch(batch):
                add(rows, digest)
        except ValueError:
            return None
        if len(rows.rows) <= ROWS_BESIDE.value and rows.size_bytes <= ROWS_BESIDE_BYTES.value:
            return rows
        self._is_cut = self._may_be_cut and before >= WANTED
        return rows.epoch(0, before) if self._is_cut else None


def _column(array: Any) -> list[tuple[bytes, tuple[float, ...], str, int]]:  # noqa: ANN401
    """Return what `digest_array` returns of each row."""
    import numpy as np

    if array.dtype == object:
        return [digest_array(np.asarray(row, object)) for row in array]
    header = f"{array.dtype}{array.shape[1:]}".encode()
    figures = _figures_of_rows(array)
    rows = np.ascontiguousarray(array)
    return [
        (hash_of(header, row.tobytes()), its_figures, "numbers", row.nbytes)
        for row, its_figures in zip(rows, figures, strict=True)
    ]


def _figures_of_rows(array: Any) -> list[tuple[float, ...]]:  # noqa: ANN401
    """Return the figures of each row, at once for all rows if they are numbers, finite, and not empty."""
    import numpy as np

    try:
        numbers = array.astype(np.float64).reshape(len(array), -1)
    except (TypeError, ValueError):
        return [() for _ in array]
    if not numbers.size or not np.isfinite(numbers).all():
        return [figures_of(row) for row in array]
    size = float(numbers.shape[1])
    columns = (numbers.mean(axis=1), numbers.std(axis=1), numbers.min(axis=1), numbers.max(axis=1))
    return [(*figures, 1.0, size) for figures in zip(*(column.tolist() for column in columns), strict=True)]
