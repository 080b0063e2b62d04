"""Predictions use the costs that were measured on the machine of the run, and say which ones were not."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest

from advisor.engine import load_rules
from advisor.host.calibration.prediction import HANDOFF_OVERHEAD_NS
from advisor.host.calibration.stored import BUILT_IN
from advisor.model.calibration import Calibration
from advisor.model.codec import decode, encode
from advisor.model.finding import Finding
from advisor.model.recording import Host, Recording, ScriptExit
from advisor.model.settings import Settings
from advisor.predict import cache_places, predict_parallel, predict_speedup, read_from_disk
from advisor.predict.machine_costs import machine_costs
from advisor.report.report_json import report_to_dict
from advisor.testing import batch, map_, pipeline, prefetch, source
from advisor.workflows.analyze import analyze_run

RUN = Path(__file__).parents[1] / "data" / "keras_fit"


def calibrated(analysis, **costs):
    return replace(analysis, host=replace(analysis.host, calibration=Calibration(**costs)))


def parallel(**costs):
    made = pipeline(source(), map_("augment", ms=0.1, random=True), batch(8), consumer_ms=0.01, cores=8)
    main = made.analysis.main
    iterator = next(it for it in main.iterators if it.calls and it.calls[0].method == "map")
    return predict_parallel(calibrated(made.analysis, **costs) if costs else made.analysis, main, [iterator], 1, 2)


def test_a_cheaper_hand_over_predicts_more():
    built_in, cheap = parallel(), parallel(handoff_ns=5_000.0)
    assert cheap.value > built_in.value and cheap.low > built_in.low
    assert built_in.uncalibrated == ("handoff_ns",)
    assert cheap.uncalibrated == ()


def test_measuring_the_built_in_cost_changes_nothing_but_the_mark():
    built_in, same = parallel(), parallel(handoff_ns=HANDOFF_OVERHEAD_NS.value[1])
    assert same == built_in and same.uncalibrated != built_in.uncalibrated


@pytest.mark.parametrize(("is_ahead", "name"), [(False, "next_here_ns"), (True, "next_ns")])
def test_a_pipeline_alone_is_limited_by_next(is_ahead, name):
    made = pipeline(source(), map_("decode", ms=1.0), batch(4), prefetch(), consumer_ms=0.001)
    host = made.analysis.host
    recording = Recording("train.py", host, ScriptExit("stopped"), is_pipeline_alone=True)
    alone = replace(made.analysis, recording=recording)
    if not is_ahead:
        here = tuple(replace(it, is_async=False) for it in alone.main.iterators)
        alone = replace(alone, pipelines=(replace(alone.main, iterators=here),))
    everything = dict.fromkeys((it.id for it in made.analysis.main.iterators), 0.0)
    built_in = predict_speedup(alone, alone.main, everything, everything)
    assert built_in.uncalibrated == (name,)
    fast = calibrated(alone, **{name: getattr(BUILT_IN, name) / 2})
    prediction = predict_speedup(fast, fast.main, everything, everything)
    assert prediction.value > 1.5 * built_in.value
    assert prediction.uncalibrated == ()


@pytest.mark.parametrize(("rate", "is_limit"), [(None, False), (1e-4, True), (1e3, False)])
def test_elements_in_the_page_cache_are_read_no_faster_than_was_measured(rate, is_limit):
    made = pipeline(source(), map_("decode", ms=2.0, bytes=100_000), batch(4), consumer_ms=0.1)
    analysis = calibrated(made.analysis, page_cache_bytes_per_ns=rate)
    place = max(cache_places(analysis, analysis.main), key=lambda place: place.prediction.high)
    prediction = read_from_disk(analysis, analysis.main, place, bytes_per_s=1.0)
    assert (prediction.low, prediction.value) == (1.0, 1.0)
    assert prediction.high == (1.0 if is_limit else place.prediction.high)


def test_unknown_machine_has_the_built_in_costs():
    costs = machine_costs(replace(pipeline(source(), batch(4), consumer_ms=1).analysis, host=None))
    assert costs.handoff_ns == HANDOFF_OVERHEAD_NS.value
    assert costs.uncalibrated == {
        "next_ns", "next_here_ns", "component_ns", "handoff_ns", "copied_bytes_per_ns", "small_read_ns", "op_start_ns",
    }  # fmt: skip


@pytest.mark.long
def test_a_calibration_travels_with_the_run(tmp_path, validate):
    """Whatever this machine's cache holds, a run is analysed with the costs recorded in it."""
    host = Host("h", 2.0, 2, 1, 1, calibration=Calibration(handoff_ns=7_000.0, measured_on="2026-11-21"))
    assert decode(encode(host), Host) == host
    for path in RUN.rglob("*"):
        if path.is_file():
            target = tmp_path / path.relative_to(RUN)
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(path.read_bytes())
    rules = load_rules([], Settings())
    before = report_to_dict(analyze_run(tmp_path, rules, Settings()))
    assert before["host"]["calibration"] is None
    recording = json.loads((tmp_path / "recording.json").read_text("utf-8"))
    recording["host"]["calibration"] = json.loads(encode(host.calibration))
    (tmp_path / "recording.json").write_text(json.dumps(recording), "utf-8")
    after = report_to_dict(analyze_run(tmp_path, rules, Settings()))
    validate(after)
    assert after["host"]["calibration"]["handoff_ns"] == 7_000.0
    assert [finding["rule"] for finding in after["findings"]] == [finding["rule"] for finding in before["findings"]]
    assert not any("handoff_ns" in finding["uncalibrated"] for finding in after["findings"])


@pytest.mark.parametrize("value", [0.0, -1.0, 1e300, float("inf"), float("nan")])
def test_costs_that_cannot_be_right_are_ignored(value):
    """A run folder may come from anybody."""
    names = (
        "next_ns", "next_here_ns", "component_ns", "handoff_ns", "copied_bytes_per_ns", "small_read_ns", "op_start_ns",
    )  # fmt: skip
    analysis = pipeline(source(), map_("augment", ms=0.1), batch(8), consumer_ms=0.01).analysis
    costs = machine_costs(calibrated(analysis, **dict.fromkeys(names, value)))
    assert costs.uncalibrated == set(names)
    assert costs == machine_costs(analysis)


def test_a_dearer_read_predicts_more_from_a_larger_buffer():
    made = pipeline(source(ms=0.05, bytes=12_000, buffer_size=256), batch(64), consumer_ms=1, cores=4)
    rule = next(rule.rule for rule in load_rules([], Settings()) if rule.id == "small-reads")
    (built_in,), (dear,) = (
        [finding for finding in rule.check(analysis) if isinstance(finding, Finding)]
        for analysis in (made.analysis, calibrated(made.analysis, small_read_ns=900.0))
    )
    assert dear.prediction.value > 1.5 * built_in.prediction.value
    assert "small_read_ns" in built_in.prediction.uncalibrated and "small_read_ns" not in dear.prediction.uncalibrated
