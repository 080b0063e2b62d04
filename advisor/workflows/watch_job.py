"""The phases of `advisor watch --attach`: profile a running job for a moment from time to time, and show what each profile says.

In: the address of the job's profiler server.  Out: one line per capture, until the job ends or Ctrl-C; then a summary.

    capture -> analyse at low priority -> line -> pause

Bounded: one profile is on disk at a time, and of earlier ones only the bottlenecks are kept. A capture that takes long makes the
pauses longer, so that the job spends a limited share of its time in them.
"""

from __future__ import annotations

import shutil
import socket
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from advisor.capture.remote.sampling import SamplingRequest, parse_addresses, sample
from advisor.host.calibration.live import (
    CAPTURE_EVERY_S,
    CAPTURE_S,
    JOB_ANALYSIS_S,
    JOB_ANSWER_S,
    MAX_CAPTURE_SHARE,
    MAX_FAILED_CAPTURES,
)
from advisor.live.bottlenecks import Bottlenecks
from advisor.live.view import describe_finding
from advisor.model import units
from advisor.model.errors import AdvisorError
from advisor.model.live import LiveWindow, WindowFinding
from advisor.report.places import clean
from advisor.sandbox.temporary import temporary_folder
from advisor.workflows.window_analysis import WindowAnalysis

if TYPE_CHECKING:
    from rich.console import Console


@dataclass(frozen=True, slots=True)
class JobToFollow:
    """A running job."""

    address: str
    """`grpc://HOST:PORT` or `HOST:PORT`."""
    every_s: float = CAPTURE_EVERY_S.value
    duration_s: float = CAPTURE_S.value
    source: Path | None = None
    """Script whose calls are matched to the iterators; None: there are no source lines."""
    pause: Callable[[float], None] = time.sleep
    """Waits for a number of seconds."""


class _Followed:
    """What the captures of one job found."""

    def __init__(self) -> None:
        self.begun_ns = time.time_ns()
        self.captures = 0
        self.bottlenecks = Bottlenecks()
        self.steps = 0
        self.step_ns = self.wait_ns = 0.0
        """Sums over the captured steps."""

    def add(self, window: LiveWindow, finding: WindowFinding) -> None:
        """Add the capture and what it shows."""
        self.captures += 1
        self.bottlenecks.count(window)
        self.bottlenecks.add(window, finding)
        if finding.step_ns is not None and finding.wait_share is not None:
            self.steps += finding.steps
            self.step_ns += finding.step_ns * finding.steps
            self.wait_ns += finding.wait_share * finding.step_ns * finding.steps

    @property
    def share(self) -> float:
        """Time inside captures as a share of the time since the beginning."""
        return min(1.0, self.bottlenecks.inside_ns / max(1, time.time_ns() - self.begun_ns))


def follow(job: JobToFollow, console: Console, quiet: bool) -> int:
    """Follow a running job until it ends or the user presses Ctrl-C.

    Args:
        job: The job.
        console: Where to show what the captures find.
        quiet: Show nothing but errors.

    Returns:
        The exit code: 0 after at least one capture.

    Raises:
        AdvisorError: The job cannot be captured at all.
        KeyboardInterrupt: The user pressed Ctrl-C; the summary has been printed.
    """
    addresses = parse_addresses(job.address)
    if len(addresses) > 1:
        raise AdvisorError("--attach follows one job; name one address, or use `advisor capture` for several.")
    (address,) = addresses
    followed = _Followed()

    def say(text: str) -> None:
        if not quiet:
            console.print(clean(text), soft_wrap=True)

    try:
        with temporary_folder("attached") as folder, WindowAnalysis(job.source) as analysis:
            _follow(job, address, folder, analysis, followed, say)
    except KeyboardInterrupt:
        _print_summary(followed, say)
        raise
    _print_summary(followed, say)
    return 0


def _follow(
    job: JobToFollow,
    address: str,
    folder: Path,
    analysis: WindowAnalysis,
    followed: _Followed,
    say: Callable[[str], None],
) -> None:
    failed = 0
    while True:
        begun = time.monotonic()
        try:
            window = _captured(job, address, folder / str(followed.captures + failed + 1))
        except AdvisorError as error:
            failed += 1
            if not followed.captures:
                raise
            if not _is_listening(address):
                say(f"The job at {address} has ended: nothing listens there any more.")
                return
            if failed >= MAX_FAILED_CAPTURES.value:
                say(f"The job at {address} can no longer be captured: {error}")
                return
            say(f"{units.format_clock(time.time_ns())}  {error}")
            job.pause(min(job.every_s, 1.0 * failed))
            continue
        failed = 0
        analysis.add(window)
        finding = _finding(analysis)
        followed.add(window, finding)
        say(f"{units.format_clock(window.start_ns)}  {describe_finding(finding)}")
        took_s = window.cost_ns / units.NS_PER_S
        left_s = max(job.every_s, took_s / MAX_CAPTURE_SHARE.value) - (time.monotonic() - begun)
        if left_s > 0:
            job.pause(left_s)


def _captured(job: JobToFollow, address: str, logdir: Path) -> LiveWindow:
    """Profile the job once.

    Raises:
        AdvisorError: There is no profile.
    """
    start_ns = time.time_ns()
    request = SamplingRequest((address,), logdir, job.duration_s, retries=1)
    try:
        sample(request, lambda progress: None)
    except AdvisorError:
        shutil.rmtree(logdir, ignore_errors=True)
        raise
    now_ns = time.time_ns()
    end_ns = min(now_ns, start_ns + round(job.duration_s * units.NS_PER_S))
    return LiveWindow(str(logdir), address, "", "", 0, 0, start_ns, end_ns, now_ns)


def _finding(analysis: WindowAnalysis) -> WindowFinding:
    """Wait for the analysis of the capture that was just added."""
    end_at = time.monotonic() + JOB_ANALYSIS_S.value
    while time.monotonic() < end_at:
        for _, finding in analysis.finished():
            return finding
        time.sleep(0.05)
    return WindowFinding(problem="The analysis of a capture took too long.")


def _is_listening(address: str) -> bool:
    """Return whether anything accepts connections at `host:port`; if not, the job is gone."""
    host, _, port = address.rpartition(":")
    try:
        with socket.create_connection((host.strip("[]"), int(port)), timeout=JOB_ANSWER_S.value):
            return True
    except OSError:
        return False


def _print_summary(followed: _Followed, say: Callable[[str], None]) -> None:
    if not followed.captures:
        return
    bottlenecks = followed.bottlenecks
    text = f"{units.format_many(followed.captures, 'capture')}"
    if followed.steps:
        mean_ns = followed.step_ns / followed.steps
        text += (
            f" with {units.format_many(followed.steps, 'step')}, {units.format_ns(mean_ns)} on average, "
            f"{units.format_share(followed.wait_ns / followed.step_ns)} of the time waiting for input"
        )
    say(f"{text}.")
    for stretch in bottlenecks.stretches:
        count = units.format_many(stretch.windows, "capture")
        times = f"{units.format_clock(stretch.began_ns)} to {units.format_clock(stretch.latest_ns)}"
        say(f"{times} ({count}): {describe_finding(stretch.finding)}.")
    say(
        f"The captures took {units.format_share(followed.share)} of the job's time ({units.format_ns(bottlenecks.inside_ns)}); "
        f"analysing them took {units.format_ns(bottlenecks.analysis_cpu_ns)} of a core on this machine, at low priority."
    )
    for problem in bottlenecks.problems:
        say(problem)
