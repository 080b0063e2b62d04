"""The counters of a watch inside a training program: samples to sinks, slow periods, windows on request.

In: the samples and windows of this process.  Out: `WatchedRun`; what the sinks make of them; sentences on stderr.

Samples and windows come from a thread of their own, so that the training does not wait for a slow sink.
"""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Callable, Sequence

from advisor.capture.process_watch import Live, ProcessWatch
from advisor.host.calibration.live import MIN_WINDOW_EVERY_S
from advisor.live.sink_names import open_sink
from advisor.live.sinks import Sink, Sinks
from advisor.live.view import describe
from advisor.live.watched_run import Change, WatchedRun
from advisor.live.window_plan import WindowPlan
from advisor.model.errors import AdvisorError
from advisor.model.live import LiveSample, LiveWindow
from advisor.model.units import parse_seconds
from advisor.workflows.run_windows import RunWindows, run_windows

INTERVAL_S = 1.0
"""Seconds between two samples."""
NEVER = "never"
"""Value of `windows_every` for windows only when steps wait longer than before."""


class LiveWatch:
    """The counters of one block."""

    def __init__(
        self,
        sinks: Sequence[str | Sink],
        plan: WindowPlan | None,
        say: Callable[[str], None],
        is_continued: bool = False,
    ) -> None:
        """Open the sinks; one that cannot be opened is left out, and said.

        Args:
            sinks: As checked by `check_sinks`.
            plan: When to profile later windows; None: never.
            say: Called with each sentence that is reported while the program runs.
            is_continued: Append to the files of an earlier block.
        """
        self.run = WatchedRun()
        self._plan, self._say = plan, say
        self._windows: RunWindows | None = None
        self._lock = threading.Lock()
        self._stack = contextlib.ExitStack()
        self._unopened: list[str] = []
        opened: list[Sink] = []
        self._sinks = self._stack.enter_context(Sinks(opened))
        for sink in sinks:
            try:
                opened.append(open_sink(sink, is_continued))
            except AdvisorError as error:
                self._unopened.append(str(error))
                say(str(error))

    @property
    def live(self) -> Live:
        """What `ProcessWatch` needs to know."""
        return Live(self._send, INTERVAL_S, has_windows=self._plan is not None)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What went wrong with sinks, in sentences."""
        return (*self._unopened, *self._sinks.warnings)

    def follow(self, watched: ProcessWatch) -> None:
        """Ask this watch for windows, as planned."""
        if self._plan is not None:
            self._windows = self._stack.enter_context(run_windows(self.run, self._plan, watched.ask))

    def finish(self, is_in_a_hurry: bool = False) -> None:
        """Wait for the last analysis, and close the sinks. Call it when no more samples come.

        Args:
            is_in_a_hurry: Leave out the last analysis.
        """
        if self._windows is not None and not is_in_a_hurry:
            self._windows.finish()
        self._stack.close()

    def _send(self, message: LiveSample | LiveWindow) -> None:
        with self._lock:
            if isinstance(message, LiveWindow):
                if self._windows is not None:
                    self._windows.on_window(message)
                return
            slow = self.run.add(message)
            changes: list[Change] = [*slow] if self._windows is None else self._windows.on_sample(message, slow)
            self._sinks.write(message, changes)
            for change in changes:
                self._say(describe(change, self.run))


def plan_of(windows_every: str | float | None) -> WindowPlan | None:
    """Return the plan for the argument `windows_every`.

    Raises:
        AdvisorError: It is not a duration, or too short.
    """
    if windows_every is None:
        return None
    if windows_every == NEVER:
        return WindowPlan(every_s=None)
    try:
        seconds = parse_seconds(str(windows_every))
    except ValueError as error:
        raise AdvisorError(f"windows_every: {error}.") from None
    if seconds < MIN_WINDOW_EVERY_S.value:
        raise AdvisorError(
            f"windows_every is at least {MIN_WINDOW_EVERY_S.value:g} s, not {seconds:g} s: a window takes seconds of training."
        )
    return WindowPlan(seconds)
