"""A monitor that reports to nobody, for loops that a test makes on a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.instrument.consumers import Tracks
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.schedule import Limits


def quiet_monitor(
    folder: Path,
    tracks: Tracks,
    limits: Limits | None = None,
    *,
    is_to_end: bool = False,
    is_profiling: bool = True,
    warn: Callable[[str], None] = pytest.fail,
) -> Monitor:
    """Make a monitor; a script that does not stop fails the test."""
    return Monitor(
        folder,
        limits or Limits(),
        tracks,
        is_to_end=is_to_end,
        is_profiling=is_profiling,
        report=lambda phase, done, total: None,
        warn=warn,
        on_measured=lambda: None,
        on_stuck=pytest.fail,
    )
