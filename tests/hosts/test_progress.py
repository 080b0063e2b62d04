"""Hosts that are read show as a bar; a single one does not."""

from __future__ import annotations

from advisor.model.settings import Settings
from advisor.report.progress import describe
from advisor.workflows.analyze import analyze_run
from tests.hosts.made_hosts import write_hosts


def shown(logdir) -> list[str]:
    lines: list[str] = []
    analyze_run(logdir, [], Settings(), on_progress=lambda progress: lines.append(describe(progress, 0)))
    return lines


def test_a_bar_that_grows_with_the_hosts(tmp_path):
    lines = shown(write_hosts(tmp_path, {f"h{number}": 100 for number in range(4)}))
    assert lines[0] == "analysing (######------------------ 1/4 hosts)"
    assert lines[3] == "analysing (######################## 4/4 hosts)"
    assert lines[4:] == ["analysing (timeline)"], "no full bar stands while more is read"


def test_one_host_needs_no_bar(tmp_path):
    assert shown(write_hosts(tmp_path, {"a": 100})) == []
