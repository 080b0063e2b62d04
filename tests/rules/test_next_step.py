"""Tests of the words of `next-step`."""

from __future__ import annotations

from dataclasses import replace

import pytest
from advisor.rules.next_step import NextStep

from advisor.engine import load_rules
from advisor.engine.run import run_rules
from advisor.model.calls import CodeLine
from advisor.model.pipeline import LineCost
from advisor.model.settings import Settings
from advisor.testing import batch, map_, pipeline, prefetch, source


def finding_for(lines, op="MatMul"):
    made = pipeline(
        source(), map_("load", ms=5, op_shares={op: 0.9}, bytes=10_000), batch(32), prefetch(), consumer_ms=10, cores=4
    )
    (main,) = made.analysis.pipelines
    iterators = tuple(replace(node, lines=lines if node.ops else ()) for node in main.iterators)
    analysis = replace(made.analysis, pipelines=(replace(main, iterators=iterators),))
    return NextStep()._cheaper(analysis, analysis.pipelines[0], next(node for node in iterators if node.ops))


@pytest.mark.parametrize("op", ["MatMul", "_MklMatMul", "_FusedMatMul"])
def test_an_op_has_the_name_that_the_user_knows(op):
    finding = finding_for((), op)
    assert finding.title == "Make MatMul in map(load) cheaper"
    assert " MatMul takes " in finding.because


def test_the_costliest_line_is_named_with_its_advice():
    cheap = LineCost(CodeLine("train.py", 7), 10, 0.1)
    costly = LineCost(CodeLine("train.py", 9), 90, 0.9, advice="Pass dct_method='INTEGER_FAST'.")
    assert "Line 9 takes 90 % of its time. Pass dct_method='INTEGER_FAST'." in finding_for((cheap, costly)).because
    beside = replace(costly, at=CodeLine("lib/data.py", 9))
    assert "Line 9 of data.py takes 90 % of its time." in finding_for((cheap, beside)).because
    sampled = replace(costly, samples=12, advice="")
    assert "Line 9 takes about 90 % of its time." in finding_for((sampled,)).because


def test_what_is_stored_helps_from_the_first_pass_on_and_is_proposed_for_a_script_with_one_pass():
    report = run_rules(
        pipeline(
            source(elements=100_000), map_("load", ms=5, calls=4), batch(32), prefetch(), consumer_ms=10, cores=4
        ).analysis,
        load_rules([], Settings()),
        Settings(),
    )
    finding = report.findings[0]
    assert finding.title == "Store the result of batch once and load it in every run"
    assert finding.prediction is not None and finding.prediction.value > 2 and not finding.is_delayed
