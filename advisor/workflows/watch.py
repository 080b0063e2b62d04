"""The context manager `with advisor.watch(logdir) as run:` for a training loop.

In: a block of the program.  Out: a run folder below the logdir, and `run.report`.

Inside the block nothing raises: a training run is worth more than its report. Problems are described by `run.problem`.
"""

from __future__ import annotations

import os
import shutil
import sys
from contextlib import suppress
from datetime import datetime
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING

from advisor.capture.in_process import ProcessWatch, is_run_by_advisor, is_watching
from advisor.capture.window.schedule import Limits
from advisor.host.calibration.window import MAX_EVENTS
from advisor.model.errors import AdvisorError
from advisor.model.text import message_of

if TYPE_CHECKING:
    from advisor.model.outcome import Report

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
    ) -> None:
        """See `watch`."""
        self._logdir = _checked(logdir)
        self._limits = Limits(_at_least(0, "warmup", warmup), _at_least(1, "steps", steps), None, MAX_EVENTS.value)
        self._is_quiet = quiet
        self._watch: ProcessWatch | None = None
        self.report: Report | None = None
        """The report on the last block; None before its end, or if there was nothing to report."""
        self.folder: Path | None = None
        """The run folder of the last block: a logdir for TensorBoard, and a target for `advisor analyze`."""
        self.problem = ""
        """Why there is no report, in one sentence."""

    def __enter__(self) -> Watch:
        self.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.finish(error)

    def start(self) -> None:
        """Start watching."""
        self.report, self.folder, self.problem = None, None, ""
        if is_run_by_advisor():
            self._tell("This script is already run by advisor, so its own watch was ignored.")
        elif is_watching():
            self._tell("Another part of this process is already being watched, and TensorFlow has only one profiler.")
        else:
            try:
                folder = _new_folder(self._logdir)
                watched = ProcessWatch(folder, self._limits)
                watched.start()
                self.folder, self._watch = folder, watched
            except Exception as error:  # the training must continue in any case
                self._tell(f"The training could not be watched ({_one_sentence(error)}).")

    def finish(self, error: BaseException | None = None) -> None:
        """Stop watching: write the run folder, analyse it, print the report.

        Args:
            error: The exception that ended the block, if any.
        """
        watched, self._watch = self._watch, None
        if watched is None or self.folder is None:
            return
        try:
            if not watched.finish(error):
                self._remove_folder()
                self._tell("No dataset was consumed while watching, so there is no report.")
                return
            from advisor.replay.random_state import random_state_kept

            with random_state_kept():  # rules may draw random numbers
                self.report = _analyze(self.folder)
                if not self._is_quiet:
                    _print(self.report)
        except Exception as failure:
            self._tell(f"There is no report ({_one_sentence(failure)}).")

    def _remove_folder(self) -> None:
        if self.folder is not None:
            shutil.rmtree(self.folder, ignore_errors=True)
            self.folder = None

    def _tell(self, problem: str) -> None:
        self.problem = problem
        if not self._is_quiet:
            with suppress(OSError, ValueError):
                print(f"advisor: {problem}", file=sys.stderr)


def watch(
    logdir: str | Path | None = None, *, warmup: int | None = None, steps: int | None = None, quiet: bool = False
) -> Watch:
    """Watch the training in a `with` block as `advisor analyze` watches a script, and print a report at its end.

    Lines are known of datasets made in the block and of those made after `advisor.install()`. Nothing is raised after the block
    has begun, other than what the block itself raises; a problem is reported in `run.problem`.

    Args:
        logdir: A folder in which a new run folder is made; existing files are not touched. Default: the user's state folder.
        warmup: Number of steps before the measurement starts. Default: until the step time is steady.
        steps: Number of steps to profile. Default: until the figures are stable.
        quiet: Print nothing.

    Returns:
        A context manager. At the end of the block it has `report` (None if nothing was measured), `folder` (the run folder) and
        `problem` (why there is no report, in one sentence).

    Raises:
        AdvisorError: The logdir cannot be written, or an argument is out of range.

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
    return Watch(logdir, warmup=warmup, steps=steps, quiet=quiet)


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
    from rich.console import Console

    from advisor.report.report_text import print_report

    console = Console(highlight=False, markup=False, emoji=False)
    if not (console.is_terminal or console.is_jupyter or "COLUMNS" in os.environ):
        console.width = _PIPE_WIDTH
    print_report(report, console)


def _one_sentence(error: Exception) -> str:
    text = message_of(error)
    return text if isinstance(error, AdvisorError) else f"{type(error).__name__}: {text}"
