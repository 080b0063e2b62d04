"""The script of a simulated pipeline: its text parses, and each recorded call stands in it where its site says."""

from __future__ import annotations

import ast

import pytest

from advisor.model.calls import INFINITE_CARDINALITY, UNKNOWN_CARDINALITY
from advisor.testing import (
    AUTOTUNE,
    batch,
    cache,
    definition,
    filter_,
    flat_map,
    interleave,
    line,
    map_,
    options,
    padded_batch,
    pipeline,
    prefetch,
    repeat,
    shard,
    shuffle,
    source,
    take,
    unbatch,
    window,
)

SCRIPTS = {
    "a chain": (source(), shuffle(), map_("decode", 1, calls=AUTOTUNE), batch(32), prefetch()),
    "every other method": (
        source("Range"),
        shard(2),
        filter_("wanted", 1),
        cache(),
        repeat(3),
        take(9),
        padded_batch(4, 99),
    ),
    "an interleave": (source("ListFiles"), interleave(source("TFRecord"), map_("parse", 1), cycle_length=4), batch(8)),
    "groups": (source("TensorSlice"), unbatch(4), window(5), flat_map(source("TensorSlice"), per_input=6), batch(8)),
    "options": (source("Generator"), map_("scale", 1), options(autotune__cpu_budget=4), batch(8)),
    "a definition": (
        source(),
        map_("f", 1, definition=definition("x", line("return tf.abs(x)", "abs", ("Abs",)))),
        batch(2),
    ),
}


def calls_in(text: str) -> dict[tuple[str, int, int, int], ast.Call]:
    """(method, line, 1-based column of its name, 1-based column after the call) -> call."""
    lines = text.splitlines()
    found = {}
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute):
            name_end = node.func.end_col_offset or 0
            method = node.func.attr
            assert lines[node.lineno - 1][name_end - len(method) : name_end] == method
            found[method, node.lineno, name_end - len(method) + 1, (node.end_col_offset or 0) + 1] = node
    return found


@pytest.mark.parametrize("making_ms", [None, 500])
@pytest.mark.parametrize("epochs", [1, 3])
@pytest.mark.parametrize("stages", SCRIPTS.values(), ids=SCRIPTS)
def test_calls_stand_where_their_sites_say(stages, epochs, making_ms):
    made = pipeline(*stages, consumer_ms=1, epochs=epochs, making_ms=making_ms)
    written = calls_in(made.source)
    sites = {(call.method, call.site.line, call.site.column, call.site.end_column) for call in made.analysis.calls}
    assert sites <= set(written)
    assert {stage.method for stage in stages} <= {method for method, *_ in sites}


@pytest.mark.parametrize("stages", SCRIPTS.values(), ids=SCRIPTS)
def test_each_call_has_the_one_before_it_as_input(stages):
    outer = [call for call in pipeline(*stages, consumer_ms=1).analysis.calls if call.nested_in is None]
    assert outer[0].inputs == ()
    assert [call.inputs for call in outer[1:]] == [(call.id,) for call in outer[:-1]]


def test_calls_know_how_many_elements_there_are_and_their_size():
    stages = (source(elements=100, bytes=10), map_("f", 1, bytes=40), batch(8), repeat(2), take(7), shuffle())
    calls = pipeline(*stages, consumer_ms=1).analysis.calls
    assert [call.cardinality for call in calls] == [100, 100, 12, 24, 7, 7]
    assert [call.element_bytes for call in calls] == [10, 40, 320, 320, 320, 320]
    kept, endless = pipeline(source(), filter_("wanted", 1), repeat(), consumer_ms=1).analysis.calls[1:]
    assert (kept.cardinality, endless.cardinality) == (UNKNOWN_CARDINALITY, INFINITE_CARDINALITY)


def test_a_definition_is_in_the_text_with_its_lines():
    body = (
        line("x = tf.cast(x, tf.float32)", "cast", ("Cast",), takes_batches=True),
        line("return tf.abs(x)", "abs", ("Abs",)),
    )
    made = pipeline(source(), map_("load", 1, definition=definition("x", *body)), consumer_ms=1)
    function = made.analysis.calls[-1].function
    text = made.source.splitlines()
    assert text[function.site.line - 1] == "def load(x):"
    assert [text[found.line - 1].strip() for found in function.batch_lines] == [one.text for one in body]
    assert [found.takes_batches for found in function.batch_lines] == [True, False]
