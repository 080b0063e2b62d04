"""Measures a part of the current process, for programs that import the advisor instead of being run by it.

In: the start and the end of the code to measure.  Out: a run folder as written by `advisor analyze`; samples and later
windows, if they are asked for. The program is not stopped.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from advisor.capture.in_process import Hooks, hooks, never_stuck
from advisor.capture.instrument.recorder import MAX_CALLS
from advisor.capture.instrument.replay_log import current_seeds
from advisor.capture.live_session import LiveSession
from advisor.capture.script_runner import exception_line
from advisor.capture.window.monitor import Monitor
from advisor.capture.window.python_sampler import PythonSampler, sampler_for
from advisor.capture.window.schedule import Limits
from advisor.host.machine import describe_host
from advisor.model.codec import encode
from advisor.model.live import LiveSample, LiveWindow
from advisor.model.recording import Recording, ScriptExit
from advisor.model.run_folder import RECORDING_NAME, write_whole

_DATASETS_UNSEEN = (
    "The datasets were made before `advisor.install()` was called, so their source lines are unknown; "
    "call `advisor.install()` before the datasets are made."
)


@dataclass(frozen=True, slots=True)
class Live:
    """The counters of a watch."""

    send: Callable[[LiveSample | LiveWindow], None]
    """Called with each sample and window, in a thread of its own; with the last ones in the thread that ends the watch."""
    interval_s: float
    """Seconds between two samples."""
    has_windows: bool
    """Whether later windows may be asked for."""


class ProcessWatch:
    """One watch, from `start` to `finish`."""

    def __init__(self, folder: Path | None, limits: Limits, live: Live | None = None) -> None:
        """Create a watch without starting it.

        Args:
            folder: An empty folder, which becomes the run folder; None: no window is profiled, and nothing is written.
            limits: When to open and close the window.
            live: Counts the steps all the time; None: they are not counted.
        """
        self._hooks = hooks()
        self._folder, self._limits, self._live_request = folder, limits, live
        self._live: LiveSession | None = None
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
        for consumer in hooks.consumers.all():
            consumer.restart()
        self._monitor = monitor = Monitor(
            self._folder or Path(),
            self._limits,
            hooks.consumers,
            is_to_end=True,
            is_profiling=self._folder is not None,
            report=lambda phase, done, total: None,
            warn=self._warnings.setdefault,
            on_measured=self._on_measured,
            on_stuck=never_stuck,
            sampler=self._sampler,
        )
        monitor.profiler, monitor.script_end.watchdog = hooks.profiler, hooks.watchdog
        hooks.follower.monitor = monitor
        request = self._live_request
        if request is not None:
            self._live = hooks.live = LiveSession(
                hooks.recorder,
                hooks.consumers,
                hooks.keras,
                monitor,
                request.send,
                self._warnings.setdefault,
                request.interval_s,
                tuple(sys.argv),
                request.has_windows,
            )
            self._live.start()

    def _sampler(self) -> PythonSampler | None:
        recorder = self._hooks.recorder
        return None if self._folder is None else sampler_for(recorder.calls(), recorder.finder)

    def ask(self, folder: Path) -> None:
        """Ask for a later window; see `LaterWindows.ask`."""
        if self._live is not None:
            self._live.ask(folder)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong so far, in sentences."""
        return tuple(self._warnings)

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
            if self._live is not None:
                self._live.stop()
            monitor.script_ended(script_exit.kind)
            is_measured = monitor.capture is not None or any(consumer.count for consumer in self._hooks.consumers.all())
            if is_measured:
                self._write(script_exit, monitor)
            return is_measured
        finally:
            self._hooks.follower.monitor = self._hooks.live = None
            self._hooks.release()

    def _on_measured(self) -> None:
        self._write(ScriptExit("finished"))
        if self._live is not None and self._folder is not None and self._monitor is not None:
            self._live.own_window_written(self._folder, self._monitor.capture)

    def _write(self, script_exit: ScriptExit, monitor: Monitor | None = None) -> None:
        monitor = monitor or self._monitor
        assert monitor is not None
        if self._folder is None:
            return
        monitor.settle()
        recording = self._recording(script_exit, monitor)
        write_whole(self._folder / "host.json", encode(recording.host))
        write_whole(self._folder / RECORDING_NAME, encode(recording))

    def _recording(self, script_exit: ScriptExit, monitor: Monitor) -> Recording:
        hooks, capture = self._hooks, monitor.capture
        main = capture.consumer if capture is not None else monitor.leader
        used = [
            consumer for consumer in hooks.consumers.all() if consumer.count or consumer.is_loop or consumer is main
        ]
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
            consumers=tuple(consumer.recorded(consumer is main) for consumer in used),
            steps=tuple(consumer.series() for consumer in used if consumer.count),
            window=None if capture is None else capture.window,
            usage=None if capture is None else capture.usage,
            models=() if capture is None else capture.models,
            plain_models=() if capture is None else capture.unprofiled_models,
            buffers=monitor.buffer_levels(),
            gap_waits=() if capture is None else capture.gap_waits,
            python_samples=None if capture is None else capture.python_samples,
            keras=hooks.keras.facts,
            compiles=tuple(hooks.keras.models.compiles),
            losses=tuple(hooks.keras.models.losses),
            product=hooks.keras.models.product,
            unprofiled=monitor.unprofiled,
            goes_on=self._monitor is not None,  # `finish` lets go of it first
            is_seeded=current_seeds().global_seed is not None if "tensorflow" in sys.modules else None,
            warnings=tuple(warnings),
        )


def _script_exit(error: BaseException | None) -> ScriptExit:
    if error is None:
        return ScriptExit("finished")
    if isinstance(error, KeyboardInterrupt):
        return ScriptExit("interrupted", 130, "KeyboardInterrupt")
    return ScriptExit("failed", 1, exception_line(error))


def _program() -> str:
    """Return the command line of the script, or `interactive session` if there is none."""
    main = sys.modules.get("__main__")
    return " ".join(sys.argv) if getattr(main, "__file__", None) and sys.argv[0] else "interactive session"
