"""Predicts how fast the input pipeline could go if nothing but the pipeline limited it.

In: an `Analysis` whose training does not wait for input, and its main pipeline.  Out: `Headroom`.

A pipeline that is fast enough is idle most of the time, so its rate in the profile is that of the training. What it could deliver
follows from the demands of its iterators (`advisor.predict.demand`), with a consumer that takes elements without using them: a
step on an accelerator, which takes no core. A training that computes on the same cores makes every element cost more than it
would without it, by an amount that the profile does not show (docs/predictions.md), so the range is wide there. If the pipeline
was read for a second after the window, that rate is used instead. `--headroom` measures longer, in a run of its own.
"""

from __future__ import annotations

from dataclasses import replace

from advisor.graph.batch_size import rows_per_element
from advisor.host.calibration.prediction import (
    ALONE,
    BRINK_SPEEDUP,
    MOST_HEADROOM,
    OTHERS_KEEP,
    READ_ALONE,
    UNCERTAINTY,
)
from advisor.model.outlook import Headroom
from advisor.model.pipeline import Analysis, Pipeline, Verdict
from advisor.model.units import NS_PER_S, format_ns, format_rate, format_ratio
from advisor.model.window_readings import Usage
from advisor.predict.demand import Demands, has_consumer_elsewhere
from advisor.predict.limit_names import name_of_limit
from advisor.predict.machine_costs import machine_costs
from advisor.predict.passes_over_data import elements_per_step


def headroom(analysis: Analysis, pipeline: Pipeline, measured: Demands) -> Headroom | None:
    """Predict the shortest step that the pipeline can feed, or return the measured one.

    Args:
        analysis: The analysis of a training.
        pipeline: Its main pipeline, with costs as without the profiler.
        measured: The demands of the pipeline.

    Returns:
        The headroom; None if the training waits for input and it was not measured, if nothing is known about its steps, or if
        the pipeline was analysed alone.
    """
    verdict, recording = analysis.verdict, analysis.recording
    is_alone = recording is not None and recording.is_pipeline_alone
    per_step = elements_per_step(analysis, pipeline)
    alone_ns = recording.alone_element_ns if recording is not None else None
    alone_ns = alone_ns * per_step if alone_ns is not None else None
    if (verdict.is_input_bound and alone_ns is None) or verdict.input_wait_share is None or is_alone:
        return None
    beside = replace(measured, consumer_ns=0.0, consumer_cpu_ns=0.0)
    without = _without_the_consumer(beside, analysis.usage)
    costs = machine_costs(analysis)
    is_ahead = any(it.is_async for it in pipeline.inputs(pipeline.root))
    floor_ns = costs.next_ns if is_ahead else costs.next_here_ns
    least_kept, likely_kept, most_kept = sorted(OTHERS_KEEP.value)
    slow_ns = max(floor_ns, beside.limits(others_keep=most_kept)[0].step_ns)
    likely_ns = max(floor_ns, without.limits(others_keep=likely_kept)[0].step_ns)
    fast_ns = max(floor_ns, without.limits(others_keep=least_kept)[0].step_ns)
    if likely_ns <= 0 or measured.step_ns <= 0:
        return None
    cheapest, dearest = (
        (1 - UNCERTAINTY.value, 1 + UNCERTAINTY.value) if has_consumer_elsewhere(analysis) else ALONE.value
    )
    reading = recording.read_alone if recording is not None else None
    if reading is not None:
        likely_ns = fast_ns = slow_ns = reading.ns / reading.elements * per_step
        cheapest, dearest = READ_ALONE.value
        floor_ns = 0.0
    headroom = Headroom(
        element_ns=likely_ns,
        low_ns=max(floor_ns, min(fast_ns, likely_ns) * cheapest),
        high_ns=max(slow_ns, likely_ns) * dearest,
        step_ns=measured.step_ns,
        limit=without.limits()[0],
        sentence="",
        measured_ns=alone_ns,
        read_ns=reading.ns if reading is not None else None,
    )
    return replace(headroom, sentence=_sentence(headroom, _rows_per_step(pipeline, per_step), verdict, pipeline))


def _without_the_consumer(demands: Demands, usage: Usage | None) -> Demands:
    """Return the demands without the time for which threads waited for a core, and without CPU time of unknown origin.

    CPU time that no event accounts for is most likely the training's, whose ops use threads of their own.
    """
    had = 1.0
    if usage is not None and usage.core_wait_ns is not None and usage.cpu_ns > 0:
        had = usage.cpu_ns / (usage.cpu_ns + usage.core_wait_ns)
    part = min(1.0, had / demands.core_share) if demands.core_share > 0 else 1.0
    nodes = tuple(
        replace(node, busy_ns=node.busy_ns * part, cpu_ns=min(node.cpu_ns, node.busy_ns * part))
        for node in demands.nodes
    )
    return replace(demands, nodes=nodes)


def _sentence(headroom: Headroom, rows: float, verdict: Verdict, pipeline: Pipeline) -> str:
    if headroom.measured_ns is not None:
        shortest_ns = headroom.measured_ns
        text = f"The input pipeline alone delivers {_rate(shortest_ns, rows, '')} (measured)"
    else:
        shortest_ns = min(
            headroom.high_ns, headroom.step_ns
        )  # the training does not wait, so its own rate is delivered
        how = (
            "predicted; --headroom measures it"
            if headroom.read_ns is None
            else f"read for {format_ns(headroom.read_ns)} without training; --headroom measures longer"
        )
        text = f"The input pipeline can deliver {_rate(shortest_ns, rows, 'at least ')} ({how})"
    if verdict.is_input_bound:
        return f"{text}."
    if headroom.step_speedup < BRINK_SPEEDUP.value:
        return f"{text}: with a faster training step, it would become the problem."
    if headroom.surest_speedup < BRINK_SPEEDUP.value:
        return f"{text}: with a training {format_ratio(headroom.step_speedup)} faster, it could become the problem."
    if headroom.surest_speedup > MOST_HEADROOM.value:
        return f"{text}: it would limit only steps more than {format_ratio(MOST_HEADROOM.value)} faster than here."
    then = (
        "the work of its own thread is"
        if headroom.limit.resource == "consumer"
        else name_of_limit(pipeline, headroom.limit)
    )
    faster = f"{format_ns(shortest_ns)}, {format_ratio(headroom.surest_speedup)} faster than here"
    limits = "no step longer than" if headroom.measured_ns is None else "any step shorter than"
    return f"{text}: it would limit {limits} {faster}; then {then} the limit."


def _rows_per_step(pipeline: Pipeline, elements: int) -> float:
    """Rows of a step, or its elements if they are not batches of a known size."""
    return elements * (rows_per_element(pipeline) or 1)


def _rate(step_ns: float, rows: float, bound: str) -> str:
    """The rate of rows, or of elements if they are not batches of a known size."""
    per_second = NS_PER_S / step_ns * rows
    if per_second >= 1:
        return f"{bound}{format_rate(per_second)}"
    return f"an element {bound}every {format_ns(NS_PER_S / per_second)}"
