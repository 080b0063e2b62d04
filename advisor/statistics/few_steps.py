"""The verdict on a profile with fewer steps than a prediction needs, often a single one.

In: an `Analysis` with its statistics.  Out: the same analysis; its main pipeline has the steps of the profile, and its verdict
describes them.

The graph phase counts steps between two requests for an element, so a profile of one step (the default of Keras' TensorBoard
callback) has none. The statistics also know the steps that the program or a device marked, and calls of the training function.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np

from advisor.graph.line_advice import advise
from advisor.graph.unmarked_steps import Steps, describe
from advisor.graph.verdict import judge_few_steps
from advisor.host.calibration.analysis import MIN_VERDICT_STEPS
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.profile_statistics import HostSteps, StepTime
from advisor.model.run_hosts import HostComparison, HostSummary
from advisor.model.wait_shares import MODERATE_WAIT_SHARE

_Span = tuple[int, int]
"""(start, end) in nanoseconds on the profile's clock."""


def add_few_steps_verdict(analysis: Analysis, others: Mapping[str, Pipeline] | None = None) -> Analysis:
    """Judge few steps by the steps of the statistics; the analysis is unchanged if there are enough steps or none.

    Args:
        analysis: The analysis, with its statistics.
        others: Id -> what `few_steps_of` returned for hosts whose pipelines are not in the analysis, as of very many hosts.
    """
    main = analysis.main
    is_alone = analysis.recording is not None and analysis.recording.is_pipeline_alone
    if main is None or _has_enough_steps(main) or is_alone or analysis.verdict.wait_steps != "profiled":
        return analysis  # the verdict of the graph phase is kept
    few = {
        pipeline.id: pipeline_and_name
        for pipeline in _of_each_host(analysis)
        if (pipeline_and_name := _few_steps(_steps_of(analysis, pipeline), pipeline))
    }
    if not few:
        return analysis
    worst, which = max(few.values(), key=lambda pair: (pair[0].wait_share, pair[0].id == main.id))
    verdict = judge_few_steps(worst, which=which, buffer=analysis.verdict.buffer)
    changed = {pipeline.id: pipeline for pipeline, _ in few.values()}
    hosts = analysis.hosts
    if hosts is not None:
        name = f" Host: {worst.host}, the most input-bound of {len(hosts.hosts)}."
        verdict, hosts = (
            replace(verdict, sentence=verdict.sentence + name),
            _with_rows(hosts, {**(others or {}), **changed}),
        )
    if verdict.is_input_bound:
        changed[worst.id] = advise(worst)
    pipelines = tuple(replace(changed.get(p.id, p), is_main=p.id == worst.id) for p in analysis.pipelines)
    return replace(analysis, verdict=verdict, pipelines=pipelines, hosts=hosts)


def few_steps_of(pipeline: Pipeline, host: HostSteps | None) -> Pipeline | None:
    """Return a host's slowest pipeline with the few steps of its host, without iterators.

    Args:
        pipeline: The slowest pipeline.
        host: The steps of the host; None if the profile has none.

    Returns:
        What the row of the host shows if the verdict is on few steps; None if the pipeline has enough steps or there are none.
    """
    if _has_enough_steps(pipeline):
        return None
    few = _few_steps(host, pipeline)
    return replace(few[0], iterators=(), slowest_calls=(), model=None) if few is not None else None


def _has_enough_steps(pipeline: Pipeline) -> bool:
    has_many = pipeline.steps is not None and pipeline.steps.count >= MIN_VERDICT_STEPS.value
    return has_many or pipeline.serves_elements


def _of_each_host(analysis: Analysis) -> tuple[Pipeline, ...]:
    """The main pipeline; of several hosts, the one of each that its row of the comparison is about."""
    chosen = {host.pipeline_id for host in analysis.hosts.hosts} if analysis.hosts is not None else set()
    return tuple(p for p in analysis.pipelines if p.is_main or (p.id in chosen and not _has_enough_steps(p)))


def _few_steps(host: HostSteps | None, pipeline: Pipeline) -> tuple[Pipeline, str] | None:
    """Return a pipeline with the steps of its host and a name for these steps if it needs one; None if there is no step."""
    if host is None or not host.steps:
        return None if pipeline.steps is None else (pipeline, "")
    steps, requests = _columns(host.steps), _requests(pipeline)
    if not requests or any(_is_inside(request, host.steps) for request in requests):
        return _with_steps(pipeline, steps), ""
    if pipeline.steps is not None:
        return pipeline, ""  # the steps of the host exclude the input; those between two requests include it
    extended = _with_steps(pipeline, _extended(steps, requests))
    if extended.wait_share < MODERATE_WAIT_SHARE:  # short requests change no verdict, and XProf's figures are kept
        return _with_steps(pipeline, steps), ""
    which = "the only step of the profile, the request beside it included" if len(host.steps) == 1 else ""
    return extended, which


def _with_rows(comparison: HostComparison, few: Mapping[str, Pipeline]) -> HostComparison:
    """Fill in the rows of hosts whose profile has few steps; the most input-bound host stays first."""
    rows = [_with_row(host, few.get(host.pipeline_id or "")) for host in comparison.hosts]
    rows.sort(key=lambda host: (-(host.input_wait_share if host.input_wait_share is not None else -1), host.hostname))
    return replace(comparison, hosts=tuple(rows))


def _with_row(host: HostSummary, pipeline: Pipeline | None) -> HostSummary:
    if pipeline is None or pipeline.steps is None:
        return host
    return replace(
        host,
        steps=pipeline.steps.count,
        step_median_ns=pipeline.steps.median_ns,
        input_wait_share=pipeline.wait_share,
        wait_per_step_ns=pipeline.wait_ns // pipeline.steps.count,
        elements_per_s=pipeline.elements_per_s,
    )


def _steps_of(analysis: Analysis, pipeline: Pipeline) -> HostSteps | None:
    """The steps of a pipeline's host; None if the profile has none."""
    hosts = (analysis.statistics.hosts if analysis.statistics is not None else None) or ()
    named = [host for host in hosts if host.host == pipeline.host]
    chosen = named[0] if len(named) == 1 else hosts[0] if len(hosts) == 1 and analysis.hosts is None else None
    return chosen if chosen is not None and chosen.steps else None


def _requests(main: Pipeline) -> list[_Span]:
    return sorted((call.start_ns, call.start_ns + call.duration_ns) for call in main.slowest_calls)


def _is_inside(request: _Span, steps: Sequence[StepTime]) -> bool:
    """Whether a request overlaps with a step."""
    return any(request[0] < step.start_ns + step.duration_ns and step.start_ns < request[1] for step in steps)


def _columns(steps: Sequence[StepTime]) -> Steps:
    begin = [step.start_ns for step in steps]
    end = [step.start_ns + step.duration_ns for step in steps]
    wait = [_waited_ns(step) for step in steps]
    return Steps(*(np.array(column, np.int64) for column in (begin, end, begin, begin, wait)))


def _extended(steps: Steps, requests: Sequence[_Span]) -> Steps:
    """Extend each step by the requests before it, and the last one by those after it.

    A loop may fetch its element before it calls the training function, or before the mark of the step.
    """
    begin, end, wait = steps.start_ns.copy(), steps.end_ns.copy(), steps.wait_ns.copy()
    reached = 0
    for start, finish in requests:
        row = min(int(np.searchsorted(steps.start_ns, finish)), len(begin) - 1)
        begin[row], end[row] = min(begin[row], start), max(end[row], finish)
        wait[row] += max(0, finish - max(start, reached))  # requests of several devices may overlap
        reached = max(reached, finish)
    return Steps(begin, end, begin, begin, wait)


def _waited_ns(step: StepTime) -> int:
    """The part of a step that was spent waiting for input, without copies to the device."""
    parts = step.breakdown
    return round(step.duration_ns * (parts.input_ns - parts.to_device_ns) / parts.total_ns) if parts.total_ns else 0


def _with_steps(main: Pipeline, steps: Steps) -> Pipeline:
    """The pipeline with these steps instead of its own. The blame still adds up to the whole wait."""
    wait_ns = steps.total_wait_ns
    blamed = wait_ns / main.wait_ns if main.wait_ns else 1.0
    return replace(
        main,
        steps=describe(steps),
        wait_ns=wait_ns,
        span_ns=steps.span_ns,
        num_elements=len(steps.start_ns),
        iterators=tuple(replace(it, blame_ns=round(it.blame_ns * blamed)) for it in main.iterators),
    )
