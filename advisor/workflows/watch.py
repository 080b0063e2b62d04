"""The context manager `with advisor.watch(logdir) as run:` for a training loop.

In: a block of the program.  Out: a run folder below the logdir and `run.report`; for long jobs, samples in sinks and `run.live`.

Inside the block nothing raises: a training run is worth more than its report. Problems are described by `run.problem`.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Sequence
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from advisor.capture.in_process import is_run_by_advisor, is_watching
from advisor.capture.process_watch import ProcessWatch
from advisor.capture.window.schedule import Limits
from advisor.host.calibration.window import MAX_EVENTS
from advisor.model.errors import AdvisorError
from advisor.model.text import message_of

if TYPE_CHECKING:
    from rich.console import Console

    from advisor.live.sinks import Sink
    from advisor.live.watched_run import WatchedRun
    from advisor.model.outcome import Report
    from advisor.workflows.live_watch import LiveWatch

_PIPE_WIDTH = 100
"""Columns to use when stdout is not a terminal, as in the command."""


class Watch:
    """Watches a part of this process. Can be entered several times, one after another."""

    def __init__(
        self,
        logdir: str | Path | None = None,
        *,
        warmup: int | None = None,
        steps: int | None = None,
        quiet: bool = False,
        sinks: Sequence[str | Sink] = (),
        profile: bool | None = None,
        windows_every: str | float | None = None,
    ) -> None:
        """See `watch`."""
        is_live = bool(sinks) or windows_every is not None or profile is False
        self._is_profiled = (logdir is not None or not is_live) if profile is None else profile
        if not self._is_profiled:
            _refuse_window_arguments(logdir, warmup, steps)
        self._logdir = _checked(logdir)
        self._limits = Limits(_at_least(0, "warmup", warmup), _at_least(1, "steps", steps), None, MAX_EVENTS.value)
        self._is_quiet = quiet
        self._sinks: tuple[str | Sink, ...] = ()
        self._windows_every = windows_every
        if is_live:
            self._check_live(sinks)
        self._is_live, self._was_started = is_live, False
        self._watch: ProcessWatch | None = None
        self._live: LiveWatch | None = None
        self.report: Report | None = None
        """The report on the last block; None before its end, or if there was nothing to report."""
        self.folder: Path | None = None
        """The run folder of the last block: a logdir for TensorBoard, and a target for `advisor analyze`."""
        self.live: WatchedRun | None = None
        """Steps, waits and slow periods of the last block so far; None if the steps are not counted all the time."""
        self.problem = ""
        """Why there is no report, in one sentence."""

    @property
    def is_running(self) -> bool:
        """Whether a block is being watched."""
        return self._watch is not None

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(error)

    def start(self) -> None:
        """Start watching."""
        self.report, self.folder, self.live, self.problem = None, None, None, ""
        if is_run_by_advisor():
            self._tell("This script is already run by advisor, so its own watch was ignored.")
        elif is_watching():
            self._tell("Another part of this process is already being watched, and TensorFlow has only one profiler.")
        else:
            try:
                self._start()
            except Exception as error:  # the training must continue in any case
                self._close_live()
                self._tell(f"The training could not be watched ({_one_sentence(error)}).")

    def _start(self) -> None:
        folder = _new_folder(self._logdir) if self._is_profiled else None
        live = None
        if self._is_live:
            from advisor.workflows.live_watch import LiveWatch, plan_of

            plan = plan_of(self._windows_every)
            live = self._live = LiveWatch(self._sinks, plan, self._say, is_continued=self._was_started)
            self.live = live.run
        watched = ProcessWatch(folder, self._limits, None if live is None else live.live)
        watched.start()
        if live is not None:
            live.follow(watched)
        self.folder, self._watch, self._was_started = folder, watched, True

    def finish(self, error: BaseException | None = None) -> None:
        """Stop watching: write the run folder, analyse it, print the report.

        Args:
            error: The exception that ended the block, if any.
        """
        watched, self._watch = self._watch, None
        if watched is None:
            return
        try:
            try:
                is_measured = watched.finish(error)
            finally:
                self._close_live(is_in_a_hurry=isinstance(error, KeyboardInterrupt))
            if not is_measured:
                self._remove_folder()
                self._tell("No dataset was consumed while watching, so there is no report.")
            elif self.folder is not None:
                from advisor.replay.random_state import random_state_kept

                with random_state_kept():  # rules may draw random numbers
                    self.report = _analyze(self.folder)
                    if not self._is_quiet:
                        _print(self.report)
        except Exception as failure:
            self._tell(f"There is no report ({_one_sentence(failure)}).")

    def _check_live(self, sinks: Sequence[str | Sink]) -> None:
        from advisor.live.sink_names import check_sinks
        from advisor.workflows.live_watch import plan_of

        self._sinks = check_sinks(sinks)
        plan_of(self._windows_every)

    def _close_live(self, is_in_a_hurry: bool = False) -> None:
        """Close the sinks and print the summary of the block."""
        live, self._live = self._live, None
        if live is None:
            return
        with suppress(Exception):
            live.finish(is_in_a_hurry)
        if not self._is_quiet:
            from advisor.live.display import print_summary

            with suppress(OSError, ValueError):
                print_summary(_console(), live.run, live.warnings)

    def _remove_folder(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _tell(self, problem: str) -> None:
        self.problem = problem
        self._say(problem)

    def _say(self, text: str) -> None:
        if not self._is_quiet:
            with suppress(OSError, ValueError):
                print(f"advisor: {text}", file=sys.stderr)


def watch(
    logdir: str | Path | None = None,
    *,
    warmup: int | None = None,
    steps: int | None = None,
    quiet: bool = False,
    sinks: Sequence[str | Sink] = (),
    profile: bool | None = None,
    windows_every: str | float | None = None,
) -> Watch:
    """Watch the training in a `with` block as `advisor analyze` watches a script, and print a report at its end.

    For long jobs, `sinks` pass on the steps and the input wait once per second, without the profiler: `watch(sinks=[...])`.

    Lines are known of datasets made in the block and of those made after `advisor.install()`. Nothing is raised after the block
    has begun, other than what the block itself raises; a problem is reported in `run.problem`.

    Args:
        logdir: A folder in which a new run folder is made; existing files are not touched. Default: the user's state folder.
        warmup: Number of steps before the measurement starts. Default: until the step time is steady.
        steps: Number of steps to profile. Default: until the figures are stable.
        quiet: Print nothing.
        sinks: Where the samples go: `jsonl:PATH`, `csv:PATH`, `prometheus:[HOST:]PORT`, `tensorboard:LOGDIR`, `wandb` and
            `mlflow` (the program's own run must be active), or objects with `name`, `write(sample, changes)` and `close()`.
        profile: Profile a window and report on it. Default: yes, unless `sinks` or `windows_every` are given without a logdir.
        windows_every: Time between short profiled windows during the whole block, such as `"10min"`; `"never"`: only when steps
            begin to wait longer for input. Default: none.

    Returns:
        A context manager. At the end of the block it has `report` (None if nothing was measured), `folder` (the run folder),
        `problem` (why there is no report, in one sentence) and `live` (the steps so far, if they are counted all the time).

    Raises:
        AdvisorError: The logdir cannot be written, or an argument is out of range, or does not apply.

    Example:
        >>> import advisor
        >>> import tensorflow as tf
        >>> dataset = tf.data.Dataset.range(10_000).batch(32)
        >>> with advisor.watch("logs", warmup=10, steps=20, quiet=True) as run:
        ...     for batch in dataset:
        ...         mean = tf.reduce_mean(tf.cast(batch, tf.float32))
        >>> run.report.analysis.main.steps.count
        20
    """
    return Watch(
        logdir,
        warmup=warmup,
        steps=steps,
        quiet=quiet,
        sinks=sinks,
        profile=profile,
        windows_every=windows_every,
    )


def _refuse_window_arguments(logdir: str | Path | None, warmup: int | None, steps: int | None) -> None:
    given = {"logdir": logdir, "warmup": warmup, "steps": steps}
    name = next((name for name, value in given.items() if value is not None), None)
    if name is not None:
        raise AdvisorError(f"{name} belongs to a profiled window; leave it out, or pass profile=True.")


def _checked(logdir: str | Path | None) -> Path | None:
    if logdir is None:
        return None
    path = Path(logdir).absolute()
    nearest = next((place for place in (path, *path.parents) if place.exists()), path)
    if not nearest.is_dir():
        raise AdvisorError(f"{nearest} is a file; the logdir must be a folder.")
    if not os.access(nearest, os.W_OK | os.X_OK):
        raise AdvisorError(f"Cannot write to {path}: Permission denied; name another logdir.")
    return path


def _at_least(least: int, name: str, value: int | None) -> int | None:
    if value is not None and value < least:
        raise AdvisorError(f"{name} must be at least {least}, not {value}.")
    return value


def _new_folder(logdir: Path | None) -> Path:
    """Create a new folder `advisor-<local time>` below the logdir."""
    if logdir is None:
        from advisor.model.run_folder import default_run_folder

        folder = default_run_folder("watch")
        folder.mkdir(parents=True)
        return folder
    name, number = f"advisor-{datetime.now():%Y%m%d-%H%M%S}", 1
    while True:
        folder = logdir / (name if number == 1 else f"{name}-{number}")
        with suppress(FileExistsError):
            folder.mkdir(parents=True)
            return folder
        number += 1


def _analyze(folder: Path) -> Report:
    from advisor.workflows.analyze import Request, analyze, load

    request = Request(path=folder)
    rules, settings = load(request)
    return analyze(request, rules, settings, on_progress=lambda progress: None)


def _print(report: Report) -> None:
    from advisor.report.report_text import print_report

    print_report(report, _console())


def _console() -> Console:
    from rich.console import Console

    console = Console(highlight=False, markup=False, emoji=False)
    if not (console.is_terminal or console.is_jupyter or "COLUMNS" in os.environ):
        console.width = _PIPE_WIDTH
    return console


def _one_sentence(error: Exception) -> str:
    text = message_of(error)
    return text if isinstance(error, AdvisorError) else f"{type(error).__name__}: {text}"
