"""Watching the process that we are in: for programs that import the advisor instead of being run by it.

In: the start and end of what is to be watched.  Out: a run folder as of `advisor analyze`; the program runs on.

The hooks are in place from `install` to `uninstall`, and during a watch. Between two watches they record the calls that make
datasets, and pass everything else through. `uninstall` puts the original functions back.
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
from advisor.capture.instrument.keras_steps import KerasSteps
from advisor.capture.instrument.patches import PATCHING, Patches
from advisor.capture.instrument.recorder import MAX_CALLS, Recorder
from advisor.capture.instrument.replay_log import current_seeds
from advisor.capture.script_runner import one_line
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.profiler import Profiler
from advisor.capture.window.schedule import Limits
from advisor.capture.window.watchdog import Watchdog
from advisor.host.machine import describe_host
from advisor.model.codec import encode
from advisor.model.recording import Recording, ScriptExit
from advisor.model.run_folder import RECORDING_NAME, write_whole

_PACKAGE = Path(__file__).resolve().parents[1]
"""Both children of ours are run by path: `capture/child.py` and `prove/trial/proof_child.py`."""
_DATASETS_UNSEEN = (
    "The datasets were made before `advisor.install()` was called, so their lines are not known: call it above them."
)


class _Follower:
    """Stands between the hooks and the `Monitor` of the watch under way, if there is one."""

    def __init__(self) -> None:
        self.monitor: Monitor | None = None

    def call_began(self, call: LongCall) -> None:
        """A thread may now be inside TensorFlow for long."""
        if self.monitor is not None:
            self.monitor.call_began(call)

    def call_ended(self, thread_id: int) -> None:
        """That thread is back in Python."""
        if self.monitor is not None:
            self.monitor.call_ended(thread_id)

    def boundary(self, track: Track) -> int:
        """A step begins; between watches nothing is kept of it."""
        return time.time_ns() if self.monitor is None else self.monitor.boundary(track)

    def poll(self, now_ns: int) -> None:
        """The watchdog's look at loops inside a tf.function."""
        if self.monitor is not None:
            self.monitor.poll(now_ns)

    def script_profiles(self) -> None:
        """The program is about to start a profiler session of its own."""
        if self.monitor is not None:
            self.monitor.script_profiles()


class Hooks:
    """What can be put in place in this process, and taken away again. Made once; its recording goes on where it stopped."""

    def __init__(self) -> None:
        self.follower = _Follower()
        self.profiler: Profiler | None = None
        self.watchdog: Watchdog | None = None
        self.tracks = Tracks()
        self.recorder = Recorder(SiteFinder(), self.warn)
        self.consumption = Consumption(self.recorder.finder, self.tracks, self.follower, self.warn)
        self.keras = KerasSteps(self.consumption, self.follower, self.warn)
        self.warnings: dict[str, None] = {}
        self._patches = Patches()
        self._imports: AfterImport | None = None
        self._users = 0
        """How many `acquire` were not followed by a `release` yet."""
        self.recorder.is_open = False
        os.register_at_fork(after_in_child=self._forget_in_fork)

    @property
    def is_installed(self) -> bool:
        """Whether the hooks are in place."""
        return self._users > 0

    def acquire(self) -> None:
        """Put the hooks in place, or count one more user of those in place.

        TensorFlow and Keras are hooked when they are imported, or now if they are.
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
        """The opposite of `acquire`: with the last user the original functions come back."""
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
        """Keep a warning, once, for the recordings to come."""
        self.warnings.setdefault(text)

    def _on_tensorflow(self, tensorflow: ModuleType) -> None:
        try:
            record_dataset_api(tensorflow, self.recorder, self.warn, self._patches)
            self.consumption.install(tensorflow, self._patches)
            self.profiler = Profiler(tensorflow)
            self.profiler.yield_to_script(self.follower.script_profiles, self._patches)
            self.watchdog = Watchdog(self.follower.poll, _never_stuck)
            self.watchdog.start()
        except Exception as error:  # the program goes on whatever happens here
            version = getattr(tensorflow, "__version__", "?")
            self.warn(f"This TensorFlow ({version}) could not be watched fully ({type(error).__name__}: {error}).")
        if self.follower.monitor is not None:
            self.follower.monitor.profiler = self.profiler
            self.follower.monitor.watchdog = self.watchdog

    def _on_keras(self, keras: ModuleType) -> None:
        self.keras.install(keras, self._patches)

    def _forget_in_fork(self) -> None:
        """A forked child of the program is not watched."""
        self.recorder.is_open = False
        self.tracks.after_fork()
        if self.follower.monitor is not None:
            self.follower.monitor.switch_off()


@cache
def hooks() -> Hooks:
    """Those of this process, in place or not."""
    return Hooks()


class Installed:
    """What `install` returns: used in a `with` statement, it uninstalls at the end of the block."""

    def __enter__(self) -> Installed:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        uninstall()


_installs = 0
"""How many calls of `install` were not followed by `uninstall` yet."""
_INSTALLS = threading.Lock()


def install() -> Installed:
    """See `advisor.install`."""
    global _installs
    if not is_run_by_advisor():
        with _INSTALLS:
            _installs += 1
        hooks().acquire()
    return Installed()


def uninstall() -> None:
    """See `advisor.uninstall`."""
    global _installs
    with _INSTALLS:
        if not _installs:
            return
        _installs -= 1
    hooks().release()


def is_run_by_advisor() -> bool:
    """Whether this process is a script under `advisor analyze` or `advisor fix`, which watch it themselves."""
    return any(Path(program).is_relative_to(_PACKAGE) for program in sys.orig_argv[1:2])


def is_watching() -> bool:
    """Whether a watch is under way in this process; TensorFlow has one profiler, so there can be only one."""
    return hooks().follower.monitor is not None


class ProcessWatch:
    """One watch, from `start` to `finish`."""

    def __init__(self, folder: Path, limits: Limits) -> None:
        """`folder`: an empty folder, which becomes the run folder. The profiler is not started yet."""
        self._hooks = hooks()
        self._folder, self._limits = folder, limits
        self._monitor: Monitor | None = None
        self._warnings: dict[str, None] = {}

    def start(self) -> None:
        """Follow the steps from here on; the window opens when they are steady."""
        here = self._hooks
        here.acquire()
        try:
            self._start(here)
        except BaseException:
            here.release()
            raise

    def _start(self, here: Hooks) -> None:
        for track in here.tracks.all():
            track.restart()
        self._monitor = monitor = Monitor(
            self._folder,
            self._limits,
            here.tracks,
            is_to_end=True,
            is_profiling=True,
            report=lambda phase, done, total: None,
            warn=self._warnings.setdefault,
            on_measured=lambda: self._write(ScriptExit("finished")),
            on_stuck=_never_stuck,
        )
        monitor.profiler, monitor.watchdog = here.profiler, here.watchdog
        here.follower.monitor = monitor

    def finish(self, error: BaseException | None = None) -> bool:
        """What was watched is over, by `error` if there is one. Writes the run folder; False: there was nothing to write."""
        monitor, self._monitor = self._monitor, None
        if monitor is None:
            return False
        ended = _how_it_ended(error)
        try:
            monitor.script_ended(ended.kind)
            is_measured = monitor.capture is not None or any(track.count for track in self._hooks.tracks.all())
            if is_measured:
                self._write(ended, monitor)
            return is_measured
        finally:
            self._hooks.follower.monitor = None
            self._hooks.release()

    def _write(self, ended: ScriptExit, monitor: Monitor | None = None) -> None:
        monitor = monitor or self._monitor
        assert monitor is not None
        monitor.settle()
        recording = self._recording(ended, monitor)
        write_whole(self._folder / "host.json", encode(recording.host))
        write_whole(self._folder / RECORDING_NAME, encode(recording))

    def _recording(self, ended: ScriptExit, monitor: Monitor) -> Recording:
        here, capture = self._hooks, monitor.capture
        main = capture.track if capture is not None else monitor.leader
        used = [track for track in here.tracks.all() if track.count or track.is_loop or track is main]
        calls = here.recorder.calls()
        warnings = [*here.warnings, *self._warnings]
        if main is not None and all(call.library for call in calls):
            warnings.append(_DATASETS_UNSEEN)
        if here.recorder.dropped:
            warnings.append(
                f"Only the first {MAX_CALLS} dataset calls were recorded; {here.recorder.dropped} more were made."
            )
        return Recording(
            target=_program(),
            host=describe_host(),
            script_exit=ended,
            argv=tuple(sys.argv),
            cwd=str(Path.cwd()),
            calls=calls,
            consumers=tuple(track.consumer(track is main) for track in used),
            steps=tuple(track.series() for track in used if track.count),
            window=None if capture is None else capture.window,
            usage=None if capture is None else capture.usage,
            models=() if capture is None else capture.models,
            plain_models=() if capture is None else capture.plain_models,
            keras=here.keras.facts,
            unprofiled=monitor.unprofiled,
            is_seeded=current_seeds().global_seed is not None if "tensorflow" in sys.modules else None,
            warnings=tuple(warnings),
        )


def _how_it_ended(error: BaseException | None) -> ScriptExit:
    if error is None:
        return ScriptExit("finished")
    if isinstance(error, KeyboardInterrupt):
        return ScriptExit("interrupted", 130, "KeyboardInterrupt")
    return ScriptExit("failed", 1, one_line(error))


def _program() -> str:
    """The script as it was started, or that there is none."""
    main = sys.modules.get("__main__")
    return " ".join(sys.argv) if getattr(main, "__file__", None) and sys.argv[0] else "interactive session"


def _never_stuck(why: str) -> NoReturn:
    raise AssertionError(why)  # only a script that is to be stopped can be stuck, and this one runs on
