"""Lists the pipelines that the verdict is not about, such as that of the validation, each with a verdict of its own.

In: an `Analysis`.  Out: one line per pipeline: who reads it or what makes it, and whether that waits.
"""

from __future__ import annotations

from advisor.model import units
from advisor.model.pipeline import Analysis, Pipeline
from advisor.model.wait_shares import MODERATE_WAIT_SHARE
from advisor.report.places import call_text, display_path

MAX_OTHER_PIPELINES = 5
"""Maximum number of pipelines listed besides the main one."""


def other_pipelines(analysis: Analysis) -> list[str]:
    """Return the lines; if the verdict is that input is not the problem, only of pipelines for which it is one."""
    main = analysis.main
    of_main = main.consumer.id if main is not None and main.consumer is not None else None
    others = [
        pipeline
        for pipeline in analysis.pipelines
        if not pipeline.is_main
        # a dataset of the same loop, made for another epoch
        and (pipeline.consumer is None or pipeline.consumer.id != of_main)
    ]
    if analysis.hosts is not None and analysis.main is not None:  # those of the other hosts are in their table
        others = [pipeline for pipeline in others if pipeline.host == analysis.main.host]
    if not analysis.verdict.is_input_bound:
        others = [pipeline for pipeline in others if pipeline.steps and pipeline.wait_share >= MODERATE_WAIT_SHARE]
    lines = [f"{_name(pipeline)}: {_verdict(pipeline)}" for pipeline in others[:MAX_OTHER_PIPELINES]]
    if len(others) > MAX_OTHER_PIPELINES:
        lines.append(f"{units.format_count(len(others))} pipelines in total; report.json lists all of them")
    return lines


def _name(pipeline: Pipeline) -> str:
    """The consumer, else the call nearest to it, else the host and the long name."""
    consumer = pipeline.consumer
    if consumer is not None and consumer.site is not None:
        return f"{display_path(consumer.site.file)}:{consumer.site.line} ({consumer.kind})"
    for iterator in pipeline.iterators:
        call = iterator.main_call
        if call is not None and call.site is not None:
            return f"the dataset of {call_text(call)}, {display_path(call.site.file)}:{call.site.line}"
    return f"{pipeline.host} {pipeline.root.long_name}"


def _verdict(pipeline: Pipeline) -> str:
    if not pipeline.span_ns:
        taken = pipeline.root.num_calls
        if not taken:
            return "nothing was read from it in the window"
        return f"too few elements for a verdict ({units.format_count(taken)} in the window)"
    rate = units.format_rate(pipeline.elements_per_s)
    if pipeline.serves_elements:
        return f"{rate} for consumers elsewhere"
    share = units.format_share(pipeline.wait_share)
    if pipeline.wait_share < MODERATE_WAIT_SHARE:
        return f"does not wait for input ({share} of the time, {rate})"
    return f"waits for input {share} of the time ({rate}){_bottleneck(pipeline)}"


def _bottleneck(pipeline: Pipeline) -> str:
    bottleneck = pipeline.bottleneck
    if bottleneck is None:
        return ""
    iterator = pipeline.iterator(bottleneck.iterator_id)
    call = iterator.main_call
    if call is None:
        return f", mostly for {iterator.name}"
    where = f" at {display_path(call.site.file)}:{call.site.line}" if call.site is not None else ""
    return f", mostly for {call_text(call)}{where}"
