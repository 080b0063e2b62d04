"""How long the steps waited by tf.data's gap times, for a run whose profile does not show it.

In: the recording.  Out: `GapReadings`, and a clause for the verdict.

The gap times show the wait of Keras' steps without the profiler (`advisor/capture/window/gap_times.py`). The verdict rests on
them only if the profile contains no whole step, or if there is no profile.
"""

from __future__ import annotations

from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.model.pipeline import GapReadings, Pipeline
from advisor.model.recording import Recording
from advisor.model.units import format_count, format_ns, format_share
from advisor.model.window_readings import GapWaits


def gap_readings(main: Pipeline | None, recording: Recording | None) -> GapReadings | None:
    """Return the waits of the main consumer: those of the stretch without the profiler if it has enough steps.

    Args:
        main: The main pipeline; None if there is none.
        recording: What capture recorded; None for a profile without a recording.

    Returns:
        None if the waits are not known from gap times, or of too few steps to say anything.
    """
    if recording is None:
        return None
    own = main.consumer if main is not None else None
    consumers = {own.id} if own is not None else {c.id for c in recording.consumers if c.is_main}
    waits = next((waits for waits in recording.gap_waits if waits.consumer_id in consumers), None)
    rows = [] if waits is None else _unprofiled(waits, recording)
    length_ns = sum(end - start for start, end, _ in rows)
    if len(rows) < MIN_VERDICT_STEPS.value or length_ns <= 0:
        return None
    return GapReadings(len(rows), round(length_ns / len(rows)), sum(wait for _, _, wait in rows) / length_ns)


def describe_gaps(gaps: GapReadings) -> str:
    """Return a clause such as `68 % of 5.2 s (mean of 12 steps without the profiler) was spent waiting ...`."""
    steps = f"mean of {format_count(gaps.steps)} steps without the profiler"
    return (
        f"{format_share(gaps.wait_share)} of {format_ns(gaps.step_ns)} ({steps}) was spent waiting for the input pipeline, by "
        "tf.data's gap times"
    )


def _unprofiled(waits: GapWaits, recording: Recording) -> list[tuple[int, int, int]]:
    """(start, end, wait) of the steps in the stretch without the profiler; of all outside the profile if these are too few."""
    rows = list(zip(waits.start_ns, waits.end_ns, waits.wait_ns, strict=True))
    window = recording.window
    if window is None:
        return rows
    unprofiled = [row for row in rows if window.plain_start_ns <= row[0] and row[1] <= window.plain_end_ns]
    if len(unprofiled) >= MIN_VERDICT_STEPS.value:
        return unprofiled
    return rows if recording.unprofiled else [r for r in rows if r[1] <= window.start_ns or r[0] >= window.end_ns]
