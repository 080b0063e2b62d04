"""Where the time until a verdict went: the script's start, its first step, the window, and what follows it.

In: the recording of a run, and the begin and end of the command.  Out: `Phases`.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from advisor.model.codec import decode
from advisor.model.recording import Recording
from advisor.model.run_folder import RECORDING_NAME
from advisor.model.units import NS_PER_S


@dataclass(frozen=True)
class Phases:
    """Where the time until the verdict went, in seconds from the start of the command."""

    start_s: float
    """Until the first step or, if Python sees no steps, until the window was opened."""
    first_step_s: float | None
    """None if Python does not see it."""
    window_s: float
    """From then on until the end of what was measured."""
    after_s: float


def read_recording(run: Path) -> Recording:
    """The recording in a run folder."""
    return decode((run / RECORDING_NAME).read_bytes(), Recording)


def phases_of(recording: Recording, start_ns: int, end_ns: int) -> Phases | None:
    """Where the time of a command went; None if its recording has no window.

    Args:
        recording: Of the run.
        start_ns: Start of the command, Unix time.
        end_ns: Its end.
    """
    window = recording.window
    if window is None:
        return None
    main = {consumer.id for consumer in recording.consumers if consumer.is_main}
    series = next((series for series in recording.steps if series.consumer_id in main and series.end_ns), None)
    began_ns = window.plain_start_ns or window.start_ns
    first_step_s = None
    if series is not None and series.first_step == 0:  # else the first steps were dropped
        began_ns, first_end_ns = series.start_ns[0], series.end_ns[0]
        first_step_s = (first_end_ns - began_ns) / NS_PER_S
    closed_ns = max(window.end_ns, window.plain_end_ns)
    return Phases(
        start_s=(began_ns - start_ns) / NS_PER_S,
        first_step_s=first_step_s,
        window_s=(closed_ns - began_ns) / NS_PER_S - (first_step_s or 0.0),
        after_s=(end_ns - closed_ns) / NS_PER_S,
    )
