"""Measures the current process, for programs that import the advisor instead of being run by it.

In: the start and the end of the code to measure.  Out: a run folder as written by `advisor analyze`. The program is not stopped.

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
from advisor.capture.instrument.consumers import LongCall, Track, Tracks
from advisor.capture.instrument.dataset_api import record_dataset_api
from advisor.capture.instrument.import_hooks import AfterImport
from advisor.capture.instrument.keras_loops import KerasLoops
from advisor.capture.instrument.patches import PATCHING, Patches
from advisor.capture.instrument.recorder import MAX_CALLS, Recorder
from advisor.capture.instrument.replay_log import current_seeds
from advisor.capture.script_runner import one_line
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.profiler import Profiler
from advisor.capture.window.python_sampler import sampler_for
from advisor.capture.window.schedule import Limits
from advisor.capture.window.watchdog import Watchdog
from advisor.host.machine import describe_host
from advisor.model.codec import encode
from advisor.model.recording import Recording, ScriptExit
from advisor.model.run_folder import RECORDING_NAME, write_whole

_PACKAGE = Path(__file__).resolve().parents[1]
"""The advisor's child processes are scripts in this folder: `capture/child.py` and `prove/trial/proof_child.py`."""
_DATASETS_UNSEEN = (
    "The datasets were made before `advisor.install()` was called, so their source lines are unknown; "
    "call `advisor.install()` before the datasets are made."
)


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

    def boundary(self, track: Track) -> int:
        """Note the start of a step and return its time in ns. Between watches, steps are not recorded."""
        return time.time_ns() if self.monitor is None else self.monitor.boundary(track)

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
        self.tracks = Tracks()
        self.recorder = Recorder(SiteFinder(), self.warn)
        self.consumption = Consumption(self.recorder.finder, self.tracks, self.follower, self.warn)
        self.keras = KerasLoops(self.consumption, self.follower, self.warn)
        self.warnings: dict[str, None] = {}
        self._patches = Patches()
        self._imports: AfterImport | None = None
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
            self.watchdog = Watchdog(self.follower.poll, _never_stuck)
            self.watchdog.start()
        except Exception as error:  # a failure of the hooks must not stop the program
            version = getattr(tensorflow, "__version__", "(unknown version)")
            self.warn(f"TensorFlow {version} could not be instrumented completely ({type(error).__name__}: {error}).")
        if self.follower.monitor is not None:
            self.follower.monitor.profiler = self.profiler
            self.follower.monitor.watchdog = self.watchdog

    def _on_keras(self, keras: ModuleType) -> None:
        self.keras.install(keras, self._patches)

    def _forget_in_fork(self) -> None:
        """Turn the hooks off in a forked process, which is not recorded."""
        self.recorder.is_open = False
        self.tracks.after_fork()
        if self.follower.monitor is not None:
            self.follower.monitor.switch_off()


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


class ProcessWatch:
    """One watch, from `start` to `finish`."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """Create a watch without starting it.

        Args:
            folder: An empty folder, which becomes the run folder.
            limits: When to open and close the window.
        """
        self._hooks = hooks()
        self._folder, self._limits = folder, limits
        self._monitor: Monitor | None = None
        self._warnings: dict[str, None] = {}

    def start(self) -> None:
        """Start to follow the steps; the window opens when their durations are stable."""
        self._hooks.acquire()
        try:
            self._start(self._hooks)
        except BaseException:
            self._hooks.release()
            raise

    def _start(self, hooks: Hooks) -> None:
        for track in hooks.tracks.all():
            track.restart()
        self._monitor = monitor = Monitor(
            self._folder,
            self._limits,
            hooks.tracks,
            is_to_end=True,
            is_profiling=True,
            report=lambda phase, done, total: None,
            warn=self._warnings.setdefault,
            on_measured=lambda: self._write(ScriptExit("finished")),
            on_stuck=_never_stuck,
            sampler=lambda: sampler_for(hooks.recorder.calls(), hooks.recorder.finder),
        )
        monitor.profiler, monitor.watchdog = hooks.profiler, hooks.watchdog
        hooks.follower.monitor = monitor

    def finish(self, error: BaseException | None = None) -> bool:
        """End the watch and write the run folder.

        Args:
            error: The exception that ended the measured code, if any.

        Returns:
            False if nothing was measured; then nothing is written.
        """
        monitor, self._monitor = self._monitor, None
        if monitor is None:
            return False
        script_exit = _script_exit(error)
        try:
            monitor.script_ended(script_exit.kind)
            is_measured = monitor.capture is not None or any(track.count for track in self._hooks.tracks.all())
            if is_measured:
                self._write(script_exit, monitor)
            return is_measured
        finally:
            self._hooks.follower.monitor = None
            self._hooks.release()

    def _write(self, script_exit: ScriptExit, monitor: Monitor | None = None) -> None:
        monitor = monitor or self._monitor
        assert monitor is not None
        monitor.settle()
        recording = self._recording(script_exit, monitor)
        write_whole(self._folder / "host.json", encode(recording.host))
        write_whole(self._folder / RECORDING_NAME, encode(recording))

    def _recording(self, script_exit: ScriptExit, monitor: Monitor) -> Recording:
        hooks, capture = self._hooks, monitor.capture
        main = capture.track if capture is not None else monitor.leader
        used = [track for track in hooks.tracks.all() if track.count or track.is_loop or track is main]
        calls = hooks.recorder.calls()
        warnings = [*hooks.warnings, *self._warnings]
        if main is not None and all(call.library for call in calls):
            warnings.append(_DATASETS_UNSEEN)
        if hooks.recorder.dropped:
            warnings.append(
                f"Only the first {MAX_CALLS} dataset calls were recorded; {hooks.recorder.dropped} more were made."
            )
        return Recording(
            target=_program(),
            host=describe_host(),
            script_exit=script_exit,
            argv=tuple(sys.argv),
            cwd=str(Path.cwd()),
            calls=calls,
            consumers=tuple(track.consumer(track is main) for track in used),
            steps=tuple(track.series() for track in used if track.count),
            window=None if capture is None else capture.window,
            usage=None if capture is None else capture.usage,
            models=() if capture is None else capture.models,
            plain_models=() if capture is None else capture.plain_models,
            python_samples=None if capture is None else capture.python_samples,
            keras=hooks.keras.facts,
            compiles=tuple(hooks.keras.models.compiles),
            losses=tuple(hooks.keras.models.losses),
            product=hooks.keras.models.product,
            unprofiled=monitor.unprofiled,
            is_seeded=current_seeds().global_seed is not None if "tensorflow" in sys.modules else None,
            warnings=tuple(warnings),
        )


def _script_exit(error: BaseException | None) -> ScriptExit:
    if error is None:
        return ScriptExit("finished")
    if isinstance(error, KeyboardInterrupt):
        return ScriptExit("interrupted", 130, "KeyboardInterrupt")
    return ScriptExit("failed", 1, one_line(error))


def _program() -> str:
    """Return the command line of the script, or `interactive session` if there is none."""
    main = sys.modules.get("__main__")
    return " ".join(sys.argv) if getattr(main, "__file__", None) and sys.argv[0] else "interactive session"


def _never_stuck(why: str) -> NoReturn:
    raise AssertionError(
        why
    )  # only called for a script that does not stop when asked to, and this one is never stopped
