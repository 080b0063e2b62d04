"""Finds steps that took far longer than the others, and what ran differently in them.

In: a host's activity and its steps.  Out: `OutlierStep`s, the longest first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.host.calibration.analysis import (
    MIN_OUTLIER_STEPS,
    OUTLIER_PART_SHARE,
    OUTLIER_STEP_RATIO,
    RARE_EVENT_SHARE,
)
from advisor.model.activity import HostActivity, HostKind
from advisor.model.profile_statistics import OutlierStep
from advisor.model.robust import DEVIATIONS, median_and_deviation
from advisor.statistics.host_steps import Steps
from advisor.statistics.time_spans import Ints

MAX_OUTLIERS = 100
"""Per host. The time that outliers take is summed over them, so the limit is far above what is listed anywhere."""
MAX_NAMES = 3
"""Maximum number of names reported for an outlier."""
_WRAPPERS = (HostKind.MARKER, HostKind.STEP, HostKind.FUNCTION_CALL, HostKind.TRACED_CALL, HostKind.EXECUTOR)


def find_outliers(host: str, activity: HostActivity, steps: Steps) -> list[OutlierStep]:
    """Find the steps that are longer than the median by 3.5 robust deviations and by half.

    The median and its deviation are used because the outliers themselves raise a mean and a standard deviation: of twenty equal
    outliers in 500 steps, slightly shorter ones would be taken for ordinary.

    Args:
        host: Name of the host.
        activity: Its activity.
        steps: Its steps.

    Returns:
        The outliers, longest first.
    """
    if len(steps) < MIN_OUTLIER_STEPS.value:
        return []
    length = (steps.end_ps - steps.start_ps).astype(np.float64)
    median, deviation = median_and_deviation(length.tolist())
    is_outlier = length > max(median + DEVIATIONS * deviation, OUTLIER_STEP_RATIO.value * median)
    rows = np.flatnonzero(is_outlier)
    rows = rows[np.argsort(-length[rows], kind="stable")][:MAX_OUTLIERS]
    if not len(rows):
        return []
    ordinary = np.flatnonzero(~is_outlier)
    usual, runs = _sums_by_name(activity, steps, ordinary, np.zeros(len(ordinary), np.int64))
    times, _ = _sums_by_name(activity, steps, rows, np.arange(len(rows)))
    usual, runs = usual[0] / len(ordinary), runs[0] / len(ordinary)
    usual_length = float(length[ordinary].mean())
    outliers = []
    for row, here in zip(rows.tolist(), times, strict=True):
        more = here - usual
        extra = float(length[row]) - usual_length
        grown = [
            number
            for number in np.argsort(-more).tolist()[: 2 * MAX_NAMES]
            if more[number] >= OUTLIER_PART_SHARE.value * extra
        ]
        rare = [number for number in grown if runs[number] < RARE_EVENT_SHARE.value]
        outliers.append(
            OutlierStep(
                host=host,
                number=int(steps.number[row]),
                duration_ns=round(float(length[row]) / 1000),
                ran_then=tuple(activity.names[number] for number in rare[:MAX_NAMES]),
                slower_then=tuple(activity.names[number] for number in grown if number not in rare)[:MAX_NAMES],
            )
        )
    return outliers


def _sums_by_name(
    activity: HostActivity, steps: Steps, rows: Ints, groups: Ints
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return (time in ps, number) of the events in those steps, over all threads, without enclosing events.

    Args:
        activity: The host's activity.
        steps: Its steps.
        rows: Shape (n,): the steps to look at.
        groups: Shape (n,): the group, from 0, that each of them belongs to.

    Returns:
        Two arrays of shape (groups, names).
    """
    order = np.argsort(steps.start_ps[rows], kind="stable")
    start, end, group = steps.start_ps[rows][order], steps.end_ps[rows][order], groups[order]
    at = np.searchsorted(start, activity.start_ps, side="right") - 1
    inside = (at >= 0) & (activity.start_ps < end[np.maximum(at, 0)])
    inside &= ~np.isin(activity.kind, np.array(_WRAPPERS, np.uint8))
    at = at[inside]
    length = np.minimum(activity.duration_ps[inside], np.maximum(end[at] - activity.start_ps[inside], 0))
    num_names, num_groups = max(1, len(activity.names)), int(group.max()) + 1
    cell = group[at].astype(np.int64) * num_names + activity.name[inside]
    shape = (num_groups, num_names)
    time = np.bincount(cell, weights=length.astype(np.float64), minlength=num_groups * num_names)
    runs = np.bincount(cell, minlength=num_groups * num_names)
    return time.astype(np.float64).reshape(shape), runs.astype(np.float64).reshape(shape)
