from __future__ import annotations

import dataclasses
import json
import math

import pytest

from advisor.model.finding import Prediction, Rejected
from advisor.report.report_json import load_schema, report_to_bytes, report_to_dict, write_report
from tests.report.made_reports import empty_report, evil, healthy_report, proved_report, slow_report

REPORTS = [slow_report, healthy_report, empty_report, proved_report]
CONTRACT = {
    "": ["schema_version", "advisor_version", "target", "host", "tensorflow_version", "verdict", "pipelines", "findings",
         "fixes", "comparison", "rule_errors", "warnings"],
    "verdict": ["input_bound", "input_wait_share", "max_speedup", "step_time_ms", "limit", "sentence"],
    "pipeline": ["id", "host", "consumer", "elements_per_s", "iterators", "bottleneck", "already_done"],
    "iterator": ["id", "parent_id", "name", "long_name", "calls", "num_calls", "latency_ns", "self_ns", "blame_share",
                 "parallelism", "buffer_size", "element_bytes", "is_async", "on_critical_path", "is_bottleneck",
                 "injected_by_tensorflow"],
    "call": ["method", "file", "line", "column", "end_line", "end_column"],
    "bottleneck": ["iterator_id", "name", "long_name", "blame_share", "site", "resource"],
    "finding": ["rule", "title", "because", "site", "predicted_speedup", "memory_bytes", "safety", "auto", "diff",
                "evidence", "docs"],
    "fix": ["rule", "site", "predicted_speedup", "measured", "safety_claimed", "safety_seen", "verdict", "applied"],
    "comparison": ["pipeline", "end_to_end", "input_wait_share"],
}  # fmt: skip
"""Names that other people's programs rely on; none may go."""


def no_constants(name):
    raise AssertionError(f"{name} is no JSON")


@pytest.mark.parametrize("made", REPORTS, ids=lambda made: made.__name__)
def test_report_is_valid_against_the_schema(made, validate):
    validate(json.loads(report_to_bytes(made()), parse_constant=no_constants))


@pytest.mark.parametrize("made", REPORTS, ids=lambda made: made.__name__)
def test_hostile_names_stay_text(made, validate):
    data = report_to_bytes(evil(made()))
    validate(json.loads(data.decode("utf-8")))
    assert b"\x1b" not in data


@pytest.mark.parametrize("name", CONTRACT)
def test_names_of_the_contract_are_required(name):
    schema = load_schema()
    place = schema["$defs"][name] if name else schema
    assert set(CONTRACT[name]) <= set(place["required"])


def test_figures_are_the_models():
    report = slow_report()
    main = report.analysis.main
    data = report_to_dict(report)
    assert data["verdict"]["input_wait_share"] == report.analysis.verdict.input_wait_share
    assert data["verdict"]["step_time_ms"]["median"] == report.analysis.verdict.steps.median_ns / 1e6
    (pipeline,) = data["pipelines"]
    assert [it["blame_share"] for it in pipeline["iterators"]] == [it.blame_share for it in main.iterators]
    bottleneck = main.iterator(main.bottleneck.iterator_id)
    assert pipeline["bottleneck"]["site"]["line"] == bottleneck.main_call.site.line
    (finding,) = data["findings"]
    assert finding["predicted_speedup"] == {"value": 3.1, "low": 2.4, "high": 3.6}
    assert finding["evidence"]["blame"] == {"value": 0.9, "unit": "share"}
    assert finding["auto"] is True
    assert finding["prove_command"] is None and finding["fix_command"] is None
    assert finding["safety"] == "exact"


def test_commands_and_places_are_the_models():
    report = slow_report()
    site = report.analysis.calls[0].site
    finding = dataclasses.replace(report.findings[0], prove_command="advisor prove x", fix_command="advisor fix x")
    rejected = Rejected("a-rule", "Do it", "no", site=site)
    data = report_to_dict(dataclasses.replace(report, findings=(finding,), rejected=(rejected,)))
    assert (data["findings"][0]["prove_command"], data["findings"][0]["fix_command"]) == (
        "advisor prove x",
        "advisor fix x",
    )
    assert data["rejected"][0]["site"] == {"file": site.file, "line": site.line, "column": site.column}


def test_numbers_that_json_lacks_become_null(validate):
    report = slow_report()
    finding = dataclasses.replace(report.findings[0], prediction=Prediction(math.inf, math.nan, -math.inf))
    data = json.loads(report_to_bytes(dataclasses.replace(report, findings=(finding,))), parse_constant=no_constants)
    validate(data)
    assert data["findings"][0]["predicted_speedup"] == {"value": None, "low": None, "high": None}


def test_file_is_written_whole(tmp_path):
    path = tmp_path / "report.json"
    path.write_text("old")
    write_report(slow_report(), path)
    assert json.loads(path.read_text())["schema_version"] == 1
    assert [child.name for child in tmp_path.iterdir()] == ["report.json"]
