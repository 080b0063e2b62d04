"""report.json: the public contract, described by `report.schema.json` in this folder.

In: a `Report`.  Out: plain dictionaries, JSON bytes, or a file written atomically. Numbers that are not finite become null, as
JSON has no NaN.
"""

from __future__ import annotations

import json
import re
from dataclasses import fields
from importlib import resources
from pathlib import Path
from typing import cast

from advisor.model.calibration import Calibration
from advisor.model.finding import Finding, Prediction
from advisor.model.outcome import Comparison, FixOutcome, Interval, Report
from advisor.model.pipeline import StepStats, Verdict
from advisor.model.recording import Host, Window
from advisor.model.run_folder import write_whole
from advisor.report.hosts_text import hosts_to_dict
from advisor.report.outlook_json import outlook_to_dict
from advisor.report.pipelines_json import call_to_dict, finite, pipeline_to_dict, site_to_dict
from advisor.report.proof_json import proof_to_dict
from advisor.report.statistics_json import statistics_to_dict
from advisor.report.window_json import host_view, sources

SCHEMA_VERSION = 1
REPORT_NAME = "report.json"
_NS_PER_MS = 1_000_000
_NUMBERS = re.compile(r"\[\n\s+([-\d][-\d.eE,\s]*)\n\s+\]")
"""An array of numbers over several lines; no JSON string can match, as its line breaks are escaped."""

Json = dict[str, object]


def report_to_dict(report: Report) -> Json:
    """Convert a report to the dictionary of report.json, valid against `load_schema()`."""
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
        "profiling_overhead": finite(analysis.profiling_overhead),
        "verdict": _verdict(analysis.verdict),
        "pipelines": [pipeline_to_dict(pipeline) for pipeline in analysis.pipelines],
        "findings": [_finding(finding) for finding in report.findings],
        "fixes": [_fix(fix) for fix in report.fixes],
        "comparison": report.comparison and _comparison(report.comparison),
        "outlook": report.outlook and outlook_to_dict(report.outlook),
        "proof": report.proof and proof_to_dict(report.proof, report.fixes),
        "notes": list(report.notes),
        "silenced": report.silenced,
        "rule_errors": [{"rule": error.rule, "message": error.message} for error in report.rule_errors],
        "statistics": statistics_to_dict(analysis.statistics),
        "calls": [call_to_dict(call) for call in analysis.calls],
        "sources": sources(report),
        "hosts": analysis.hosts and hosts_to_dict(analysis.hosts),
        "timeline": [host_view(view) for view in report.timeline],
        "warnings": _warnings(report),
    }


def report_to_bytes(report: Report) -> bytes:
    """Return the report as UTF-8 JSON with a final newline; undecodable file names are written as escapes."""
    text = json.dumps(report_to_dict(report), indent=2, ensure_ascii=False, allow_nan=False)
    text = _NUMBERS.sub(lambda match: "[" + " ".join(match[1].split()) + "]", text)
    return text.encode("utf-8", "backslashreplace") + b"\n"


def write_report(report: Report, path: Path) -> None:
    """Write the JSON to `path` atomically.

    Raises:
        AdvisorError: The file cannot be written.
    """
    write_whole(path, report_to_bytes(report))


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `report_to_dict`."""
    text = resources.files("advisor.report").joinpath("report.schema.json").read_text("utf-8")
    return cast(Json, json.loads(text))


def _milliseconds(ns: float) -> float:
    return ns / _NS_PER_MS


def _host(host: Host) -> Json:
    return {
        "hostname": host.hostname,
        "cores": finite(host.cores),
        "cores_installed": host.cores_installed,
        "memory_bytes": host.memory_bytes,
        "memory_free_bytes": host.memory_free_bytes,
        "disk_read_bytes_per_s": finite(host.disk_read_bytes_per_s),
        "cpu_model": host.cpu_model,
        "platform": host.platform,
        "python_version": host.python_version,
        "accelerators": [
            {"kind": device.kind, "name": device.name, "memory_bytes": device.memory_bytes}
            for device in host.accelerators
        ],
        "calibration": host.calibration and calibration_to_dict(host.calibration),
    }


def calibration_to_dict(calibration: Calibration) -> Json:
    """Convert measured costs to the dictionary of report.json."""
    costs = {
        field.name: getattr(calibration, field.name)
        for field in fields(Calibration)
        if field.name not in ("failure", "is_busy")
    }
    return {name: finite(value) if isinstance(value, float) else value for name, value in costs.items()}


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
        "input_wait_share": finite(verdict.input_wait_share),
        "max_speedup": finite(verdict.max_speedup),
        "is_ceiling_measured": verdict.is_ceiling_measured,
        "level": verdict.level,
        "step_time_ms": verdict.steps and _step_time(verdict.steps),
        "limit": verdict.limit,
        "sentence": verdict.sentence,
        "wait_steps": verdict.wait_steps,
    }


def _step_time(steps: StepStats) -> Json:
    return {
        "median": _milliseconds(steps.median_ns),
        "p95": _milliseconds(steps.p95_ns),
        "count": steps.count,
        "mean": _milliseconds(steps.mean_ns),
        "median_low": None if steps.low_ns is None else _milliseconds(steps.low_ns),
        "median_high": None if steps.high_ns is None else _milliseconds(steps.high_ns),
        "stretches": steps.stretches,
    }


def _finding(finding: Finding) -> Json:
    return {
        "rule": finding.rule,
        "title": finding.title,
        "because": finding.because,
        "site": site_to_dict(finding.site),
        "iterator_id": finding.iterator_id,
        "predicted_speedup": finding.prediction and _ratio(finding.prediction),
        "uncalibrated": list(finding.prediction.uncalibrated) if finding.prediction else [],
        "memory_bytes": finding.memory_bytes,
        "safety": finding.fix.safety.value if finding.fix else None,
        "auto": finding.fix.is_auto if finding.fix else False,
        "assumptions": list(finding.fix.assumptions) if finding.fix else [],
        "diff": finding.diff,
        "evidence": {fact.name: {"value": finite(fact.value), "unit": fact.unit} for fact in finding.evidence},
        "docs": f"advisor explain {finding.rule}",
    }


def _ratio(ratio: Prediction | Interval) -> Json:
    return {"value": finite(ratio.value), "low": finite(ratio.low), "high": finite(ratio.high)}


def _fix(fix: FixOutcome) -> Json:
    measured = fix.measured
    return {
        "rule": fix.rule,
        "site": site_to_dict(fix.site),
        "predicted_speedup": fix.predicted and _ratio(fix.predicted),
        "measured": measured
        and {"speedup": finite(measured.value), "low": finite(measured.low), "high": finite(measured.high)},
        "safety_claimed": fix.safety_claimed.value,
        "safety_seen": "undecided" if fix.is_undecided else fix.safety_seen.value if fix.safety_seen else None,
        "verdict": fix.verdict,
        "applied": fix.is_applied,
        "proved_on": fix.proved_on,
    }


def _comparison(comparison: Comparison) -> Json:
    speedup = comparison.pipeline_speedup
    return {
        "pipeline": {
            "before": finite(comparison.pipeline_before),
            "after": finite(comparison.pipeline_after),
            "speedup": finite(speedup.value),
            "low": finite(speedup.low),
            "high": finite(speedup.high),
        },
        "end_to_end": comparison.end_to_end and _ratio(comparison.end_to_end),
        "input_wait_share": {
            "before": finite(comparison.wait_share_before),
            "after": finite(comparison.wait_share_after),
        },
    }


def _warnings(report: Report) -> list[str]:
    """Warnings of the analysis and of the report, without duplicates."""
    return list(dict.fromkeys((*report.analysis.warnings, *report.warnings)))
