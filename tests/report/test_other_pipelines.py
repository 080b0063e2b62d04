"""Pipelines beside the main one: one line each, with a name that people know and a verdict."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.calls import Site
from advisor.model.recording import Consumer
from advisor.report.other_pipelines import MAX_OTHER_PIPELINES, other_pipelines
from tests.report.made_reports import healthy_report, slow_report

SLOW, FAST = slow_report().analysis, healthy_report().analysis
VALIDATION = replace(SLOW.pipelines[0], id="p1", is_main=False, consumer=None)


def lines(*others, main=SLOW):
    return other_pipelines(replace(main, pipelines=(main.pipelines[0], *others)))


def test_a_consumer_names_its_pipeline():
    site = Site("train.py", 31, 1, 31, 20)
    (line,) = lines(replace(VALIDATION, consumer=Consumer("c1", "call1", "keras.evaluate", site, 1)))
    assert line.startswith("train.py:31 (keras.evaluate): waits for input ")
    assert line.endswith("mostly for .map(augment) at train.py:5")


def test_without_a_consumer_it_is_named_by_the_call_nearest_to_it():
    (line,) = lines(VALIDATION)
    assert line.startswith("the dataset of .map(augment), train.py:5: "), "the map is fused with the batch"


def test_without_calls_the_long_name_is_left():
    iterators = tuple(replace(iterator, calls=()) for iterator in VALIDATION.iterators)
    (line,) = lines(replace(VALIDATION, host="vm", iterators=iterators))
    assert line.startswith("vm Iterator::") and "mostly for " in line


@pytest.mark.parametrize(
    ("changes", "verdict"),
    [
        ({"wait_ns": 0}, "does not wait for input (0 % of the time, "),
        ({"serves_elements": True}, "for consumers elsewhere"),
        ({"span_ns": 0}, "too few elements for a verdict ("),
    ],
)
def test_each_has_its_own_verdict(changes, verdict):
    (line,) = lines(replace(VALIDATION, **changes))
    assert verdict in line


def test_a_pipeline_that_nobody_read_says_so():
    root = replace(VALIDATION.iterators[0], num_calls=0)
    (line,) = lines(replace(VALIDATION, span_ns=0, iterators=(root, *VALIDATION.iterators[1:])))
    assert line.endswith(": nothing was read from it in the window")


def test_beside_a_healthy_training_only_those_that_wait_are_listed():
    assert lines(replace(VALIDATION, wait_ns=0), main=FAST) == []
    (line,) = lines(VALIDATION, main=FAST)
    assert "waits for input" in line


def test_another_dataset_of_the_same_loop_is_no_other_pipeline():
    consumer = Consumer("c1", "call1", "for", Site("train.py", 31, 1, 31, 20), 1)
    main = replace(SLOW.pipelines[0], consumer=consumer)
    analysis = replace(SLOW, pipelines=(main, replace(VALIDATION, consumer=consumer)))
    assert other_pipelines(analysis) == []


def test_many_are_counted():
    listed = lines(*[VALIDATION] * (MAX_OTHER_PIPELINES + 2))
    assert len(listed) == MAX_OTHER_PIPELINES + 1 and listed[-1].startswith(
        f"{MAX_OTHER_PIPELINES + 2} pipelines in total"
    )
