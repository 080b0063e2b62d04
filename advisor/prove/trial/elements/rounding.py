"""Whether two datasets differ in nothing but the last digits of floating-point numbers, and by how much.

In: pairs of elements.  Out: the largest deviation in units in the last place (ulp), or None if they differ otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from advisor.prove.trial.elements.deviations import Deviation, deviation_of_arrays


def largest_deviation(pairs: Iterable[tuple[Any, Any]]) -> Deviation | None:
    """Return the largest deviation; None if elements differ in more than the last digits of floating-point numbers.

    See `deviation_of_arrays`.

    Args:
        pairs: Elements of both datasets, as TensorFlow yields them.
    """
    return deviation_of_arrays((_tensors(before), _tensors(after)) for before, after in pairs)


def _tensors(element: Any) -> list[Any]:  # noqa: ANN401
    import numpy as np
    import tensorflow as tf

    return [
        np.asarray(tensor.numpy() if hasattr(tensor, "numpy") else tensor)
        for tensor in tf.nest.flatten(element, expand_composites=True)
    ]
