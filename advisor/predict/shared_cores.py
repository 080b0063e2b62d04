"""Estimates what the CPU time of the input pipeline costs a training that computes on the same cores.

In: an `Analysis` whose training hardly waits for input, its main pipeline and the pipeline's demands.  Out: `SharedCores`.

A training that finds every batch ready still pays for it if no core is idle: while the pipeline computes, the model does not.
The pipeline's CPU time is known only if it was read without training after the window: beside a training of many threads, the
events of a profile hold waits for cores as well. The estimate takes the pipeline's share of all CPU time off the step. The gain
is smaller if the model cannot use the cores that become free, and larger if the two push each other's data out of the caches:
two scripts, measured twice each, were 0.6 to 1.4 times as fast as estimated (docs/predictions.md). `--ceiling` measures it.
"""

from __future__ import annotations

from advisor.host.calibration.analysis import SHARED_CORES_GAIN
from advisor.host.calibration.prediction import MOST_SPEEDUP
from advisor.model.outlook import SharedCores
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.units import format_ns, format_ratio, format_share
from advisor.predict.demand import Demands, crowding, has_consumer_elsewhere
from advisor.predict.limit_names import call_and_line
from advisor.predict.passes_over_data import elements_per_step


def shared_cores(analysis: Analysis, pipeline: Pipeline, measured: Demands) -> SharedCores | None:
    """Estimate the gain of a pipeline without any CPU time.

    Args:
        analysis: The analysis of a training.
        pipeline: Its main pipeline, with costs as without the profiler.
        measured: The demands of the pipeline.

    Returns:
        The estimate; None if the training waits for input or computes elsewhere, if the pipeline's CPU time is unknown, if the
        gain was measured, or if it is too small to be told, as with idle cores.
    """
    verdict, recording, use = analysis.verdict, analysis.recording, measured.cores
    reading = recording.read_alone if recording is not None else None
    if reading is None or reading.cpu_ns is None or has_consumer_elsewhere(analysis) or verdict.is_ceiling_measured:
        return None
    if use is None or not use.is_measured or not crowding(use) or use.own <= 0:
        return None
    if verdict.level != "none" or verdict.input_wait_share is None:
        return None
    cpu_ns = reading.cpu_ns / reading.elements * elements_per_step(analysis, pipeline)
    share = min(1.0, cpu_ns / (use.own * measured.step_ns))
    speedup = 1 / max(1 / MOST_SPEEDUP.value, 1 - share - verdict.input_wait_share)
    if speedup < SHARED_CORES_GAIN.value:
        return None
    return SharedCores(
        cpu_ns,
        share,
        speedup,
        f"Pipeline and model share the cores of this machine, though: the pipeline takes {format_ns(round(cpu_ns))} of CPU time "
        f"per step, {format_share(share)} of all{_most_of_it(pipeline, measured)}. Without it, a step could be about "
        f"{format_ratio(speedup)} faster (estimated); --ceiling measures it.",
    )


def _most_of_it(pipeline: Pipeline, measured: Demands) -> str:
    """The iterator with the most CPU time in the profile, and its line."""
    call = pipeline.iterator(max(measured.nodes, key=lambda node: node.cpu_ns).iterator_id).main_call
    return "" if call is None else f", most of it in {call_and_line(call)}"
