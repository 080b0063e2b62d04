"""The hooks in the current process, for programs that import the advisor instead of being run by it.

In: the calls of `install` and `uninstall`, and watches (`process_watch`).  Out: consumers and recorded calls.

The hooks are installed between `install` and `uninstall`, and during a watch. Between two watches they only record the calls
that make datasets. `uninstall` restores the original functions.
"""

from __future__ import annotations

import os
import sys
import threading
import time
from functools import cache
from pathlib import Path
from types import ModuleType, TracebackType
from typing import NoReturn

from advisor.capture.instrument.call_sites import SiteFinder
from advisor.capture.instrument.consumer_hooks import Consumption
from advisor.capture.instrument.consumers import Consumers, ConsumerSteps, LongCall
from advisor.capture.instrument.dataset_api import record_dataset_api
from advisor.capture.instrument.import_hooks import AfterImport
from advisor.capture.instrument.keras_loops import KerasLoops
from advisor.capture.instrument.patches import PATCHING, Patches
from advisor.capture.instrument.recorder import Recorder
from advisor.capture.live_session import LiveSession
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.profiler import Profiler
from advisor.capture.window.watchdog import Watchdog

_PACKAGE = Path(__file__).resolve().parents[1]
"""The advisor's child processes are scripts in this folder: `capture/child.py` and `prove/trial/runs/proof_child.py`."""


class _Follower:
    """Forwards the events of the hooks to the `Monitor` of the current watch, if there is one."""

    def __init__(self) -> None:
        self.monitor: Monitor | None = None

    def call_began(self, call: LongCall) -> None:
        """Note that a thread has entered a call into TensorFlow that may take long."""
        if self.monitor is not None:
            self.monitor.call_began(call)

    def call_ended(self, thread_id: int) -> None:
        """Note that the thread has returned from TensorFlow."""
        if self.monitor is not None:
            self.monitor.call_ended(thread_id)

    def boundary(self, consumer: ConsumerSteps) -> int:
        """Note the start of a step and return its time in ns. Between watches, steps are not recorded."""
        return time.time_ns() if self.monitor is None else self.monitor.boundary(consumer)

    def data_ended(self, consumer: ConsumerSteps) -> None:
        """Note the end of an iterator."""
        if self.monitor is not None:
            self.monitor.data_ended(consumer)

    def poll(self, now_ns: int) -> None:
        """Check for loops inside a tf.function. Called by the watchdog."""
        if self.monitor is not None:
            self.monitor.poll(now_ns)

    def script_profiles(self) -> None:
        """Note that the program is about to start its own profiler session."""
        if self.monitor is not None:
            self.monitor.script_profiles()


class Hooks:
    """The hooks of this process, which can be installed and removed repeatedly.

    There is one instance per process. What was recorded before the hooks were removed is kept.
    """

    def __init__(self) -> None:
        self.follower = _Follower()
        self.profiler: Profiler | None = None
        self.watchdog: Watchdog | None = None
        self.consumers = Consumers()
        self.recorder = Recorder(SiteFinder(), self.warn)
        self.consumption = Consumption(self.recorder.finder, self.consumers, self.follower, self.warn)
        self.keras = KerasLoops(self.consumption, self.follower, self.warn)
        self.warnings: dict[str, None] = {}
        self._patches = Patches()
        self._imports: AfterImport | None = None
        self.live: LiveSession | None = None
        """The counters of the current watch."""
        self._users = 0
        """Number of calls of `acquire` without a matching `release`."""
        self.recorder.is_open = False
        os.register_at_fork(after_in_child=self._forget_in_fork)

    def acquire(self) -> None:
        """Install the hooks, or count one more user if they are installed.

        TensorFlow and Keras are patched when they are imported, or immediately if they are already imported.
        """
        with PATCHING:
            self._users += 1
            if self._users > 1:
                return
            self.recorder.is_open = True
            self._imports = AfterImport(
                {"tensorflow": self._on_tensorflow, "keras": self._on_keras, "tf_keras": self._on_keras}
            )
            self._imports.install()

    def release(self) -> None:
        """Undo one `acquire`. The last one restores the original functions."""
        with PATCHING:
            if not self._users:
                return
            self._users -= 1
            if self._users:
                return
            self.recorder.is_open = False
            if self._imports is not None:
                self._imports.remove()
            self._patches.restore()
            if self.watchdog is not None:
                self.watchdog.stop()
            self._imports = self.watchdog = self.profiler = None

    def warn(self, text: str) -> None:
        """Add a warning to all later recordings; duplicates are dropped."""
        self.warnings.setdefault(text)

    def _on_tensorflow(self, tensorflow: ModuleType) -> None:
        try:
            record_dataset_api(tensorflow, self.recorder, self.warn, self._patches)
            self.consumption.install(tensorflow, self._patches)
            self.profiler = Profiler(tensorflow)
            self.profiler.yield_to_script(self.follower.script_profiles, self._patches)
            self.watchdog = Watchdog(self.follower.poll, never_stuck)
            self.watchdog.start()
        except Exception as error:  # a failure of the hooks must not stop the program
            version = getattr(tensorflow, "__version__", "(unknown version)")
            self.warn(f"TensorFlow {version} could not be instrumented completely ({type(error).__name__}: {error}).")
        if self.follower.monitor is not None:
            self.follower.monitor.profiler = self.profiler
            self.follower.monitor.script_end.watchdog = self.watchdog

    def _on_keras(self, keras: ModuleType) -> None:
        self.keras.install(keras, self._patches)

    def _forget_in_fork(self) -> None:
        """Turn the hooks off in a forked process, which is not recorded."""
        self.recorder.is_open = False
        self.consumers.after_fork()
        if self.follower.monitor is not None:
            self.follower.monitor.switch_off()
        if self.live is not None:
            self.live.switch_off()


@cache
def hooks() -> Hooks:
    """Return the hooks of this process, whether they are installed or not."""
    return Hooks()


class Installed:
    """Result of `install`: in a `with` statement, it calls `uninstall` at the end of the block."""

    def __enter__(self) -> Installed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        uninstall()


_installs = 0
"""Number of calls of `install` without a matching `uninstall`."""
_INSTALLS = threading.Lock()


def install() -> Installed:
    """Install the hooks; see `advisor.install`."""
    global _installs
    if not is_run_by_advisor():
        with _INSTALLS:
            _installs += 1
        hooks().acquire()
    return Installed()


def uninstall() -> None:
    """Remove the hooks; see `advisor.uninstall`."""
    global _installs
    with _INSTALLS:
        if not _installs:
            return
        _installs -= 1
    hooks().release()


def is_run_by_advisor() -> bool:
    """Return whether this process was started by `advisor analyze` or `advisor fix`, which install their own hooks."""
    return any(Path(program).is_relative_to(_PACKAGE) for program in sys.orig_argv[1:2])


def is_watching() -> bool:
    """Return whether a watch is running in this process. There can be only one, because TensorFlow has one profiler."""
    return hooks().follower.monitor is not None


def never_stuck(why: str) -> NoReturn:
    """Do nothing with a script that does not stop when asked to: this one is never asked to."""
    raise AssertionError(why)
