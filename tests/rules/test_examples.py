"""Every shipped rule does what its own examples say, and its page has what a reader looks for."""

from __future__ import annotations

import pytest

from advisor.engine import LoadedRule, load_rules
from advisor.engine.examples import check_example
from advisor.engine.explanation import SECTIONS
from advisor.engine.run import run_rules
from advisor.model.finding import InsertAfter
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

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


@pytest.mark.parametrize(
    ("ms", "op_share", "figures"),
    [
        (0.02, 0.9, "its ops take 90 % of the 20 us of a call"),
        (0.3, 0.2, "its ops take 20 % of the 300 us of a call"),
    ],
)
def test_an_elementwise_function_with_costly_calls_is_not_passed_over_in_silence(ms, op_share, figures):
    scale = map_("scale", ms=ms, ops=("Cast", "Sub"), op_share=op_share, elementwise=True)
    made = pipeline(source("Range"), scale, batch(1024), consumer_ms=1, cores=2)
    report = run_rules(made.analysis, RULES, Settings())
    rejected = {entry.rule: entry.reason for entry in report.rejected}
    assert figures in rejected["scalar-map"]
