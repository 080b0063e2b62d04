"""Deviations of floating-point numbers in units in the last place (ulp), and whether arrays differ in nothing else.

In: pairs of arrays.  Out: the largest `Deviation`, or None if they differ otherwise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any

_MANTISSA_BITS = {"float16": 10, "bfloat16": 7, "float32": 23, "float64": 52}


@dataclass(frozen=True, slots=True)
class Deviation:
    """The largest deviation of all components."""

    ulp: int
    """Representable numbers between the two values; 0 if all elements are equal."""
    component: int = 0
    """Component of the element, counted from 0 as by `tf.nest.flatten`."""
    dtype: str = ""

    @property
    def text(self) -> str:
        """The deviation as a sentence."""
        unit = "unit" if self.ulp == 1 else "units"
        return f"Component {self.component + 1} differs by up to {self.ulp} {unit} in the last place ({self.dtype})."


def deviation_of_arrays(pairs: Iterable[tuple[Sequence[Any], Sequence[Any]]]) -> Deviation | None:
    """Return the largest deviation; None if arrays differ in more than the last digits of floating-point numbers.

    Last digits are the lower half of the bits of the mantissa: more than that is lost only if a result has little to do with its
    inputs, or is computed otherwise.

    Args:
        pairs: Elements of both datasets, each as a sequence of NumPy arrays.
    """
    largest = Deviation(0)
    for columns in pairs:
        if len(columns[0]) != len(columns[1]):
            return None
        for component, (one, two) in enumerate(zip(*columns, strict=True)):
            ulp = _ulp(one, two)
            if ulp is None:
                return None
            if ulp > largest.ulp:
                largest = Deviation(ulp, component, one.dtype.name)
    return largest


def _ulp(one: Any, two: Any) -> int | None:  # noqa: ANN401
    """The largest distance of two arrays in representable numbers; None if they differ in more than last digits."""
    import numpy as np

    if one.dtype != two.dtype or one.shape != two.shape:
        return None
    if one.dtype == object or one.dtype.name not in _MANTISSA_BITS:
        return 0 if np.array_equal(one, two) else None
    if one.tobytes() == two.tobytes():
        return 0
    finite = np.isfinite(one)
    others = one[~finite].tobytes(), two[~np.isfinite(two)].tobytes()
    if not np.array_equal(finite, np.isfinite(two)) or others[0] != others[1]:
        return None
    distance = _distance(_places(one[finite]), _places(two[finite]))
    return distance if distance <= 2 ** (_MANTISSA_BITS[one.dtype.name] // 2) else None


def _places(numbers: Any) -> Any:  # noqa: ANN401
    """The numbers of a type, counted from zero as int64: those next to each other differ by one."""
    import numpy as np

    bits = np.ascontiguousarray(numbers).view(f"i{numbers.dtype.itemsize}")
    lowest = int(np.iinfo(bits.dtype).min)
    wide = bits.astype(np.int64)
    return np.where(wide >= 0, wide, lowest - wide)


def _distance(one: Any, two: Any) -> int:  # noqa: ANN401
    """The largest distance of two arrays of places. Those of float64 can be further apart than int64 holds."""
    import numpy as np

    sizes = np.abs(one).astype(np.uint64), np.abs(two).astype(np.uint64)
    on_one_side = (one < 0) == (two < 0)
    apart = np.where(on_one_side, np.maximum(*sizes) - np.minimum(*sizes), sizes[0] + sizes[1])
    return int(apart.max())
