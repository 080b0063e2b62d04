"""report.json: the public contract, described by `report.schema.json` in this folder.

In: a `Report`.  Out: the dictionary, the bytes or the file. The keys are the fields of `report_format.Report`.
"""

from __future__ import annotations

from pathlib import Path

from advisor.model.finding import Finding
from advisor.model.outcome import Report
from advisor.model.pipeline import StepStats, Verdict
from advisor.model.recording import Window
from advisor.model.run_folder import write_whole
from advisor.report import proof_json
from advisor.report import report_format as v1
from advisor.report.json_format import SCHEMA_VERSION, Json, milliseconds, read_schema, to_bytes, to_dict
from advisor.report.pipeline_format import Site
from advisor.report.pipelines_json import convert_call, convert_pipeline
from advisor.report.proof_format import Ratio
from advisor.report.source_excerpts import read_sources
from advisor.report.statistics_json import statistics_to_dict

REPORT_NAME = "report.json"


def report_to_dict(report: Report) -> Json:
    """Convert a report to the dictionary of report.json, valid against `load_schema()`."""
    return {**to_dict(_document(report)), "statistics": statistics_to_dict(report.analysis.statistics)}


def report_to_bytes(report: Report) -> bytes:
    """Return the report as UTF-8 JSON with a final newline; undecodable file names are written as escapes."""
    return to_bytes(report_to_dict(report))


def write_report(report: Report, path: Path) -> None:
    """Write the JSON to `path` atomically.

    Raises:
        AdvisorError: The file cannot be written.
    """
    write_whole(path, report_to_bytes(report))


def load_schema() -> Json:
    """Return the JSON Schema (2020-12) of `report_to_dict`."""
    return read_schema("report.schema.json")


def _document(report: Report) -> v1.Report:
    analysis = report.analysis
    recording = analysis.recording
    return v1.Report.of(
        report,
        schema_version=SCHEMA_VERSION,
        target=analysis.target,
        run_folder=report.run_folder or None,
        host=analysis.host and v1.Host.of(analysis.host, calibration=v1.Calibration.maybe(analysis.host.calibration)),
        tensorflow_version=(analysis.host.tensorflow_version or None) if analysis.host else None,
        window=_window(recording.window) if recording and recording.window else None,
        profiling_overhead=analysis.profiling_overhead,
        verdict=_verdict(analysis.verdict),
        pipelines=[convert_pipeline(pipeline) for pipeline in analysis.pipelines],
        findings=[_finding(finding) for finding in report.findings],
        hints=[_finding(finding) for finding in report.hints],
        rejected=[
            v1.Rejected.of(
                entry, evidence={fact.name: v1.Fact.of(fact) for fact in entry.evidence}, site=Site.maybe(entry.site)
            )
            for entry in report.rejected
        ],
        fixes=[proof_json.fix(fix) for fix in report.fixes],
        comparison=report.comparison and proof_json.comparison(report.comparison),
        outlook=report.outlook and proof_json.outlook(report.outlook),
        proof=report.proof and proof_json.proof(report.proof, report.fixes),
        permission=report.permission or None,
        statistics=None,  # converted separately, because its texts are shortened
        calls=[convert_call(call) for call in analysis.calls],
        sources=read_sources(report),
        hosts=analysis.hosts,
        warnings=list(dict.fromkeys((*analysis.warnings, *report.warnings))),
    )


def _window(window: Window) -> v1.Window:
    return v1.Window.of(
        window,
        duration_ms=milliseconds(window.end_ns - window.start_ns),
        plain_duration_ms=milliseconds(window.plain_end_ns - window.plain_start_ns),
    )


def _verdict(verdict: Verdict) -> v1.Verdict:
    return v1.Verdict.of(
        verdict,
        input_bound=verdict.is_input_bound,
        step_time_ms=verdict.steps and _step_time(verdict.steps),
        buffer=v1.BufferReadings.maybe(verdict.buffer),
        gaps=verdict.gaps and v1.GapReadings.of(verdict.gaps, step_time_ms=milliseconds(verdict.gaps.step_ns)),
    )


def _step_time(steps: StepStats) -> v1.StepTimeMs:
    return v1.StepTimeMs.of(
        steps,
        median=milliseconds(steps.median_ns),
        p95=milliseconds(steps.p95_ns),
        mean=milliseconds(steps.mean_ns),
        median_low=None if steps.low_ns is None else milliseconds(steps.low_ns),
        median_high=None if steps.high_ns is None else milliseconds(steps.high_ns),
    )


def _finding(finding: Finding) -> v1.Finding:
    fix = finding.fix
    return v1.Finding.of(
        finding,
        site=Site.maybe(finding.site),
        predicted_speedup=Ratio.maybe(finding.prediction),
        over_run=proof_json.run_gain(finding.over_run),
        uncalibrated=finding.prediction.uncalibrated if finding.prediction else (),
        safety=fix and fix.safety,
        auto=fix is not None and fix.is_auto,
        assumptions=fix.assumptions if fix else (),
        code=finding.code or None,
        evidence={fact.name: v1.Fact.of(fact) for fact in finding.evidence},
        docs=f"advisor explain {finding.rule}",
        prove_command=finding.prove_command or None,
        fix_command=finding.fix_command or None,
    )
