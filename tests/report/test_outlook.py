"""The outlook in report.json and in the text report."""

from __future__ import annotations

import io
import json
import math

from rich.console import Console

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.settings import Settings
from advisor.report.report_json import report_to_bytes
from advisor.report.report_text import print_report
from advisor.testing import batch, map_, pipeline, source

ALL = Settings(allow=("rerandomized",))


def report_of(**machine):
    made = pipeline(source(ms=0.1), map_("augment", ms=5, random=True), batch(32), consumer_ms=10, **machine)
    return run_rules(made.analysis, load_rules([], ALL), ALL)


def test_json_holds_demands_limits_and_the_plan(validate):
    data = json.loads(report_to_bytes(report_of(cores=4)))
    validate(data)
    outlook = data["outlook"]
    ids = [it["id"] for it in data["pipelines"][0]["iterators"]]
    assert [demand["iterator_id"] for demand in outlook["demands"]] == ids
    busiest = max(outlook["demands"], key=lambda demand: demand["cpu_ns"] + demand["waiting_ns"])
    assert busiest["capacity_per_s"] == 1e9 * busiest["servers"] / (busiest["cpu_ns"] + busiest["waiting_ns"])
    assert outlook["limits"] == sorted(outlook["limits"], key=lambda limit: -limit["step_ns"])
    plan = outlook["plan"]
    assert plan["findings"] and all(place < len(data["findings"]) for place in plan["findings"])
    assert plan["limit"]["resource"] == "cpu" and plan["service_workers"] == 5  # 163 ms on 4 cores for each 10 ms: 4.1


def test_what_is_not_finite_is_null(validate):
    report = report_of(cores=4)
    free = [demand for demand in report.outlook.demands if demand.busy_ns == 0]
    assert free and all(math.isinf(demand.capacity_per_s) for demand in free)
    data = json.loads(report_to_bytes(report))
    assert [d["capacity_per_s"] for d in data["outlook"]["demands"] if not d["cpu_ns"]] == [None] * len(free)


def test_text_says_the_plan_behind_the_findings():
    console = Console(file=io.StringIO(), width=200)
    print_report(report_of(cores=4), console)
    text = console.file.getvalue()
    assert text.index("What to change") < text.index("Best plan: 1 alone, predicted ")
    assert "Then the cores are the limit, at " in text and "5 tf.data service workers" in text
