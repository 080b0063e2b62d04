"""The clock that files are dated with."""

from __future__ import annotations

import sys
import time

_REALTIME_COARSE = 5
"""Linux's `CLOCK_REALTIME_COARSE`, for which Python has no name."""


def file_time_ns() -> int:
    """Return the present Unix time in ns, as a file written now is dated.

    Linux dates files with a clock that advances every 1 to 10 ms, so a file can be dated before a `time.time_ns()` that was read
    earlier.
    """
    return time.clock_gettime_ns(_REALTIME_COARSE) if sys.platform == "linux" else time.time_ns()
