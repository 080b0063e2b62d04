"""Decides whether input is the bottleneck and estimates the maximum possible speedup.

In: the pipelines and the recording.  Out: `Verdict`, with a sentence for the report.
"""

from __future__ import annotations

import itertools
import statistics
from collections.abc import Sequence

from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.model.pipeline import Pipeline, Verdict
from advisor.model.recording import Recording
from advisor.model.units import format_ns, format_rate, format_ratio, format_share

MODERATE_WAIT_SHARE = 0.05
"""Share of step time spent waiting for input from which a run is input-bound. Source: XProf's thresholds."""
HIGH_WAIT_SHARE = 0.20
"""Share from which it is highly input-bound. Source: XProf's thresholds."""
LIMITS = {"node": "pipeline", "cpu": "cpu", "gil": "gil", "disk": "disk"}


_BATCHING = ("batch", "padded_batch", "ragged_batch")
_KEEPING = (
    "map",
    "prefetch",
    "repeat",
    "take",
    "skip",
    "shuffle",
    "cache",
    "with_options",
    "apply",
    "shard",
    "snapshot",
    "filter",
)
"""Methods after which an element is still one batch."""
_RESOURCES = {"cpu": "the cores", "gil": "Python's global interpreter lock", "disk": "the disk"}
_STEPS = {
    "profiled": "profiled steps",
    "unprofiled": "steps without the profiler",
    "estimated": "steps without the profiler, estimated from the profiled ones",
}
"""`Verdict.wait_steps` in words. The statistics pages use profiled steps, whose shares differ."""


def judge(pipelines: Sequence[Pipeline], recording: Recording | None, wait_steps: str = "profiled") -> Verdict:
    """Judge the main pipeline.

    Args:
        pipelines: All pipelines, at most one of which is the main one.
        recording: What capture recorded; None for a profile without a recording.
        wait_steps: The steps that the wait was measured on; see `Verdict`.
    """
    main = next((p for p in pipelines if p.is_main), None)
    if main is None:
        return Verdict(False, None, None, None, "unknown", _no_pipeline(pipelines, recording))
    if main.serves_elements:
        return Verdict(False, None, None, None, "unknown", _service_worker(main))
    if main.steps is None or main.steps.count < MIN_VERDICT_STEPS.value:
        return Verdict(False, None, None, main.steps, "unknown", _too_few_steps(main))
    if recording is not None and recording.is_pipeline_alone:
        return _pipeline_alone(main, wait_steps)
    share = main.wait_share
    ceiling = 1 / (1 - min(share, 0.999))
    measured = _measured_ceiling(main, recording)
    if measured is not None:
        ceiling = measured
    level = "high" if share >= HIGH_WAIT_SHARE else "moderate" if share >= MODERATE_WAIT_SHARE else "none"
    is_bound = level != "none"
    limit = LIMITS[main.bottleneck.resource] if is_bound and main.bottleneck else "unknown" if is_bound else "model"
    if is_bound:
        word = "Input is the problem" if level == "high" else "Input costs some time"
        sentence = (
            f"{word}: {format_share(share)} of the step time is spent waiting for the input pipeline ({_STEPS[wait_steps]}). "
            f"{_ceiling_sentence(ceiling, measured is not None, recording)}"
        )
    else:
        sentence = (
            f"Input is not the problem: {format_share(share)} of the step time is spent waiting for the input pipeline "
            f"({_STEPS[wait_steps]}). Look at the model and the device side."
        )
    if recording is not None and recording.as_if_step_ns is not None:
        sentence = _imagined(sentence, recording.as_if_step_ns, share)
    return Verdict(is_bound, share, ceiling, main.steps, limit, sentence, measured is not None, level, wait_steps)


def _imagined(sentence: str, step_ns: int, share: float) -> str:
    """The sentence for a training that was replaced by waits; the rest is what MLPerf Storage calls accelerator utilisation."""
    said = sentence.removesuffix(" Look at the model and the device side.")
    return (
        f"As if a step took {format_ns(step_ns)} on a device of its own (accelerator utilisation {format_share(1 - share)}): "
        f"{said[:1].lower()}{said[1:]}"
    )


def _pipeline_alone(main: Pipeline, wait_steps: str) -> Verdict:
    """The verdict on a pipeline that is read as fast as possible: there is no step that a wait could be compared with."""
    bottleneck = main.bottleneck
    limit = LIMITS[bottleneck.resource] if bottleneck is not None else "unknown"
    sentence = (
        f"The pipeline alone produces {_rates(main)}{_limited_by(main)}. No training was measured, so whether it waits for "
        "input is unknown."
    )
    return Verdict(True, main.wait_share, None, main.steps, limit, sentence, False, "high", wait_steps)


def _rates(main: Pipeline) -> str:
    """The rate at the root: of batches and of their elements, if the elements at the root are batches of a known size."""
    for call in (call for it in main.iterators for call in reversed(it.calls)):  # the consumer's end first
        size = call.arguments.get("batch_size")
        if call.method in _BATCHING and isinstance(size, int):
            batches = format_rate(main.elements_per_s, "batches", "batch")
            return f"{batches} ({format_rate(main.elements_per_s * size)})"
        if call.method not in _KEEPING:
            break
    return format_rate(main.elements_per_s)


def _limited_by(main: Pipeline) -> str:
    bottleneck = main.bottleneck
    if bottleneck is None:
        return ""
    iterator = main.iterator(bottleneck.iterator_id)
    call = iterator.main_call
    name = iterator.name if call is None else f"{call.method}({call.function.name})" if call.function else call.method
    site = call.site if call is not None else None
    where = f" at {site.file.replace(chr(92), '/').rpartition('/')[2]}:{site.line}" if site is not None else ""
    share = f"{name}{where} takes {format_share(bottleneck.blame_share)} of the time"
    return (
        f". The limit is {_RESOURCES[bottleneck.resource]}: {share}"
        if bottleneck.resource in _RESOURCES
        else f"; {share}"
    )


def _service_worker(main: Pipeline) -> str:
    rate = f" of {format_rate(main.elements_per_s)}" if main.span_ns else ""
    slowest = (
        f", most of whose time goes to {main.iterator(main.bottleneck.iterator_id).name}" if main.bottleneck else ""
    )
    return (
        f"This is a tf.data service worker with a pipeline{rate}{slowest}. Only the consumers' profiles show whether they wait "
        "for it: put all profiles into one run to see both."
    )


def _ceiling_sentence(ceiling: float, is_measured: bool, recording: Recording | None) -> str:
    most = format_ratio(ceiling)
    if is_measured:
        return f"Fixing it can make a step at most {most} faster (measured with the first batch repeated)."
    if recording is not None and not recording.host.accelerators and recording.as_if_step_ns is None:
        return (
            f"Without that wait, a step is {most} faster. Pipeline and model share the cores of this machine, so the maximum "
            "possible speedup is higher: --ceiling measures it."
        )
    return f"Fixing it can make a step at most {most} faster."


def _too_few_steps(main: Pipeline) -> str:
    count = main.steps.count if main.steps else 0
    whole = "no whole step" if not count else "only 1 whole step" if count == 1 else f"only {count} whole steps"
    sentence = (
        f"The profile contains {whole} of the input pipeline, too few to tell whether input is the problem: "
        "capture a longer window."
    )
    if main.max_call_ns:
        sentence += f" The longest wait for an element in it was {format_ns(main.max_call_ns)}."
    return sentence


def _measured_ceiling(main: Pipeline, recording: Recording | None) -> float | None:
    if recording is None or len(recording.ceiling_step_ns) < MIN_VERDICT_STEPS.value or main.steps is None:
        return None
    return max(1.0, main.steps.median_ns / max(1, statistics.median(recording.ceiling_step_ns)))


def _no_pipeline(pipelines: Sequence[Pipeline], recording: Recording | None) -> str:
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
