"""Progress display: one line on a terminal, nothing elsewhere; results are lines that stay, everywhere.

In: `Progress` messages.  Out: a live line on stderr that disappears when the work is done, and the results above it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.text import Text

from advisor.capture.request import RESULT, Progress
from advisor.model import units
from advisor.report.places import clean

_WORDS = {
    "starting": "starting TensorFlow",
    "warming up": "warming up",
    "timing": "timing steps",
    "profiling": "profiling",
    "saving": "saving the profile",
    "reading": "reading the pipeline without training",
    "finishing": "waiting for the script to end",
    "calibrating": "measuring this machine (once)",
    "multiplying": "timing the model's largest product in 32 and in 16 bit",
    "analysing": "analysing",
    "proving": "trying",
    "starting workers": "starting tf.data service",
}
_COUNTED = ("warming up", "timing", "profiling")


def describe(progress: Progress, elapsed_ns: int) -> str:
    """Return a phrase such as `warming up 7/10 steps` or `profiling 35 steps 4.2 s`.

    Args:
        progress: The latest message.
        elapsed_ns: Time since the phase began, in ns.
    """
    words = clean(_WORDS.get(progress.phase, progress.phase))
    if progress.phase in _COUNTED and progress.total:
        words += f" {units.format_count(progress.done)}/{units.format_many(progress.total, 'step')}"
    elif progress.phase in _COUNTED and progress.done:
        words += f" {units.format_many(progress.done, 'step')}"
    if progress.phase in ("timing", "profiling"):
        words += f" {units.format_ns(elapsed_ns)}"
    return f"{words} ({clean(progress.text)})" if progress.phase != "starting" and progress.text else words


def time_left(progress: Progress) -> str:
    """Return a phrase such as `about 3 min left`; empty if the time left is unknown."""
    if progress.left_s is None:
        return ""
    minutes = round(progress.left_s / 60)
    return f"about {minutes} min left" if minutes >= 1 else "under 1 min left"


@contextmanager
def show_progress(console: Console, is_quiet: bool) -> Iterator[Callable[[Progress], None]]:
    """Yield a callback that shows progress messages; silent unless `console` is a terminal."""
    if is_quiet or not console.is_terminal or console.is_dumb_terminal:
        yield lambda progress: None
        return
    with console.status("") as status:
        phase, began = "", time.monotonic_ns()

        def show(progress: Progress) -> None:
            nonlocal phase, began
            now = time.monotonic_ns()
            if progress.phase != phase:
                phase, began = progress.phase, now
            words = ", ".join(filter(None, (time_left(progress), describe(progress, now - began))))
            status.update(Text(words, no_wrap=True, overflow="ellipsis"))

        yield show


@contextmanager
def show_budget(console: Console, is_quiet: bool, budget_s: float) -> Iterator[Callable[[Progress], None]]:
    """Like `show_progress`, with a bar that shows how much of `budget_s` seconds is used, and with results.

    Args:
        console: Where to show it; one line per result unless it is a terminal.
        is_quiet: Show nothing.
        budget_s: Length of the full bar in seconds.

    Yields:
        What to call with each progress message.
    """
    if is_quiet:
        yield lambda progress: None
        return
    if not console.is_terminal or console.is_dumb_terminal:

        def show_result(progress: Progress) -> None:
            _show_result(console, progress)

        yield show_result
        return
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        BarColumn(bar_width=20),
        TimeElapsedColumn(),
        TextColumn(f"of {units.format_ns(budget_s * units.NS_PER_S)}"),
        TextColumn("{task.fields[left]}", markup=False),
        TextColumn("{task.fields[now]}", markup=False),
    )
    with Bar(*columns, console=console, transient=True) as bar:
        task = bar.add_task("", total=budget_s, now="", left="")
        began = phase_began = time.monotonic_ns()
        phase = ("", "")

        def show(progress: Progress) -> None:
            nonlocal phase, phase_began
            if _show_result(bar.console, progress):
                return
            now = time.monotonic_ns()
            if (progress.phase, progress.text) != phase:
                phase, phase_began = (progress.phase, progress.text), now
            used_s = min(budget_s, (now - began) / units.NS_PER_S)
            words = describe(progress, now - phase_began)
            bar.update(task, completed=used_s, now=words, left=time_left(progress))

        yield show


def _show_result(console: Console, progress: Progress) -> bool:
    """Print a result on a line of its own; whether the message is one."""
    if progress.phase != RESULT:
        return False
    console.print(Text(clean(progress.text)), soft_wrap=not console.is_terminal)
    return True
