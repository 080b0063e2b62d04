"""Reports to draw: of real runs, of other people's profiles, made up, and hostile."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

from advisor.engine import load_rules
from advisor.model.settings import Settings
from advisor.report.report_json import report_to_bytes
from advisor.workflows.analyze import analyze_run
from tests.hosts.made_hosts import write_hosts
from tests.report.made_reports import evil, proved_report, slow_report

DATA = Path(__file__).parents[2] / "data"
GPU = Path(__file__).parents[3] / "../shared/profiles/gpu-tf24-many-kernels"
PAGES = ("verdict", "pipelines", "overview", "input", "ops", "kernels", "memory", "hosts", "timeline")
MARKUP = "</script><script>alert(1)</script><img src=x onerror=alert(2)>\"'`{{7*7}}<!--"


@cache
def _real(path: Path) -> bytes:
    return report_to_bytes(analyze_run(path, load_rules([], Settings()), Settings()))


def real_report(name: str) -> dict[str, Any]:
    """The report of a run folder below tests/data."""
    return json.loads(_real(DATA / name))


def gpu_report() -> dict[str, Any]:
    """The report of a profile with kernels and memory."""
    return json.loads(_real(GPU))


def hosts_report(folder: Path) -> dict[str, Any]:
    """The report of three made-up hosts, written below `folder`, of which `b` is a straggler."""
    logdir = write_hosts(folder, {"a": 100, "b": 450, "c": 120})
    return json.loads(report_to_bytes(analyze_run(logdir, load_rules([], Settings()), Settings())))


def proved() -> dict[str, Any]:
    """What `advisor fix` leaves."""
    return json.loads(report_to_bytes(proved_report()))


def hostile(report: dict[str, Any] | None = None) -> dict[str, Any]:
    """A report in which every free text ends with markup, quotes and control characters, and one is a megabyte long."""
    report_json = report or json.loads(report_to_bytes(evil(slow_report())))
    kept = {"level", "limit", "resource", "id", "parent_id", "iterator_id", "classic_iterator_id", "safety", "unit", "verdict",
            "side", "kinds", "safety_claimed", "safety_seen", "inputs", "nested_in", "made_by"}  # fmt: skip

    def spoiled(value: Any, key: str = "") -> Any:
        if isinstance(value, str):
            return value if key in kept and len(value) < 40 else value + MARKUP
        if isinstance(value, dict):
            return {name: spoiled(inner, name) for name, inner in value.items()}
        if isinstance(value, list):
            return [spoiled(inner, key) for inner in value]
        return value

    result: dict[str, Any] = spoiled(report_json)
    result["target"] = "m" * 1_000_000 + MARKUP
    result["warnings"] = ["w" * 1_000_000]
    return result
