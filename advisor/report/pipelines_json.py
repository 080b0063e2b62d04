"""Pipelines, iterators and calls in report.json.

In: objects of the model.  Out: plain dictionaries in the names of `report.schema.json`: times in nanoseconds (`_ns`), sizes in
bytes, shares 0 to 1. Numbers that are not finite become null.
"""

from __future__ import annotations

import math

from advisor.model.pipeline import Bottleneck, Iterator, Pipeline
from advisor.model.recording import Call, Consumer, Site
from advisor.report.window_json import root_calls

Json = dict[str, object]


def pipeline_to_dict(pipeline: Pipeline) -> Json:
    """An entry of `pipelines`; its iterators stand root first, parents before their inputs."""
    return {
        "id": pipeline.id,
        "host": pipeline.host,
        "is_main": pipeline.is_main,
        "is_device": pipeline.is_device,
        "consumer": pipeline.consumer and _consumer(pipeline.consumer),
        "elements_per_s": finite(pipeline.elements_per_s),
        "num_elements": pipeline.num_elements,
        "input_wait_share": finite(pipeline.wait_share) if pipeline.span_ns else None,
        "wait_ns": pipeline.wait_ns,
        "span_ns": pipeline.span_ns,
        "iterators": [_iterator(iterator) for iterator in pipeline.iterators],
        "bottleneck": _bottleneck(pipeline, pipeline.bottleneck) if pipeline.bottleneck else None,
        "already_done": list(pipeline.already_done),
        "notes": list(pipeline.notes),
        "num_calls": pipeline.root.num_calls,
        "min_call_ns": pipeline.min_call_ns,
        "mean_call_ns": pipeline.mean_call_ns,
        "max_call_ns": pipeline.max_call_ns,
        "slow_calls": pipeline.slow_calls,
        "slowest_calls": root_calls(pipeline.slowest_calls),
    }


def _consumer(consumer: Consumer) -> Json:
    return {
        "file": consumer.site.file if consumer.site else None,
        "line": consumer.site.line if consumer.site else None,
        "kind": consumer.kind,
    }


def _iterator(iterator: Iterator) -> Json:
    return {
        "id": iterator.id,
        "parent_id": iterator.parent_id,
        "name": iterator.name,
        "long_name": iterator.long_name,
        "calls": [call_to_dict(call) for call in iterator.calls],
        "num_calls": iterator.num_calls,
        "latency_ns": iterator.latency_ns,
        "self_ns": iterator.self_ns,
        "blame_ns": iterator.blame_ns,
        "blame_share": finite(iterator.blame_share),
        "busy_ns": iterator.busy_ns,
        "parallelism": iterator.parallelism,
        "is_autotuned": iterator.is_autotuned,
        "buffer_size": iterator.buffer_size,
        "element_bytes": iterator.element_bytes,
        "is_async": iterator.is_async,
        "on_critical_path": iterator.is_on_critical_path,
        "is_on_classic_path": iterator.is_on_classic_path,
        "is_bottleneck": iterator.is_bottleneck,
        "injected_by_tensorflow": iterator.injected_by_tensorflow,
        "buffered_elements": finite(iterator.buffered_elements),
        "elements": iterator.elements,
        "instances": iterator.instances,
        "parameters": iterator.parameters,
        "function_ns": iterator.function_ns,
        "python_ns": iterator.python_ns,
        "ops": [{"op": op.op, "count": op.count, "total_ns": op.total_ns} for op in iterator.ops],
        "is_upstream_unseen": iterator.is_upstream_unseen,
    }


def call_to_dict(call: Call) -> Json:
    """A call of the user's file, wherever one stands."""
    site = call.site
    return {
        "id": call.id,
        "method": call.method,
        "file": site.file if site else None,
        "line": site.line if site else None,
        "column": site.column if site else None,
        "end_line": site.end_line if site else None,
        "end_column": site.end_column if site else None,
        "text": call.text,
        "library": call.library,
        "inputs": list(call.inputs),
        "nested_in": call.nested_in,
        "made_by": call.made_by,
    }


def _bottleneck(pipeline: Pipeline, bottleneck: Bottleneck) -> Json:
    iterator = pipeline.iterator(bottleneck.iterator_id)
    call = iterator.main_call
    return {
        "iterator_id": iterator.id,
        "name": iterator.name,
        "long_name": iterator.long_name,
        "blame_share": finite(bottleneck.blame_share),
        "site": site_to_dict(call.site) if call else None,
        "resource": bottleneck.resource,
        "why": bottleneck.why,
        "classic_iterator_id": bottleneck.classic_iterator_id,
        "classic_why": bottleneck.classic_why,
    }


def site_to_dict(site: Site | None) -> Json | None:
    """Where a finding or bottleneck points: the place a reader looks for."""
    return {"file": site.file, "line": site.line, "column": site.column} if site else None


def finite(value: float | None) -> float | None:
    """`value`; None where JSON has no number for it."""
    return value if value is not None and math.isfinite(value) else None
