"""Pipelines shaped like the three realistic examples, with any amount of memory: nothing is proposed that does not fit,
alone or together with others. That nothing of the kind is tried either is up to the trial runner.
"""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.host.calibration.prediction import MEMORY_SHARE
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, shuffle, source
from tests.effort import examples

KIB, MIB = 1 << 10, 1 << 20
ALL = Settings(allow=("rerandomized", "reordered", "numerics"))
RULES = load_rules([], ALL)
IMAGE = 96 * 96 * 3 * 4

SHAPES = {
    "flowers_like": (
        source(elements=3_200, bytes=20 * KIB, ms=0.02),
        map_("decode", ms=2, bytes=IMAGE, ops=("DecodeJpeg", "ResizeBilinear")),
        map_("augment", ms=0.4, random=True, bytes=IMAGE),
        shuffle(1000),
        batch(32),
    ),
    "image_folder": (
        source("ListFiles", elements=2_000, bytes=80),
        map_("load", ms=3, bytes=IMAGE, ops=("ReadFile", "DecodeJpeg")),
        shuffle(256),
        batch(32),
    ),
    "text_lines": (
        source("TextLine", elements=20_000, bytes=200, ms=0.01),
        map_("to_word_ids", ms=0.4, captured=["HashTableV2"], bytes=160),
        shuffle(2000),
        batch(64),
    ),
}


def report_with(name: str, free_bytes: int):
    made = pipeline(*SHAPES[name], consumer_ms=8, cores=2, epochs=4).analysis
    host = dataclasses.replace(made.host, memory_bytes=max(free_bytes, 1), memory_free_bytes=free_bytes)
    return run_rules(dataclasses.replace(made, host=host), RULES, ALL)


@pytest.mark.parametrize("name", SHAPES)
@settings(max_examples=examples(20))
@given(free=st.integers(0, 4 << 30) | st.integers(0, 8 * MIB))
def test_nothing_is_proposed_that_does_not_fit(name, free):
    report = report_with(name, free)
    assert not report.rule_errors
    for finding in report.findings:
        if finding.fix is not None and finding.fix.is_auto:
            assert finding.memory_bytes is not None
            assert not finding.rule.startswith("repeated-work") or finding.memory_bytes <= free
    plan = report.outlook.plan
    if plan is not None:
        held = [report.findings[place].memory_bytes for place in plan.findings]
        assert sum(held) == plan.memory_bytes <= MEMORY_SHARE.value * free


@pytest.mark.parametrize("name", SHAPES)
def test_with_room_the_cache_is_part_of_the_plan_and_without_it_is_not(name):
    rich, poor = report_with(name, 64 << 30), report_with(name, MIB // 2)

    def caches(report) -> list[str]:
        return [report.findings[place].rule for place in report.outlook.plan.findings] if report.outlook.plan else []

    assert "repeated-work" in caches(rich)
    assert "repeated-work" not in caches(poor)
    assert all(finding.rule != "repeated-work" for finding in poor.findings)
