"""A dataset that is used twice runs as two iterators: what its call costs is the sum."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from advisor.engine import LoadedRule, load_rules, run_rules
from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

RULES = load_rules([], Settings())
SERIAL = pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8).analysis


def with_copy(analysis: Analysis, copied: str) -> Analysis:
    """An iterator as two, each with half of the work and of the wait."""
    (main,) = analysis.pipelines
    whole = main.iterator(copied)
    half = replace(
        whole, blame_ns=whole.blame_ns // 2, blame_share=whole.blame_share / 2, busy_ns=whole.busy_ns // 2,
        function_ns=whole.function_ns // 2, python_ns=whole.python_ns // 2,
        elements=None if whole.elements is None else whole.elements // 2, num_calls=whole.num_calls // 2,
        instances=max(1, whole.instances // 2), ops=tuple(replace(op, total_ns=op.total_ns // 2) for op in whole.ops),
    )  # fmt: skip
    iterators = [
        part for it in main.iterators for part in ((half, replace(half, id="p0.99")) if it is whole else (it,))
    ]
    return replace(analysis, pipelines=(replace(main, iterators=tuple(iterators)),))


def fact(finding: Finding, name: str) -> float | None:
    return next((float(fact.value) for fact in finding.evidence if fact.name == name), None)


def findings_with_a_share() -> Iterator[tuple[LoadedRule, Analysis, Finding]]:
    """A finding of every rule that says which part of the wait a call causes."""
    for loaded in RULES:
        for example in loaded.examples:
            analysis = example.pipeline.analysis
            report = run_rules(analysis, [loaded], Settings())
            with_share = [f for f in report.findings if fact(f, "blame_share") and f.iterator_id is not None]
            if with_share and len(analysis.pipelines) == 1:
                yield loaded, analysis, with_share[0]
                break


def parallel_map(analysis: Analysis) -> Finding:
    (finding,) = (
        finding for finding in run_rules(analysis, RULES, Settings()).findings if finding.rule == "serial-map"
    )
    return finding


def test_the_finding_on_a_call_with_two_iterators_has_the_wait_of_both() -> None:
    assert SERIAL.main is not None
    (mapped,) = (it for it in SERIAL.main.iterators if it.main_call is not None and it.main_call.method == "map")
    once, twice = parallel_map(SERIAL), parallel_map(with_copy(SERIAL, mapped.id))
    assert fact(twice, "blame_share") == pytest.approx(fact(once, "blame_share"))
    assert twice.because == once.because
    assert once.prediction is not None and twice.prediction is not None
    assert twice.prediction.value == pytest.approx(once.prediction.value, rel=0.1), "both become parallel"


@pytest.mark.parametrize(
    ("loaded", "analysis", "once"), [pytest.param(*case, id=case[0].id) for case in findings_with_a_share()]
)
def test_no_rule_names_the_share_of_one_copy(loaded: LoadedRule, analysis: Analysis, once: Finding) -> None:
    assert once.iterator_id is not None
    copies = with_copy(analysis, once.iterator_id)
    twice = [finding for finding in run_rules(copies, [loaded], Settings()).findings if finding.title == once.title]
    assert len(twice) == 1, "the call is one, however often it runs"
    assert fact(twice[0], "blame_share") == pytest.approx(fact(once, "blame_share"))
    if once.prediction is not None:
        assert twice[0].prediction is not None
        assert twice[0].prediction.value > 0.9 * once.prediction.value, "the change is one of both copies"
