"""report.json: the public contract, described by `report.schema.json` beside this file.

In: a `Report`.  Out: plain dictionaries, JSON bytes, a file written whole or not at all. Numbers that are not finite become
null: JSON has no NaN.
"""

from __future__ import annotations

import json
import math
import re
from importlib import resources
from pathlib import Path
from typing import cast

from advisor.model.finding import Finding, Prediction
from advisor.model.outcome import Comparison, FixOutcome, Interval, Report
from advisor.model.pipeline import Bottleneck, Iterator, Pipeline, StepStats, Verdict
from advisor.model.recording import Call, Consumer, Host, Site, Window
from advisor.report.hosts import hosts_to_dict
from advisor.report.outlook_json import outlook_to_dict
from advisor.report.proof_json import proof_to_dict
from advisor.report.statistics_json import statistics_to_dict
from advisor.report.window_json import host_view, root_calls, sources
from advisor.run_folder import write_whole

SCHEMA_VERSION = 1
REPORT_NAME = "report.json"
_NS_PER_MS = 1_000_000
_NUMBERS = re.compile(r"\[\n\s+([-\d][-\d.eE,\s]*)\n\s+\]")
"""An array of numbers over several lines; no text can look like it, as JSON writes the line ends of texts as escapes."""

Json = dict[str, object]


def report_to_dict(report: Report) -> Json:
    """The report in the names of the contract; valid against `load_schema()`."""
    analysis = report.analysis
    recording = analysis.recording
    return {
        "schema_version": SCHEMA_VERSION,
        "advisor_version": report.advisor_version,
        "target": analysis.target,
        "run_folder": report.run_folder or None,
        "host": analysis.host and _host(analysis.host),
        "tensorflow_version": (analysis.host.tensorflow_version or None) if analysis.host else None,
        "window": _window(recording.window) if recording and recording.window else None,
        "profiling_overhead": _number(analysis.profiling_overhead),
        "verdict": _verdict(analysis.verdict),
        "pipelines": [_pipeline(pipeline) for pipeline in analysis.pipelines],
        "findings": [_finding(finding) for finding in report.findings],
        "fixes": [_fix(fix) for fix in report.fixes],
        "comparison": report.comparison and _comparison(report.comparison),
        "outlook": report.outlook and outlook_to_dict(report.outlook),
        "proof": report.proof and proof_to_dict(report.proof, report.fixes),
        "notes": list(report.notes),
        "silenced": report.silenced,
        "rule_errors": [{"rule": error.rule, "message": error.message} for error in report.rule_errors],
        "statistics": statistics_to_dict(analysis.statistics),
        "calls": [_call(call) for call in analysis.calls],
        "sources": sources(report),
        "hosts": analysis.hosts and hosts_to_dict(analysis.hosts),
        "timeline": [host_view(view) for view in report.timeline],
        "warnings": _warnings(report),
    }


def report_to_bytes(report: Report) -> bytes:
    """The report as UTF-8 JSON with a final newline; file names that are no text are written as escapes."""
    text = json.dumps(report_to_dict(report), indent=2, ensure_ascii=False, allow_nan=False)
    text = _NUMBERS.sub(lambda match: "[" + " ".join(match[1].split()) + "]", text)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def write_report(report: Report, path: Path) -> None:
    """Write the JSON to `path`, whole or not at all. Raises AdvisorError when that is not possible."""
    write_whole(path, report_to_bytes(report))


def load_schema() -> Json:
    """The JSON Schema (2020-12) of `report_to_dict`."""
    text = resources.files("advisor.report").joinpath("report.schema.json").read_text("utf-8")
    return cast(Json, json.loads(text))


def _number(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _milliseconds(ns: float) -> float:
    return ns / _NS_PER_MS


def _site(site: Site | None) -> Json | None:
    """Where a finding or bottleneck points: the place a reader looks for."""
    return {"file": site.file, "line": site.line, "column": site.column} if site else None


def _host(host: Host) -> Json:
    return {
        "hostname": host.hostname,
        "cores": _number(host.cores),
        "cores_installed": host.cores_installed,
        "memory_bytes": host.memory_bytes,
        "memory_free_bytes": host.memory_free_bytes,
        "disk_read_bytes_per_s": _number(host.disk_read_bytes_per_s),
        "cpu_model": host.cpu_model,
        "platform": host.platform,
        "python_version": host.python_version,
        "accelerators": [
            {"kind": device.kind, "name": device.name, "memory_bytes": device.memory_bytes}
            for device in host.accelerators
        ],
    }


def _window(window: Window) -> Json:
    return {
        "warmup_steps": window.warmup_steps,
        "steps": window.steps,
        "duration_ms": _milliseconds(window.end_ns - window.start_ns),
        "plain_steps": window.plain_steps,
        "plain_duration_ms": _milliseconds(window.plain_end_ns - window.plain_start_ns),
        "closed_by": window.closed_by,
    }


def _verdict(verdict: Verdict) -> Json:
    return {
        "input_bound": verdict.is_input_bound,
        "input_wait_share": _number(verdict.input_wait_share),
        "max_speedup": _number(verdict.max_speedup),
        "is_ceiling_measured": verdict.is_ceiling_measured,
        "level": verdict.level,
        "step_time_ms": verdict.steps and _step_time(verdict.steps),
        "limit": verdict.limit,
        "sentence": verdict.sentence,
    }


def _step_time(steps: StepStats) -> Json:
    return {
        "median": _milliseconds(steps.median_ns),
        "p95": _milliseconds(steps.p95_ns),
        "count": steps.count,
        "mean": _milliseconds(steps.mean_ns),
        "median_low": _milliseconds(steps.low_ns),
        "median_high": _milliseconds(steps.high_ns),
    }


def _pipeline(pipeline: Pipeline) -> Json:
    return {
        "id": pipeline.id,
        "host": pipeline.host,
        "is_main": pipeline.is_main,
        "is_device": pipeline.is_device,
        "consumer": pipeline.consumer and _consumer(pipeline.consumer),
        "elements_per_s": _number(pipeline.elements_per_s),
        "num_elements": pipeline.num_elements,
        "input_wait_share": _number(pipeline.wait_share) if pipeline.span_ns else None,
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
        "calls": [_call(call) for call in iterator.calls],
        "num_calls": iterator.num_calls,
        "latency_ns": iterator.latency_ns,
        "self_ns": iterator.self_ns,
        "blame_ns": iterator.blame_ns,
        "blame_share": _number(iterator.blame_share),
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
        "buffered_elements": _number(iterator.buffered_elements),
        "elements": iterator.elements,
        "instances": iterator.instances,
        "parameters": iterator.parameters,
        "function_ns": iterator.function_ns,
        "python_ns": iterator.python_ns,
        "ops": [{"op": op.op, "count": op.count, "total_ns": op.total_ns} for op in iterator.ops],
        "is_upstream_unseen": iterator.is_upstream_unseen,
    }


def _call(call: Call) -> Json:
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
        "blame_share": _number(bottleneck.blame_share),
        "site": _site(call.site) if call else None,
        "resource": bottleneck.resource,
        "why": bottleneck.why,
        "classic_iterator_id": bottleneck.classic_iterator_id,
        "classic_why": bottleneck.classic_why,
    }


def _finding(finding: Finding) -> Json:
    return {
        "rule": finding.rule,
        "title": finding.title,
        "because": finding.because,
        "site": _site(finding.site),
        "iterator_id": finding.iterator_id,
        "predicted_speedup": finding.prediction and _ratio(finding.prediction),
        "memory_bytes": finding.memory_bytes,
        "safety": finding.fix.safety.value if finding.fix else None,
        "auto": finding.fix.is_auto if finding.fix else False,
        "diff": finding.diff,
        "evidence": {fact.name: {"value": _number(fact.value), "unit": fact.unit} for fact in finding.evidence},
        "docs": f"advisor explain {finding.rule}",
    }


def _ratio(ratio: Prediction | Interval) -> Json:
    return {"value": _number(ratio.value), "low": _number(ratio.low), "high": _number(ratio.high)}


def _fix(fix: FixOutcome) -> Json:
    measured = fix.measured
    return {
        "rule": fix.rule,
        "site": _site(fix.site),
        "predicted_speedup": fix.predicted and _ratio(fix.predicted),
        "measured": measured
        and {"speedup": _number(measured.value), "low": _number(measured.low), "high": _number(measured.high)},
        "safety_claimed": fix.safety_claimed.value,
        "safety_seen": fix.safety_seen.value if fix.safety_seen else None,
        "verdict": fix.verdict,
        "applied": fix.is_applied,
    }


def _comparison(comparison: Comparison) -> Json:
    speedup = comparison.pipeline_speedup
    return {
        "pipeline": {
            "before": _number(comparison.pipeline_before),
            "after": _number(comparison.pipeline_after),
            "speedup": _number(speedup.value),
            "low": _number(speedup.low),
            "high": _number(speedup.high),
        },
        "end_to_end": comparison.end_to_end and _ratio(comparison.end_to_end),
        "input_wait_share": {
            "before": _number(comparison.wait_share_before),
            "after": _number(comparison.wait_share_after),
        },
    }


def _warnings(report: Report) -> list[str]:
    """The analysis' and the report's, each once."""
    return list(dict.fromkeys((*report.analysis.warnings, *report.warnings)))
