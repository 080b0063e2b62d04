"""Computes the nesting of the intervals of one thread.

In: columns of starts and ends.  Out: the interval that directly encloses each one.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt

Ints = npt.NDArray[np.int64]
Rows = npt.NDArray[np.int32]

MAX_LEVELS = 1_000
"""Number of levels processed as columns, each at a fixed cost; real programs have a few dozen."""


def nest(start: Ints, end: Ints, max_depth: int | None = None) -> Rows:
    """Return the row of the interval that directly encloses each interval; -1 at the top.

    An interval that starts inside another one and ends after it (clock rounding) counts as inside it. Properly nested intervals,
    which are nearly all, are processed as columns; the others one by one.

    Args:
        start: Starts, sorted; of equal ones the longer interval comes first.
        end: Ends.
        max_depth: Maximum number of nested intervals; deeper ones count as directly inside the last of these.
    """
    if not len(start):
        return np.zeros(0, np.int32)
    depth = _depths(start, end)
    if int(depth.max()) > min(MAX_LEVELS, MAX_LEVELS if max_depth is None else max_depth):
        return _nest_one_by_one(start, end, np.arange(len(start)), max_depth, np.full(len(start), -1, np.int32))
    order = np.argsort(depth, kind="stable")
    bounds = np.searchsorted(depth[order], np.arange(int(depth.max()) + 2)).tolist()
    parent = np.full(len(start), -1, np.int32)
    above = order[: bounds[1]]
    for first, last in pairwise(bounds[1:]):
        rows = order[first:last]
        parent[rows] = above[np.searchsorted(above, rows) - 1]
        above = rows
    sticks_out = np.flatnonzero((parent >= 0) & (end > end[parent]))
    if len(sticks_out):
        # an interval that begins after all earlier ones have ended does not depend on them
        begins = np.concatenate([[True], start[1:] >= np.maximum.accumulate(end)[:-1]])
        group = np.cumsum(begins)
        rows = np.flatnonzero(np.isin(group, group[sticks_out]))
        _nest_one_by_one(start, end, rows, max_depth, parent)
    return parent


def _depths(start: Ints, end: Ints) -> Ints:
    """Return the number of earlier intervals that have not ended at the start of each interval."""
    row = np.arange(len(start))
    ended = np.searchsorted(np.sort(end), start, side="right")
    # intervals without a duration end when they start: `ended` also counts those that do not precede the row
    empty = np.concatenate([[0], np.cumsum(end <= start)])
    if empty[-1]:
        ended = ended - (empty[np.searchsorted(start, start, side="right")] - empty[row])
    depth: Ints = row - ended
    return depth


def _nest_one_by_one(start: Ints, end: Ints, rows: npt.NDArray[np.intp], max_depth: int | None, parent: Rows) -> Rows:
    """Set the parents of these rows, which no other row encloses."""
    stack: list[tuple[int, int]] = []
    for row, begin, finish in zip(rows.tolist(), start[rows].tolist(), end[rows].tolist(), strict=True):
        while stack and stack[-1][0] <= begin:
            stack.pop()
        parent[row] = stack[-1][1] if stack else -1
        if max_depth is None or len(stack) < max_depth:
            stack.append((finish, row))
    return parent
