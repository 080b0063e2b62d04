"""A dataset that is used twice runs as two iterators: what its call costs is the sum."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.engine import load_rules, run_rules
from advisor.model.finding import Finding
from advisor.model.pipeline import Analysis
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, source

RULES = load_rules([], Settings())
SERIAL = pipeline(source(), map_("augment", ms=5, random=True), batch(32), consumer_ms=20, cores=8).analysis


def with_copy(analysis: Analysis) -> Analysis:
    """The map as two iterators, each with half of the work and of the wait."""
    (main,) = analysis.pipelines
    (mapped,) = (it for it in main.iterators if it.main_call is not None and it.main_call.method == "map")
    half = replace(
        mapped, blame_ns=mapped.blame_ns // 2, blame_share=mapped.blame_share / 2, busy_ns=mapped.busy_ns // 2,
        function_ns=mapped.function_ns // 2,
    )  # fmt: skip
    iterators = [
        part for it in main.iterators for part in ((half, replace(half, id="p0.9")) if it is mapped else (it,))
    ]
    return replace(analysis, pipelines=(replace(main, iterators=tuple(iterators)),))


def parallel_map(analysis: Analysis) -> Finding:
    (finding,) = (each for each in run_rules(analysis, RULES, Settings()).findings if each.rule == "serial-map")
    return finding


def test_the_finding_on_a_call_with_two_iterators_has_the_wait_of_both() -> None:
    once, twice = parallel_map(SERIAL), parallel_map(with_copy(SERIAL))
    shares = [next(fact.value for fact in each.evidence if fact.name == "blame_share") for each in (once, twice)]
    assert shares[1] == pytest.approx(shares[0])
    assert twice.because == once.because
    assert once.prediction is not None and twice.prediction is not None
    assert twice.prediction.value == pytest.approx(once.prediction.value, rel=0.1), "both become parallel"
