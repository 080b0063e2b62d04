"""Takes step times and waits from the unprofiled stretch, because the profiler itself costs time.

In: the main pipeline as profiled, and the recording.  Out: the same pipeline with `steps` and `wait_ns` from the unprofiled
stretch, and the relative overhead of the profiler.

The first step of an epoch may wait far longer than the others, so whole epochs are used if the stretch holds one.

Python times a whole `next`, which includes TensorFlow's work around the iterator. In the profiled stretch both are known; the
difference, scaled to the shorter unprofiled step, is subtracted. If a pipeline runs alone, without a consumer, its whole step is
wait.

If steps take so long that the profile contains no whole one, the requests for elements in it still show what they waited for. If
the stretch without the profiler is too short as well, all timed steps outside the profile are used, but not the first one, which
traces functions and fills buffers.

If Python does not see the wait (Keras fetches inside its step function), the wait lies between two bounds. If the profiler slows
all parts of a step equally, the wait has the same share as in the profiled steps. If it slows only the pipeline, the wait is the
unprofiled step minus the consumer's time in a profiled step. For small elements the bounds are far apart; their mean is used.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from advisor.graph.unmarked_steps import Steps, describe
from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.host.calibration.window import UNPROFILED_MIN_STEPS
from advisor.model.pipeline import Pipeline
from advisor.model.recording import Recording, StepSeries, Window, steps_in_whole_epochs


def use_unprofiled_steps(pipeline: Pipeline, recording: Recording) -> tuple[Pipeline, float | None]:
    """Replace the profiled steps of a pipeline by unprofiled ones.

    Args:
        pipeline: The main pipeline, as profiled.
        recording: The recording of the same run.

    Returns:
        The pipeline, unchanged if there are too few unprofiled steps; and the profiler's overhead (mean profiled step / mean
        unprofiled step - 1), None if it is unknown.
    """
    window = recording.window
    series = _series_of(pipeline, recording)
    if window is None or series is None or not (pipeline.steps or pipeline.max_call_ns):
        return pipeline, None
    unprofiled = _unprofiled_steps(series, window, pipeline.steps.count if pipeline.steps else 0)
    profiled = _between(series, window.start_ns, window.end_ns)
    if not len(unprofiled.start_ns):
        return pipeline, None
    if recording.is_pipeline_alone:
        wait = unprofiled.end_ns - unprofiled.start_ns
    elif series.wait_ns:
        around_ns = 0.0
        if len(profiled.start_ns) >= UNPROFILED_MIN_STEPS.value and pipeline.steps is not None:
            longer = np.median(profiled.end_ns - profiled.start_ns) / max(
                1, np.median(unprofiled.end_ns - unprofiled.start_ns)
            )
            around_ns = max(0, np.median(profiled.wait_ns) - pipeline.steps.wait_median_ns) / max(1, longer)
        wait = np.maximum(0, unprofiled.wait_ns - around_ns).astype(np.int64)
    elif pipeline.steps is None:
        requested_ns = pipeline.mean_call_ns * pipeline.root.num_calls // max(1, len(profiled.start_ns))
        wait = np.minimum(unprofiled.end_ns - unprofiled.start_ns, requested_ns)
    else:
        wait = ((unprofiled.end_ns - unprofiled.start_ns) * _unseen_share(pipeline, unprofiled, profiled)).astype(
            np.int64
        )
    steps = replace(unprofiled, wait_ns=wait)
    share = steps.total_wait_ns / max(1, steps.span_ns)
    overhead = None
    if len(profiled.start_ns) >= UNPROFILED_MIN_STEPS.value:
        overhead = (profiled.span_ns / len(profiled.start_ns)) / (steps.span_ns / len(steps.start_ns)) - 1
    span_ns, num_elements = pipeline.span_ns, pipeline.num_elements
    if pipeline.steps is None:  # the profile as a whole stands for its steps
        span_ns, num_elements = window.end_ns - window.start_ns, max(1, pipeline.root.num_calls)
    wait_ns = round(share * span_ns)
    blamed = wait_ns / pipeline.wait_ns if pipeline.wait_ns else 1.0  # the blame still adds up to the whole wait
    iterators = tuple(replace(it, blame_ns=round(it.blame_ns * blamed)) for it in pipeline.iterators)
    timed = replace(
        pipeline,
        steps=describe(steps),
        wait_ns=wait_ns,
        span_ns=span_ns,
        num_elements=num_elements,
        iterators=iterators,
    )
    return timed, overhead


def sees_waits(recording: Recording) -> bool:
    """Return whether the waits of the main consumer were timed without the profiler. Keras does not expose them."""
    series = _main_series(recording)
    return recording.is_pipeline_alone or (series is not None and bool(series.wait_ns))


def _unseen_share(pipeline: Pipeline, unprofiled: Steps, profiled: Steps) -> float:
    """The wait share of the unprofiled steps, estimated from the profiled ones."""
    share = pipeline.wait_share
    if len(profiled.start_ns) < UNPROFILED_MIN_STEPS.value:
        return share
    longer = (profiled.span_ns / len(profiled.start_ns)) / max(1.0, unprofiled.span_ns / len(unprofiled.start_ns))
    least = max(0.0, 1 - (1 - share) * longer)
    return (share + min(share, least)) / 2


def _unprofiled_steps(series: StepSeries, window: Window, num_profiled: int) -> Steps:
    """The steps of the stretch without the profiler; if it is too short, all other timed ones, if they are more than profiled."""
    unprofiled = _between(series, window.plain_start_ns, window.plain_end_ns)
    if window.plain_start_ns and len(unprofiled.start_ns) >= UNPROFILED_MIN_STEPS.value:
        return _whole_epochs(unprofiled, series.epoch_steps)
    every = _between(series, 0, max(series.end_ns))
    is_profiled = (every.end_ns > window.start_ns) & (every.start_ns < window.end_ns)
    is_first = np.arange(len(every.start_ns)) + series.first_step == 0
    others = every.only(~is_profiled & ~is_first)
    is_better = num_profiled < MIN_VERDICT_STEPS.value and len(others.start_ns) > num_profiled
    return others if is_better else others.only(np.zeros(len(others.start_ns), np.bool_))


def _whole_epochs(steps: Steps, epoch_steps: int | None) -> Steps:
    """Those of the steps that make whole epochs; all if there are no such, or too few."""
    count = len(steps.start_ns)
    kept = steps_in_whole_epochs(count, epoch_steps)
    return steps.only(np.arange(count) < kept) if kept >= UNPROFILED_MIN_STEPS.value else steps


def _series_of(pipeline: Pipeline, recording: Recording) -> StepSeries | None:
    """The steps of the pipeline's own consumer; of the recorded main consumer if it has none."""
    own = pipeline.consumer.id if pipeline.consumer is not None else None
    own_series = next((series for series in recording.steps if series.consumer_id == own and series.end_ns), None)
    return own_series if own_series is not None else _main_series(recording)


def _main_series(recording: Recording) -> StepSeries | None:
    main = {consumer.id for consumer in recording.consumers if consumer.is_main}
    return next((series for series in recording.steps if series.consumer_id in main and series.end_ns), None)


def _between(series: StepSeries, start_ns: int, end_ns: int) -> Steps:
    """The steps inside that stretch, on the clock of `time.time_ns`."""
    start, end = np.array(series.start_ns, np.int64), np.array(series.end_ns, np.int64)
    wait = np.array(series.wait_ns or [0] * len(start), np.int64)
    chosen = (start >= start_ns) & (end <= end_ns)
    return Steps(start, end, start, start + wait, wait).only(chosen)
