"""A monitor that reports to nobody and a profiler that profiles nothing, for loops that a test makes on a clock of its own."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.process_memory import ProcessMemory
from advisor.capture.window.python_sampler import PythonSampler
from advisor.capture.window.schedule import Limits


class Sessions:
    """Stands in for the `Profiler`: counts sessions and writes a profile.

    Args:
        on_write: Called when a profile is written.
    """

    def __init__(self, on_write: Callable[[], None] = lambda: None) -> None:
        self.is_running = self.is_users_running = False
        self.memory = ProcessMemory()
        self.started = self.saved = 0
        self.folder: Path | None = None
        self._on_write = on_write

    def start(self, folder: Path) -> bool:
        assert not self.is_running
        self.is_running, self.folder = True, folder
        self.started += 1
        return True

    def stop(self, save: bool = True) -> None:
        if self.is_running and save:
            assert self.folder is not None
            path = self.folder / "plugins" / "profile" / "now" / "host.xplane.pb"
            path.parent.mkdir(parents=True)
            path.write_bytes(bytes(2500))
            self.saved += 1
            self._on_write()
        self.is_running = False


def quiet_monitor(
    folder: Path,
    consumers: Consumers,
    limits: Limits | None = None,
    *,
    is_to_end: bool = False,
    is_profiling: bool = True,
    warn: Callable[[str], None] = pytest.fail,
    sampler: Callable[[], PythonSampler | None] = lambda: None,
) -> Monitor:
    """Make a monitor; a script that does not stop fails the test."""
    return Monitor(
        folder,
        limits or Limits(),
        consumers,
        is_to_end=is_to_end,
        is_profiling=is_profiling,
        report=lambda phase, done, total: None,
        warn=warn,
        on_measured=lambda: None,
        on_stuck=pytest.fail,
        sampler=sampler,
    )
