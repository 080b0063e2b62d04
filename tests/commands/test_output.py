"""What the commands share: when `--fail-on` matches."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.commands.output import is_matched
from tests.report.made_reports import slow_report


@pytest.mark.parametrize(("certainty", "matched"), [("low", False), ("medium", True), ("high", True)])
def test_one_or_two_steps_close_no_gate(certainty, matched):
    report = slow_report()
    verdict = replace(report.analysis.verdict, certainty=certainty)
    report = replace(report, analysis=replace(report.analysis, verdict=verdict))
    assert verdict.is_input_bound and is_matched(report, ["input-bound"]) is matched
    assert is_matched(report, ["any"]), "its findings were asked for by name"
