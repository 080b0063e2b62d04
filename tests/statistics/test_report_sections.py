"""Profiles that hold little, or nonsense: sections say what would fill them, reports stay valid."""

from __future__ import annotations

import pytest

from advisor.profile.xspace import message_class
from advisor.report.statistics_json import statistics_to_dict
from advisor.statistics import add_statistics
from tests.profile.made_profile import ProfileBuilder
from tests.report.test_statistics_json import validator
from tests.statistics.made_profiles import NOTHING_KNOWN, statistics_of


def test_a_profile_without_events_has_no_figures(tmp_path):
    profile = ProfileBuilder()
    profile.host.line("python")
    path = profile.write(tmp_path / "a.xplane.pb")
    assert add_statistics(NOTHING_KNOWN, [path]).statistics is None


def test_missing_sections_say_what_would_fill_them(tmp_path):
    profile = ProfileBuilder()
    profile.host.line("python").event("something", 0, 1)
    missing = statistics_of(profile, tmp_path).missing
    assert set(missing) == {"overview", "input", "ops", "op_types", "kernels", "memory", "hosts"}
    assert all(text.endswith(".") for text in missing.values())


@pytest.mark.parametrize("offset_ps", [-(2**63), -1, 2**62, 2**63 - 1])
@pytest.mark.parametrize("timestamp_ns", [-(2**63), -1, 0, 2**62, 2**63 - 1])
def test_times_that_no_clock_shows_give_a_valid_report(tmp_path, offset_ps, timestamp_ns):
    profile = ProfileBuilder()
    for line in (
        profile.host.line("python"),
        profile.plane("/device:GPU:0").line("Stream #1", timestamp_ns=timestamp_ns),
    ):
        for length in (5, 2**62, -3):
            line.event("a:B", 0, 1, "B", tf_op="a:B", kernel_details="regs:x grid:1,-1,9999999999999999999")
            event = message_class("XEvent").FromString(line.message.events[-1])
            event.offset_ps, event.duration_ps = offset_ps, length
            line.message.events[-1] = event.SerializeToString()
    validator().validate(statistics_to_dict(statistics_of(profile, tmp_path)))
