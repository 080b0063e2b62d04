"""Says why there is no verdict: nothing ran, nothing was profiled, or too little was measured.

In: the pipelines and the recording.  Out: a sentence.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from advisor.graph.buffer_readings import readings_sentence
from advisor.model.pipeline import BufferReadings, Pipeline, StepStats
from advisor.model.recording import Recording
from advisor.model.units import format_ns, format_rate


def service_worker(main: Pipeline) -> str:
    """Return the sentence on a pipeline that serves its elements to other processes."""
    rate = f" of {format_rate(main.elements_per_s)}" if main.span_ns else ""
    slowest = (
        f", most of whose time goes to {main.iterator(main.bottleneck.iterator_id).name}" if main.bottleneck else ""
    )
    return (
        f"This is a tf.data service worker with a pipeline{rate}{slowest}. Only the consumers' profiles show whether they wait "
        "for it: put all profiles into one run to see both."
    )


def no_rate(steps: StepStats) -> str:
    """Return the sentence on a pipeline alone that produced too few elements."""
    elements = "1 element" if steps.count == 1 else f"{steps.count} elements"
    return f"The pipeline produced only {elements}, too few to measure its rate: capture a longer window."


def no_step(main: Pipeline, buffer: BufferReadings | None) -> str:
    """Return the sentence on a pipeline of which no step was measured, and whose buffer does not show the answer."""
    sentence = (
        "The profile contains no whole step, so whether input is the problem is unknown: capture a longer window."
    )
    if main.max_call_ns:
        sentence += f" The longest request for an element took {format_ns(main.max_call_ns)}."
    return sentence if buffer is None else sentence + readings_sentence(buffer)


def no_request(recording: Recording | None) -> str:
    """Return the sentence on a run whose profile does not show what its steps wait for."""
    if recording is not None and recording.unprofiled:
        return f"No profile was taken, so what the steps wait for is unknown. {recording.unprofiled}"
    return (
        "The profile shows no request for an element, so what the steps wait for is unknown: capture a longer window."
    )


def no_pipeline(pipelines: Sequence[Pipeline], recording: Recording | None) -> str:
    """Return the sentence on a run without a pipeline that was consumed."""
    if pipelines:
        return (
            "An input pipeline ran, but no consumer requested elements during the profile: the time spent waiting for input is "
            "unknown."
        )
    if recording is None:
        return "The profile contains no input pipeline: no tf.data iterator ran while it was taken."
    times = step_durations(recording)
    steps = f" {len(times)} steps were timed; the median is {format_ns(statistics.median(times))}." if times else ""
    if recording.unprofiled:
        return f"No profile was taken, so the time spent waiting for input is unknown. {recording.unprofiled}{steps}"
    if not recording.calls:
        return f"The script creates no tf.data dataset, so there is no input pipeline to analyse.{steps}"
    if not recording.consumers:
        return "The script creates tf.data datasets but never iterates over one, so nothing was measured."
    if recording.window is None:
        return f"The script ended before anything could be profiled.{steps} Run it with more data or more steps."
    return f"No tf.data iterator ran while the profile was taken.{steps}"


def step_durations(recording: Recording) -> list[int]:
    """Return the step times in nanoseconds, as timed in Python, of the main consumer (or the one with the most steps)."""
    main = {c.id for c in recording.consumers if c.is_main}
    series = max(recording.steps, key=lambda s: (s.consumer_id in main, len(s.start_ns)), default=None)
    starts = series.start_ns if series else ()
    return [b - a for a, b in itertools.pairwise(starts)]
