"""Which times of lines are shown as estimates."""

from __future__ import annotations

import pytest

from advisor.report.html.wording import FILTERS
from advisor.report.what_runs import about


@pytest.mark.parametrize(
    ("total_ns", "unrecorded_ns", "samples", "text"),
    [
        (100, 0, None, ""),
        (100, 10, None, ""),
        (100, 11, None, "about "),
        (100, 0, 3, "about "),
        (0, 0, None, ""),
    ],
)
def test_a_time_of_which_more_than_a_tenth_is_estimated(
    total_ns: int, unrecorded_ns: int, samples: int | None, text: str
) -> None:
    assert about(total_ns, unrecorded_ns, samples) == text
    line = {"total_ns": total_ns, "unrecorded_ns": unrecorded_ns, "samples": samples}
    assert FILTERS["about"](line) == text


def test_a_report_of_an_earlier_version_has_no_estimates() -> None:
    assert FILTERS["about"]({"total_ns": 100, "samples": None}) == ""
