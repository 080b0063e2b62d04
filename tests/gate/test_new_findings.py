"""New findings over several runs: which count, and which are shown."""

from __future__ import annotations

import pytest

from advisor.gate.new_findings import findings_of, new_findings
from advisor.model.check_result import BaselineEntry
from tests.gate.made_runs import made_report

FOUND = made_report(("serial-map", ".map(f)", 1.5))
NOT = made_report()


@pytest.mark.parametrize(
    ("runs", "aggregation", "num_new"),
    [
        ([FOUND], "median", 1),
        ([FOUND, NOT], "median", 0),
        ([FOUND, FOUND, NOT], "median", 1),
        ([FOUND, NOT, NOT], "median", 0),
        ([FOUND, FOUND, NOT], "optimistic", 0),
        ([FOUND, NOT, NOT], "pessimistic", 1),
    ],
)
def test_a_finding_of_some_runs(runs, aggregation, num_new):
    new = new_findings([findings_of(run) for run in runs], (), aggregation)
    assert new.num_new == num_new == len(new.findings)
    assert new.per_run == tuple(len(run.findings) for run in runs)


def test_of_several_equal_ones_those_with_the_smallest_gain_are_new():
    run = findings_of(made_report(("r", ".map(f)", 3.0), ("r", ".map( f )", 2.0), ("s", ".map(f)", 1.2)))
    new = new_findings([run], (BaselineEntry("r", ".map(f)"),))
    assert [(one.rule, one.prediction.value) for one in new.findings] == [("r", 2.0), ("s", 1.2)]
    assert (new.num_new, new.num_known) == (2, 1)


def test_findings_without_a_call_are_counted_too():
    run = findings_of(made_report(("short-steps", "")))
    assert new_findings([run], ()).num_new == 1
    assert new_findings([run], (BaselineEntry("short-steps", ""),)).num_new == 0
