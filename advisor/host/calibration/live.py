"""Constants of watching a running script or job (`advisor.live`, `advisor.workflows.watch_job`): slow periods, pauses, shares."""

from __future__ import annotations

from advisor.host.calibration.constant import Constant

# -- Slow periods (`advisor.live.slow_periods`)

IN_A_ROW = Constant(3, "samples", "One slow sample is a checkpoint or a pause.")
"""Number of samples that must agree."""
MIN_REFERENCE = Constant(5, "samples")
"""Number of samples before a change can be noticed."""
MAX_REFERENCE = Constant(120, "samples", "Two minutes of samples a second apart.")
"""Number of samples that describe what is usual; older ones are forgotten, so that slow drift is not reported."""
MIN_SLOWDOWN = Constant(
    1.2, "ratio", "Clock rates and other processes change steps by less than that for minutes. Not measured."
)
"""Smallest ratio of step times that is reported."""

# -- When a script is profiled again (`advisor.live.window_plan`)

WINDOW_EVERY_S = Constant(600.0, "s")
"""Default time between two windows."""
MIN_WINDOW_EVERY_S = Constant(60.0, "s", "A window takes seconds of training.")
"""Shortest time between two windows that can be asked for."""
MIN_WINDOW_PAUSE_S = Constant(180.0, "s", "A slow period of minutes has one bottleneck.")
"""Shortest time between the windows of two slow periods."""
MAX_WINDOW_SHARE = Constant(0.05, "share")
"""Maximum share of the run inside windows."""
MAX_WINDOWS = Constant(1_000, "windows", "A run of a week has this many, one every ten minutes.")
"""Maximum number of windows of a run."""
WINDOW_PATIENCE_S = Constant(600.0, "s")
"""Time after which a requested window is given up: the script makes no steps."""

# -- Captures of a running job (`advisor.workflows.watch_job`)

CAPTURE_EVERY_S = Constant(60.0, "s")
"""Default time between the starts of two captures."""
CAPTURE_S = Constant(1.0, "s", "Enough for 20 steps of 50 ms.")
"""Default length of a capture."""
MAX_CAPTURE_SHARE = Constant(0.2, "share")
"""Maximum share of the job's time inside captures and in sending their profiles."""
MAX_FAILED_CAPTURES = Constant(3, "captures")
"""Captures that fail one after the other before the job counts as ended."""
JOB_ANSWER_S = Constant(5.0, "s")
"""Longest wait for a connection to the job."""
JOB_ANALYSIS_S = Constant(180.0, "s")
"""Longest wait for the analysis of a capture."""
