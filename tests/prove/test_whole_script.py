"""How much time the runs of the whole script are left."""

from __future__ import annotations

from pathlib import Path

import pytest

from advisor.capture.request import CaptureRequest
from advisor.prove.proposals import Proposals
from advisor.prove.whole_script import WholeScript
from advisor.testing import batch, map_, pipeline, source

RUN_S = 10 + 3 + 3 + 2
"""Start, warm-up, window and end of a run of a script that starts in 10 s."""


@pytest.mark.parametrize(
    ("left_s", "runs"),
    [
        (300, 8),  # the usual number
        (180, 6),  # fewer may decide, too, and some proof is better than none
        (150, 0),  # not even those: the trials take it all
    ],
)
def test_trials_leave_time_for_the_runs_that_the_budget_allows(left_s: float, runs: int) -> None:
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    request = CaptureRequest(Path("unused"), Path("train.py"))
    whole = WholeScript(request, analysis, Proposals({}, None), 10.0, left_s, lambda progress: None, clock=lambda: 0.0)
    assert whole.seconds_to_reserve([]) == pytest.approx(runs * RUN_S)


@pytest.mark.parametrize(("left_s", "runs"), [(300, 8), (150, 6), (140, 0)])
def test_if_trials_are_short_the_whole_script_may_take_the_rest(left_s: float, runs: int) -> None:
    analysis = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis
    request = CaptureRequest(Path("unused"), Path("train.py"))
    whole = WholeScript(request, analysis, Proposals({}, None), 10.0, left_s, lambda progress: None, clock=lambda: 0.0)
    assert whole.seconds_to_reserve([], 40.0) == pytest.approx(runs * RUN_S)
