"""The verdict on few steps repeats what the steps themselves show, and stays undecided."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.pipeline import StepStats
from advisor.statistics.few_steps import add_few_steps_verdict
from tests.report.made_reports import slow_report

MS = 1_000_000


def analysis_of(count):
    """Of `count` steps, each of 10 ms, of which 8 ms are waiting; without statistics."""
    analysis = slow_report().analysis
    main = analysis.main
    steps = count and StepStats(count, *[10 * MS] * 5)
    few = replace(main, steps=steps or None, span_ns=count * 10 * MS, wait_ns=count * 8 * MS)
    verdict = replace(analysis.verdict, is_input_bound=False, input_wait_share=None, max_speedup=None, level="unknown")
    return replace(analysis, pipelines=(few,), verdict=verdict)


@pytest.mark.parametrize(
    ("count", "says"),
    [
        (
            1,
            "In the only step of the profile, 80 % of 10 ms was spent waiting for the input pipeline. One step does not",
        ),
        (
            2,
            "In the 2 steps of the profile, 80 % of 10 ms each (mean) was spent waiting for the input pipeline. So few",
        ),
    ],
)
def test_steps_of_the_pipeline_are_told_where_the_profile_has_no_overview(count, says):
    verdict = add_few_steps_verdict(analysis_of(count)).verdict
    assert says in verdict.sentence
    assert verdict.input_wait_share == 0.8
    assert (verdict.level, verdict.is_input_bound) == ("unknown", False), "one step closes no gate"


@pytest.mark.parametrize("count", [0, 3])
def test_no_step_and_enough_steps_leave_the_verdict_as_it_is(count):
    analysis = analysis_of(count)
    assert add_few_steps_verdict(analysis) is analysis
