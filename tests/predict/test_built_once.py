"""When a dataset that is made again in every epoch may be made once, and what that does to the data."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.model.calls import Site
from advisor.model.finding import Safety
from advisor.predict import are_in_one_statement, built_once, remade
from advisor.testing import batch, cache, map_, pipeline, shuffle, source, unknown_size

ROWS = source("Range", elements=3_200, bytes=8)
DECODE = map_("decode", ms=5)


def judged(*stages, change=lambda call: call, **more):
    made = pipeline(*stages, consumer_ms=10, epochs=4, making_ms=300, **more).analysis
    made = replace(made, calls=tuple(change(call) for call in made.calls))
    return built_once(made, made.main, remade(made, made.main))


def arguments(method, **given):
    """Every call of that method has these arguments."""
    return lambda call: replace(call, arguments={**call.arguments, **given}) if call.method == method else call


def test_the_same_work_in_the_same_order_is_exact():
    once = judged(ROWS, DECODE, batch(32))
    assert (once.reason, once.safety, once.assumptions, once.bytes) == ("", Safety.EXACT, (), 0)


def test_later_epochs_get_other_orders_of_a_shuffle():
    assert judged(ROWS, shuffle(), DECODE, batch(32)).safety is Safety.RERANDOMIZED


def test_one_order_without_a_seed_would_be_that_of_the_first_epoch():
    one_order = arguments("shuffle", reshuffle_each_iteration=False)
    assert "draws one order when it is made" in judged(ROWS, shuffle(), batch(32), change=one_order).reason
    seeded = arguments("shuffle", reshuffle_each_iteration=False, seed=7)
    assert judged(ROWS, shuffle(), batch(32), change=seeded) == judged(ROWS, batch(32))


@pytest.mark.parametrize(
    ("stages", "reason"),
    [
        ((ROWS, map_("augment", ms=5, random=True), batch(32)), "map(augment) (train.py:5) draws random numbers"),
        ((ROWS, map_("decode", ms=5, python=True), batch(32)), "runs Python code"),
        ((source("Generator"), batch(32)), "runs a Python generator"),
        ((source("Random"), batch(32)), "draws random numbers"),
        ((ROWS, map_("log", ms=5, effects=("PrintV2",)), batch(32)), "map(log)"),
        (
            (ROWS, shuffle(), cache(), batch(32)),
            "cache (train.py:6) would keep the elements of the first epoch, and shuffle",
        ),
        ((ROWS, map_("augment", ms=5, random=True), cache(), batch(32)), "draws random numbers"),
    ],
)
def test_what_one_dataset_would_keep_is_in_the_way(stages, reason):
    assert reason in judged(*stages).reason


def test_a_cache_is_kept_from_then_on():
    once = judged(ROWS, DECODE, cache(), batch(32))
    assert (once.reason, once.bytes) == ("", 3_200 * 8)
    assert judged(unknown_size(ROWS), DECODE, cache(), batch(32)).bytes is None


def test_listed_files_are_an_assumption():
    once = judged(source("ListFiles", elements=10, shuffle=False), batch(2))
    assert once.safety is Safety.EXACT
    assert once.assumptions == ("no file is added to or removed from those that list_files lists while training runs",)
    assert judged(source("ListFiles", elements=10), batch(2)).safety is Safety.RERANDOMIZED


@pytest.mark.parametrize("different", ["identity", "element_spec", "cardinality"])
def test_one_dataset_that_differs_is_enough(different):
    made = pipeline(ROWS, DECODE, batch(32), consumer_ms=10, epochs=4, making_ms=300).analysis
    values = {"identity": "other", "element_spec": "other", "cardinality": 7}
    calls = [replace(call, **{different: values[different]}) if call.id.endswith("_2") else call for call in made.calls]
    made = replace(made, calls=tuple(calls))
    again = remade(made, made.main)
    assert again.is_equal and not again.is_all_equal
    assert "with other arguments" in built_once(made, made.main, again).reason


def test_without_a_known_reader_nothing_moves():
    made = pipeline(ROWS, DECODE, batch(32), consumer_ms=10, epochs=4, making_ms=300).analysis
    (pipe,) = made.pipelines
    made = replace(made, pipelines=(replace(pipe, consumer=replace(pipe.consumer, site=None)),))
    assert built_once(made, made.main, remade(made, made.main)).reason == "the line that reads it is unknown"


def test_calls_in_one_statement():
    text = "import x\nfor e in range(3):\n    ds = (\n        x.a()\n        .b()\n    )\n    ds = ds.c()\n"
    made = pipeline(ROWS, DECODE, batch(32), consumer_ms=10).analysis
    sites = [Site("t.py", 4, 11, 4, 14), Site("t.py", 5, 10, 5, 13), Site("t.py", 7, 13, 7, 16)]
    a, b, c = (replace(call, site=site) for call, site in zip(made.calls, sites, strict=True))
    made = replace(made, texts={"t.py": text})
    assert are_in_one_statement(made, (a, b)) and are_in_one_statement(made, (c,))
    assert not are_in_one_statement(made, (b, c))
    assert not are_in_one_statement(made, (a, replace(b, site=None)))
    assert not are_in_one_statement(replace(made, texts={"t.py": "for ("}), (a, b))
