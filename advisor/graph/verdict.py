"""Decides whether input is the bottleneck and estimates the maximum possible speedup.

In: the pipelines and the recording.  Out: `Verdict`, with a sentence for the report.
"""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import replace

from advisor.graph.batch_size import rows_per_element
from advisor.graph.buffer_readings import (
    buffer_readings,
    describe_readings,
    is_always_empty,
    is_always_full,
    readings_sentence,
)
from advisor.graph.gap_readings import describe_gaps, gap_readings
from advisor.graph.no_verdict import no_pipeline, no_rate, no_request, no_step, service_worker
from advisor.host.calibration.analysis import MIN_VERDICT_STEPS, SHARED_CORES_GAIN, SURE_VERDICT_STEPS, WIDE_CEILING
from advisor.host.calibration.prediction import MOST_SPEEDUP
from advisor.model.calls import Site
from advisor.model.intervals import Mean, mean_of, ratio_of
from advisor.model.outcome import Interval
from advisor.model.pipeline import BufferReadings, GapReadings, Pipeline, StepStats, Verdict
from advisor.model.recording import Recording
from advisor.model.units import format_count, format_ns, format_rate, format_ratio, format_share
from advisor.model.wait_shares import HIGH_WAIT_SHARE, MODERATE_WAIT_SHARE

LIMITS = {"node": "pipeline", "cpu": "cpu", "gil": "gil", "disk": "disk"}


_RESOURCES = {"cpu": "the cores", "gil": "Python's global interpreter lock", "disk": "the disk"}
_STEPS = {
    "profiled": "profiled steps",
    "unprofiled": "steps without the profiler",
    "estimated": "steps without the profiler, estimated from the profiled ones",
}
"""`Verdict.wait_steps` in words. The statistics pages use profiled steps, whose shares differ."""
_OF_FEW_STEPS = {
    "high": "Input was the problem",
    "moderate": "Input cost some time",
    "none": "Input was not the problem",
}
"""Level -> the verdict on one or two steps, in the past tense, because it is about these steps only."""


def judge(pipelines: Sequence[Pipeline], recording: Recording | None, wait_steps: str = "profiled") -> Verdict:
    """Judge the main pipeline.

    Args:
        pipelines: All pipelines, at most one of which is the main one.
        recording: What capture recorded; None for a profile without a recording.
        wait_steps: The steps that the wait was measured on; see `Verdict`.
    """
    main = next((p for p in pipelines if p.is_main), None)
    is_alone = recording is not None and recording.is_pipeline_alone
    buffer = None if is_alone else buffer_readings(main, recording)
    if main is None:
        gaps = None if is_alone else gap_readings(None, recording)
        if gaps is None:
            return _unknown(no_pipeline(pipelines, recording))
        return _judge_gaps(None, gaps, buffer, no_request(recording))
    if main.serves_elements:
        return _unknown(service_worker(main))
    if main.steps is None:
        gaps = None if is_alone else gap_readings(main, recording)
        why = "The profile contains no whole step."
        return _judge_buffer(main, buffer) if gaps is None else _judge_gaps(main, gaps, buffer, why)
    if main.steps.count < MIN_VERDICT_STEPS.value:
        return (
            _unknown(no_rate(main.steps), main.steps) if is_alone else judge_few_steps(main, wait_steps, buffer=buffer)
        )
    if is_alone:
        return _pipeline_alone(main, wait_steps)
    share = main.wait_share
    ceiling = 1 / (1 - min(share, 1 - 1 / MOST_SPEEDUP.value))
    measured = _measured_ceiling(main, recording)
    if measured is not None:
        ceiling = max(1.0, measured.value)
    level = _level(share)
    is_bound = level != "none"
    limit = _limit(main, is_bound)
    if is_bound:
        word = "Input is the problem" if level == "high" else "Input costs some time"
        library = recording.steps_queued_by if recording is not None else ""
        if library and measured is None:
            word = "Input may be the problem" if level == "high" else "Input may cost some time"
        sentence = (
            f"{word}: {format_share(share)} of the step time is spent waiting for the input pipeline ({_STEPS[wait_steps]}). "
            f"{_doubt_of_queue(library) if measured is None else ''}{_ceiling_sentence(ceiling, measured, recording)}"
        )
    else:
        sentence = (
            f"Input is not the problem: {format_share(share)} of the step time is spent waiting for the input pipeline "
            f"({_STEPS[wait_steps]}). {_cost_of_cores(measured, recording)}Look at the model and the device side."
        )
    if recording is not None and recording.as_if_step_ns is not None:
        sentence = _imagined(sentence, recording.as_if_step_ns, share, main)
    sentence += _range_of(main.steps)
    if buffer is not None and (wait_steps != "unprofiled" or main.steps.count < SURE_VERDICT_STEPS.value):
        sentence += _of_buffer(buffer, is_bound)
    certainty = certainty_of(main.steps.count)
    return Verdict(
        is_bound,
        share,
        ceiling,
        main.steps,
        limit,
        sentence,
        measured is not None,
        level,
        wait_steps,
        certainty,
        buffer,
    )


def judge_few_steps(
    main: Pipeline, wait_steps: str = "profiled", which: str = "", buffer: BufferReadings | None = None
) -> Verdict:
    """Judge steps that are too few for a statement about the whole training: the verdict describes these steps only.

    Args:
        main: The main pipeline, with at least one step.
        wait_steps: The steps that the wait was measured on; see `Verdict`.
        which: The steps in words, if `the only step of the profile` and the like do not describe them.
        buffer: How full the pipeline's last buffer was; None if unknown.
    """
    steps = main.steps
    assert steps is not None
    share, count = main.wait_share, steps.count
    level = _level(share)
    place = "of the profile" if wait_steps == "profiled" else "that was timed" if count == 1 else "that were timed"
    which = which or (f"the only step {place}" if count == 1 else f"the {format_count(count)} steps {place}")
    length = format_ns(steps.mean_ns) if count == 1 else f"{format_ns(steps.mean_ns)} each (mean)"
    if count < MIN_VERDICT_STEPS.value:
        doubt = "One step may not be typical" if count == 1 else "Two steps may not be typical"
        doubt += ", least of all directly after the start of the profiler" if wait_steps == "profiled" else ""
    else:
        doubt = "Hardly any of these steps requested an element, so they may not be typical"
    sentence = (
        f"{_OF_FEW_STEPS[level]} in {which}: {format_share(share)} of {length} was spent waiting for the input pipeline. "
        f"{doubt}: capture at least {SURE_VERDICT_STEPS.value} to be sure."
    )
    if main.max_call_ns:
        sentence += f" The longest request for an element took {format_ns(main.max_call_ns)}."
    is_bound = level != "none"
    if buffer is not None:
        sentence += _of_buffer(buffer, is_bound)
    limit = _limit(main, is_bound)
    return Verdict(is_bound, share, None, steps, limit, sentence, False, level, wait_steps, "low", buffer)


def _judge_buffer(main: Pipeline, buffer: BufferReadings | None) -> Verdict:
    """Judge a pipeline without a measured step by its last buffer, if that was always full or always empty."""
    if buffer is None or not (is_always_full(buffer) or is_always_empty(buffer)):
        verdict = _unknown(no_step(main, buffer))
        return replace(verdict, buffer=buffer)
    is_bound = is_always_empty(buffer)
    # without the share, nothing may be predicted from an empty buffer
    certainty = "medium" if not is_bound and buffer.readings >= SURE_VERDICT_STEPS.value else "low"
    if is_bound:
        word, effect = "Input is the problem", "so the training waited for its elements"
    else:
        word, effect = "Input is not the problem", "so the pipeline is faster than the training"
    sentence = (
        f"{word}: {describe_readings(buffer)}, {effect}. The profile contains no whole step, so the share of the step time spent "
        "waiting is unknown."
    )
    if main.max_call_ns:
        sentence += f" The longest request for an element took {format_ns(main.max_call_ns)}."
    level = "moderate" if is_bound else "none"
    limit = _limit(main, is_bound)
    return Verdict(is_bound, None, None, None, limit, sentence, False, level, "unprofiled", certainty, buffer)


def _judge_gaps(main: Pipeline | None, gaps: GapReadings, buffer: BufferReadings | None, why: str) -> Verdict:
    """Judge steps whose wait is known from tf.data's gap times only, if the last buffer does not contradict them.

    Args:
        main: The main pipeline; None if the profile shows none.
        gaps: The waits.
        buffer: How full the pipeline's last buffer was; None if unknown.
        why: A sentence on why the profile does not tell.
    """
    level = _level(gaps.wait_share)
    is_bound = level != "none"
    if is_always_full(buffer) if is_bound else is_always_empty(buffer):
        assert buffer is not None
        sentence = (
            f"It is unclear whether input is the problem: {describe_gaps(gaps)}, but {describe_readings(buffer)}. {why}"
        )
        return replace(_unknown(sentence), buffer=buffer, gaps=gaps)
    word = {"high": "Input is the problem", "moderate": "Input costs some time", "none": "Input is not the problem"}[
        level
    ]
    sentence = f"{word}: {describe_gaps(gaps)}. {why}"
    if buffer is not None:
        sentence += readings_sentence(buffer)
    # as with a buffer that is always empty, nothing may be predicted: no profiled step shows what the wait consists of
    certainty = "medium" if not is_bound and gaps.steps >= SURE_VERDICT_STEPS.value else "low"
    limit = "model" if not is_bound else "unknown" if main is None else _limit(main, is_bound)
    return Verdict(is_bound, None, None, None, limit, sentence, False, level, "unprofiled", certainty, buffer, gaps)


def _of_buffer(buffer: BufferReadings, is_bound: bool) -> str:
    """A sentence on the buffer, which names a contradiction."""
    clause = describe_readings(buffer)
    if is_bound and is_always_full(buffer):
        return f" But {clause}: an element was ready whenever one was requested, so the wait may be shorter than estimated."
    if not is_bound and is_always_empty(buffer):
        return f" But {clause}: the pipeline is hardly faster than the training."
    return readings_sentence(buffer)


def certainty_of(count: int) -> str:
    """Return `Verdict.certainty` for a number of measured steps."""
    if count >= SURE_VERDICT_STEPS.value:
        return "high"
    return "medium" if count >= MIN_VERDICT_STEPS.value else "low" if count else "none"


def _unknown(sentence: str, steps: StepStats | None = None) -> Verdict:
    return Verdict(False, None, None, steps, "unknown", sentence, certainty=certainty_of(steps.count if steps else 0))


def _level(share: float) -> str:
    return "high" if share >= HIGH_WAIT_SHARE else "moderate" if share >= MODERATE_WAIT_SHARE else "none"


def _limit(main: Pipeline, is_bound: bool) -> str:
    if not is_bound:
        return "model"
    return LIMITS[main.bottleneck.resource] if main.bottleneck is not None else "unknown"


def _range_of(steps: StepStats) -> str:
    """A sentence on how few steps there are and how much they differ; empty if there are enough."""
    if steps.count >= SURE_VERDICT_STEPS.value:
        return ""
    waited = ""
    if steps.wait_share_low is not None and steps.wait_share_high is not None:
        low, high = format_share(steps.wait_share_low), format_share(steps.wait_share_high)
        waited = f", which waited {low} to {high} of their time" if low != high else ""
    return f" Only {steps.count} steps were measured{waited}: others may differ."


def _imagined(sentence: str, step_ns: int, share: float, main: Pipeline) -> str:
    """The sentence for a training that was replaced by waits; the rest is what MLPerf Storage calls accelerator utilisation."""
    verdict = sentence.removesuffix(" Look at the model and the device side.")
    site = main.consumer.site if main.consumer is not None else None
    taken = "" if site is None else f" The pipeline is the one that is read at {_place(site)}."
    return (
        f"As if a step took {format_ns(step_ns)} on a device of its own (accelerator utilisation {format_share(1 - share)}): "
        f"{verdict[:1].lower()}{verdict[1:]}{taken}"
    )


def _pipeline_alone(main: Pipeline, wait_steps: str) -> Verdict:
    """The verdict on a pipeline that is read as fast as possible: there is no step that a wait could be compared with."""
    bottleneck = main.bottleneck
    limit = LIMITS[bottleneck.resource] if bottleneck is not None else "unknown"
    sentence = (
        f"The pipeline alone produces {_rates(main)}{_limited_by(main)}. No training was measured, so whether it waits for "
        "input is unknown."
    )
    certainty = certainty_of(main.steps.count if main.steps else 0)
    return Verdict(True, main.wait_share, None, main.steps, limit, sentence, False, "high", wait_steps, certainty)


def _rates(main: Pipeline) -> str:
    """The rate at the root: of batches and of their elements, if the elements at the root are batches of a known size."""
    size = rows_per_element(main)
    if size is None:
        return format_rate(main.elements_per_s)
    batches = format_rate(main.elements_per_s, "batches", "batch")
    return f"{batches} ({format_rate(main.elements_per_s * size)})"


def _place(site: Site) -> str:
    return f"{site.file.replace(chr(92), '/').rpartition('/')[2]}:{site.line}"


def _limited_by(main: Pipeline) -> str:
    bottleneck = main.bottleneck
    if bottleneck is None:
        return ""
    iterator = main.iterator(bottleneck.iterator_id)
    call = iterator.main_call
    name = iterator.name if call is None else f"{call.method}({call.function.name})" if call.function else call.method
    site = call.site if call is not None else None
    where = f" at {_place(site)}" if site is not None else ""
    share = f"{name}{where} takes {format_share(bottleneck.blame_share)} of the time"
    return (
        f". The limit is {_RESOURCES[bottleneck.resource]}: {share}"
        if bottleneck.resource in _RESOURCES
        else f"; {share}"
    )


def _doubt_of_queue(library: str) -> str:
    if not library:
        return ""
    return (
        f"{library} runs steps after they have been started, so a device may have computed earlier ones meanwhile: --ceiling "
        "measures what the wait costs. "
    )


def _ceiling_sentence(ceiling: float, measured: Interval | None, recording: Recording | None) -> str:
    most = format_ratio(ceiling)
    if measured is not None:
        low, high = max(1.0, measured.low), max(1.0, measured.high)
        width = f": {format_ratio(low)} to {format_ratio(high)}" if high > WIDE_CEILING.value * low else ""
        return (
            f"Fixing it can make a step at most {most} faster (measured with {_repeated(recording)} repeated{width})."
        )
    is_upper_bound = recording is None or bool(recording.host.accelerators or recording.steps_queued_by)
    if recording is not None and not is_upper_bound and recording.as_if_step_ns is None:
        return (
            f"Without that wait, a step is {most} faster. Pipeline and model share the cores of this machine, so the maximum "
            "possible speedup is higher: --ceiling measures it."
        )
    return f"Fixing it can make a step at most {most} faster."


def _cost_of_cores(measured: Interval | None, recording: Recording | None) -> str:
    """What a pipeline costs that hardly lets the training wait: it may compute on the cores of the training."""
    if measured is None or measured.low < SHARED_CORES_GAIN.value:
        return ""
    width = f"{format_ratio(measured.low)} to {format_ratio(measured.high)}"
    why = (
        ""
        if recording is None or recording.host.accelerators
        else ": pipeline and model share the cores of this machine"
    )
    return (
        f"Without any input work, a step is {format_ratio(measured.value)} faster all the same (measured with "
        f"{_repeated(recording)} repeated, {width}){why}. "
    )


def _repeated(recording: Recording | None) -> str:
    """Which batch the steps without input were given: `--ceiling` begins with it, other runs end with it."""
    return "the first batch" if recording is None or recording.ceiling_step_ns else "the last batch"


def _measured_ceiling(main: Pipeline, recording: Recording | None) -> Interval | None:
    """The ratio of the mean steps, as the wait is a share of all steps: the first of each epoch may hold all of it."""
    times = recording.times_without_input if recording is not None else ()
    if len(times) < MIN_VERDICT_STEPS.value or main.steps is None:
        return None
    before, after = _mean_of(main.steps), mean_of(times)
    if before is not None and after is not None:
        return ratio_of(before, after)
    ratio = main.steps.mean_ns / max(1.0, statistics.fmean(times))
    return Interval(ratio, ratio, ratio)


def _mean_of(steps: StepStats) -> Mean | None:
    if steps.mean_error is None or not steps.mean_ns:
        return None
    return Mean(steps.mean_ns, steps.mean_error, max(2, steps.mean_stretches))
