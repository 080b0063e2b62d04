"""Every shipped rule does what its own examples say, and its page has what a reader looks for."""

from __future__ import annotations

import pytest

from advisor.engine import LoadedRule, load_rules
from advisor.engine.examples import check_example
from advisor.engine.run import run_rules
from advisor.model.edits import InsertAfter
from advisor.model.settings import Settings
from advisor.testing import batch, filter_, flat_map, map_, pipeline, source

RULES = load_rules([], Settings())
SECTIONS = ("Why it is slow", "What the fix does", "When not to", "What tf.data already does", "Thresholds")
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
    [(5, 0.99, "its ops take 99 % of the 5")],
)
def test_an_elementwise_function_with_costly_calls_is_not_passed_over_in_silence(ms, op_share, figures):
    scale = map_("scale", ms=ms, ops=("Cast", "Sub"), op_share=op_share, elementwise=True)
    made = pipeline(source("Range"), scale, batch(1024), consumer_ms=1, cores=2)
    report = run_rules(made.analysis, RULES, Settings())
    rejected = {entry.rule: entry.reason for entry in report.rejected}
    assert figures in rejected["scalar-map"]


_PARSER = {"ParseExampleV2": 0.6, "Pack": 0.05}


@pytest.mark.parametrize(
    ("rule", "made", "reason"),
    [
        (
            "map-inside-interleave",
            pipeline(
                source("ListFiles", elements=8),
                flat_map(source(), map_("decode", ms=1)),
                batch(32),
                consumer_ms=5,
                cores=4,
                busy_cores=4,
            ),
            "no core is free",
        ),
        (
            "parse-per-record",
            pipeline(
                source(), map_("parse", ms=0.1, op_shares=_PARSER), batch(4), consumer_ms=0.1, cores=2
            ),
            "with batches of 4",
        ),
        (
            "scalar-map",
            pipeline(
                source("Range"),
                map_("scale", ms=0.02, ops=("Cast", "Sub"), op_share=0.1, elementwise=True),
                batch(4),
                consumer_ms=0.01,
                cores=2,
            ),
            "with batches of 4",
        ),
        (
            "vectorizable-map",
            pipeline(
                source("TensorSlice", spec="TensorSpec(shape=(32,), dtype=tf.float32, name=None)"),
                map_("normalize", ms=0.1, ops=("Mean", "Sub"), op_share=0.3),
                batch(4),
                consumer_ms=0.01,
                cores=2,
            ),
            "with batches of 4",
        ),
        (
            "capped-parallelism",
            pipeline(source(), map_("decode", ms=5, calls=2), batch(32), consumer_ms=10, cores=4, busy_cores=4),
            "no core is free",
        ),
        (
            "serial-files",
            pipeline(source(ms=1, files=8), batch(32), consumer_ms=5, cores=4, busy_cores=4),
            "no core is free",
        ),
        (
            "single-file",
            pipeline(source(ms=1, files=1), batch(32), consumer_ms=5, cores=4, busy_cores=4),
            "no core is free",
        ),
        (
            "slow-batch-copy",
            pipeline(source("Generator", ms=0.1, bytes=1_000_000), batch(64, ms=50), consumer_ms=5, cores=4, busy_cores=4),
            "no core is free",
        ),
        (
            "late-filter",
            pipeline(
                source(),
                map_("load", ms=3, unchanged=[(1, 1)]),
                filter_("is_bright", ms=0.01, keep=0.25, reads=[0, 1]),
                batch(16),
                consumer_ms=5,
                cores=4,
            ),
            "drops 75 % of its elements, but reads what the map makes",
        ),
        (
            "late-filter",
            pipeline(
                source(),
                map_("load", ms=3, unchanged=[(1, 1)]),
                filter_("is_wanted", ms=0.01, keep=0.98, reads=[1]),
                batch(16),
                consumer_ms=5,
                cores=4,
            ),
            "drops 2 % of its elements",
        ),
        (
            "splittable-map",
            pipeline(
                source(),
                map_("augment", ms=5, random=True, calls=8, op_shares={"Mul": 0.6, "Cast": 0.3}, fixed=["Cast"]),
                batch(32),
                consumer_ms=5,
                epochs=3,
            ),
            "of the time of its ops is spent in deterministic ones",
        ),
        (
            "repeated-work-on-disk",
            pipeline(
                source(elements=400_000, bytes=100_000),
                map_("decode", ms=5, bytes=100_000),
                batch(32),
                consumer_ms=5,
                epochs=3,
                memory_gib=16,
                disk_gib=50,
            ),
            "exceed 50 % of the 50 GiB that are free on disk",
        ),
        (
            "repeated-work-on-disk",
            pipeline(
                source(elements=400_000, bytes=100_000),
                map_("decode", ms=0.5, bytes=500_000),
                batch(32),
                consumer_ms=1,
                epochs=3,
                memory_gib=16,
                disk_gib=900,
            ),
            "reading its 186 GiB takes as long as computing them, at the 500 MiB per second that are assumed",
        ),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_change_that_was_close_is_rejected_with_the_measurement(rule, made, reason):
    loaded = [known_rule for known_rule in RULES if known_rule.id == rule]
    report = run_rules(made.analysis, loaded, Settings())
    assert not report.findings
    assert any(reason in entry.reason for entry in report.rejected), report.rejected
    assert all(entry.evidence and entry.site is not None for entry in report.rejected)
