"""The phases of `advisor watch`: run a script to its end, count its steps all the time, and profile short windows of it.

In: a `Request` and where to show and pass on what is seen.  Out: `WatchOutcome`; a run folder as of `advisor analyze`.

    capture to the end, with samples and windows -> read_trace -> analyse -> run_rules -> report

The script is run as it is and in place: it is the user's training, and nothing of it is discarded. The report at the end is on
the first window; the later ones are analysed beside the script and removed.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.live.watched_run import Change, WatchedRun
from advisor.live.window_plan import WindowPlan
from advisor.model.errors import AdvisorError, ScriptFailed
from advisor.model.live import LiveSample, LiveWindow
from advisor.model.run_folder import new_run_folder
from advisor.model.text import message_of
from advisor.workflows.analyze import Request, analyze_run, capture_request_of, write_reports
from advisor.workflows.run_windows import RunWindows, run_windows
from advisor.workflows.saved_recording import read_recording

if TYPE_CHECKING:
    from advisor.capture.request import Progress
    from advisor.engine import LoadedRule
    from advisor.model.outcome import Report
    from advisor.model.settings import Settings

INTERVAL_S = 1.0
"""Seconds between two samples."""
OnSample = Callable[[LiveSample, list[Change]], None]
"""Called with each sample, after `WatchedRun` has it, with the slow periods that begin or end with it and new bottlenecks."""


@dataclass(frozen=True, slots=True)
class WatchOutcome:
    """The end of a watched run."""

    exit_code: int
    """Of the script; 128 + the number of a signal that ended it, as shells say."""
    folder: Path | None
    """The run folder; None if the script failed before anything was measured."""
    report: Report | None
    """The report on the profiled window; None if there is none."""
    problem: str
    """What went wrong, such as why there is no report; empty if nothing did."""


def watch_script(
    request: Request,
    rules: Sequence[LoadedRule],
    settings: Settings,
    run: WatchedRun,
    on_progress: Callable[[Progress], None],
    on_sample: OnSample,
    interval_s: float = INTERVAL_S,
    streams: tuple[int, int] | None = None,
    is_profiled: bool = True,
    plan: WindowPlan | None = None,
) -> WatchOutcome:
    """Run a script to its end and watch it.

    Args:
        request: The script.
        rules: The rules to ask at the end.
        settings: The settings, as returned by `advisor.workflows.analyze.load`.
        run: Receives every sample; it is complete even if this function raises.
        on_progress: Called with progress messages.
        on_sample: Called with every sample; no longer after it has raised an exception.
        interval_s: Seconds between two samples.
        streams: File descriptors for the script's stdout and stderr; None for those of this process.
        is_profiled: Profile a window and analyse it at the end.
        plan: When to profile further windows; None: never.

    Raises:
        AdvisorError: The script cannot be run.
        KeyboardInterrupt: The user pressed Ctrl-C, and the script has ended by itself since.
    """
    from advisor.workflows.calibrate import calibrate_run

    problems: list[str] = []
    windows: RunWindows | None = None

    def on_live(message: LiveSample | LiveWindow) -> None:
        slow = run.add(message) if isinstance(message, LiveSample) else []
        if problems:
            return
        try:
            if isinstance(message, LiveSample):
                on_sample(message, [*slow] if windows is None else windows.on_sample(message, slow))
            elif windows is not None:
                windows.on_window(message)
        except Exception as error:  # a terminal that has gone: an exception here would end the user's training
            problems.append(f"The run was no longer shown ({type(error).__name__}: {message_of(error)}).")

    name = (request.module or "module") if request.path is None else request.path.stem
    try:
        with contextlib.ExitStack() as stack:
            requests_fd = None
            if is_profiled and plan is not None:
                requests_fd, ask = stack.enter_context(_requests())
                windows = stack.enter_context(run_windows(run, plan, ask))
            folder = _captured(
                request, settings, name, interval_s, is_profiled, on_progress, on_live, streams, requests_fd
            )
            if windows is not None:
                windows.finish()
    except ScriptFailed as error:
        if error.script_code is None:
            raise
        return WatchOutcome(error.script_code, None, None, " ".join([str(error), *problems]))
    recording = read_recording(folder)
    exit_code = 0 if recording is None else recording.script_exit.code
    if not is_profiled:
        return WatchOutcome(exit_code, folder, None, " ".join(problems))
    try:
        calibrate_run(folder, None, on_progress)
        report = analyze_run(folder, rules, settings)
        write_reports(report, folder)
    except AdvisorError as error:
        return WatchOutcome(exit_code, folder, None, " ".join([message_of(error), *problems]))
    return WatchOutcome(exit_code, folder, report, " ".join(problems))


def _captured(
    request: Request,
    settings: Settings,
    name: str,
    interval_s: float,
    is_profiled: bool,
    on_progress: Callable[[Progress], None],
    on_live: Callable[[LiveSample | LiveWindow], None],
    streams: tuple[int, int] | None,
    requests_fd: int | None,
) -> Path:
    from advisor.capture.launch import capture

    with new_run_folder(request.out, name) as folder:
        watched = replace(
            capture_request_of(request, settings, folder),
            to_end=True,
            live_s=interval_s,
            passes_output=True,
            is_profiled=is_profiled,
        )
        return capture(watched, on_progress, on_live, streams, requests_fd)


@contextlib.contextmanager
def _requests() -> Iterator[tuple[int, Callable[[Path], None]]]:
    """Make a pipe for requests of windows; yield its end for the child, and what writes a request."""
    read_end, write_end = os.pipe()

    def ask(folder: Path) -> None:
        with contextlib.suppress(OSError):  # the script has just ended
            os.write(write_end, os.fsencode(folder) + b"\n")

    try:
        yield read_end, ask
    finally:
        os.close(read_end)
        os.close(write_end)
