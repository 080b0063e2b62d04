"""Every shipped rule does what its own examples say, and its page has what a reader looks for."""

from __future__ import annotations

import pytest

from advisor.engine import LoadedRule, load_rules
from advisor.engine.examples import check_example
from advisor.engine.explanation import SECTIONS
from advisor.engine.run import run_rules
from advisor.model.finding import InsertAfter
from advisor.model.settings import Settings

RULES = load_rules([], Settings())
VERDICTS = {"not-input-bound", "host-saturated"}  # they only say what is so
EXAMPLES = [
    pytest.param(loaded, example, id=f"{loaded.id}-{number}")
    for loaded in RULES
    for number, example in enumerate(loaded.examples, start=1)
]


@pytest.mark.parametrize(("loaded", "example"), EXAMPLES)
def test_example(loaded, example):
    assert not list(check_example(loaded, example))


@pytest.mark.parametrize("loaded", RULES, ids=lambda loaded: loaded.id)
def test_rule_is_complete(loaded: LoadedRule):
    page = loaded.page
    assert set(page.sections) == set(SECTIONS)
    assert all(page.sections.values())
    assert all(threshold.reason for threshold in page.thresholds)
    assert sum(not example.is_finding for example in loaded.examples) >= 2, "two near misses at least"
    if loaded.id not in VERDICTS:
        assert any(example.is_finding for example in loaded.examples)
    assert loaded.path.name == loaded.id.replace("-", "_") + ".py"


def test_a_cache_is_never_said_to_help_the_first_pass():
    adding = set()
    for loaded in RULES:
        for example in loaded.examples:
            for finding in run_rules(example.pipeline.analysis, [loaded], Settings()).findings:
                edits = finding.fix.edits if finding.fix is not None else ()
                adds_cache = any(isinstance(edit, InsertAfter) and edit.method == "cache" for edit in edits)
                is_advice = finding.fix is None and "cache between" in finding.title
                if finding.prediction is not None and (adds_cache or is_advice):
                    adding.add(loaded.id)
                    assert finding.is_delayed, f"{loaded.id}: {finding.title}"
    assert {"repeated-work", "repeated-work-on-disk", "splittable-map"} <= adding
