"""Finds steps that took far longer than the others, and what ran differently in them.

In: a host's activity and its steps.  Out: `OutlierStep`s, the longest first.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from advisor.model.activity import HostActivity, HostKind
from advisor.model.profile_statistics import OutlierStep
from advisor.statistics.host_steps import Steps
from advisor.statistics.time_spans import Ints

SIGMAS = 3
"""Threshold in standard deviations: fewer than 3 in 1000 steps of a normal distribution exceed it."""
MIN_STEPS = 11
"""Minimum number of steps; with fewer, no step can be 3 standard deviations above the mean: (n - 1) / sqrt(n) is the maximum."""
MAX_OUTLIERS = 5
MAX_NAMES = 3
MIN_PART = 0.2
"""A name is reported if it accounts for this share of the additional time."""
RARE = 0.1
"""An event that runs in a smaller share of other steps counts as additional instead of slower: an op that waited
for a core takes many times as long as usual."""
_WRAPPERS = (HostKind.MARKER, HostKind.STEP, HostKind.FUNCTION_CALL, HostKind.TRACED_CALL, HostKind.EXECUTOR)


def find_outliers(host: str, activity: HostActivity, steps: Steps) -> list[OutlierStep]:
    """Find the steps longer than the mean plus three standard deviations.

    Args:
        host: Name of the host.
        activity: Its activity.
        steps: Its steps.

    Returns:
        The outliers, longest first.
    """
    if len(steps) < MIN_STEPS:
        return []
    length = (steps.end_ps - steps.start_ps).astype(np.float64)
    limit = length.mean() + SIGMAS * length.std()
    rows = np.flatnonzero(length > limit)
    rows = rows[np.argsort(-length[rows], kind="stable")][:MAX_OUTLIERS]
    if not len(rows):
        return []
    ordinary = np.flatnonzero(length <= limit)
    usual, runs = (sums / len(ordinary) for sums in _sums_by_name(activity, steps, ordinary))
    usual_length = float(length[ordinary].mean())
    outliers = []
    for row in rows.tolist():
        here, _ = _sums_by_name(activity, steps, np.array([row]))
        more = here - usual
        extra = float(length[row]) - usual_length
        grown = [number for number in np.argsort(-more).tolist()[: 2 * MAX_NAMES] if more[number] >= MIN_PART * extra]
        rare = [number for number in grown if runs[number] < RARE]
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
    activity: HostActivity, steps: Steps, rows: Ints
) -> tuple[npt.NDArray[np.float64], npt.NDArray[np.float64]]:
    """Return (time in ps, number) of the events of each name in those steps, over all threads, without enclosing events."""
    order = np.argsort(steps.start_ps[rows], kind="stable")
    start, end = steps.start_ps[rows][order], steps.end_ps[rows][order]
    at = np.searchsorted(start, activity.start_ps, side="right") - 1
    inside = (at >= 0) & (activity.start_ps < end[np.maximum(at, 0)])
    inside &= ~np.isin(activity.kind, np.array(_WRAPPERS, np.uint8))
    length = np.minimum(activity.duration_ps, np.maximum(end[np.maximum(at, 0)] - activity.start_ps, 0))
    weights = length[inside].astype(np.float64)
    names, least = activity.name[inside], max(1, len(activity.names))
    time, runs = np.bincount(names, weights=weights, minlength=least), np.bincount(names, minlength=least)
    return time.astype(np.float64), runs.astype(np.float64)
