"""The table of the wait on terminals of several widths."""

from __future__ import annotations

import io
from dataclasses import replace

import pytest
from rich.console import Console

from advisor.report.blame import blame_table
from advisor.testing import batch, map_, pipeline, source


@pytest.mark.parametrize("width", [92, 96, 104, 120, 160])
def test_a_place_is_not_broken_in_the_middle(width):
    made = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis.main
    iterators = tuple(
        replace(
            it,
            calls=tuple(
                replace(call, site=replace(call.site, file="experiments/2026/train_with_a_long_name.py"))
                for call in it.calls
            ),
        )
        for it in made.iterators
    )
    console = Console(width=width, file=io.StringIO(), force_terminal=False)
    console.print(blame_table(replace(made, iterators=iterators), console))
    text = console.file.getvalue()
    line = next(it.main_call.site.line for it in iterators if it.is_bottleneck or it.blame_share > 0.5)
    assert f"train_with_a_long_name.py:{line} " in text + " "
    assert max(len(row) for row in text.splitlines()) <= width
    assert "self time" in text


def test_branches_with_the_same_call_are_told_apart():
    made = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis.main
    twice = next(it for it in made.iterators if it.blame_share > 0.5)
    console = Console(width=160, file=io.StringIO(), force_terminal=False)
    console.print(blame_table(made, console))
    assert "input 1 of" not in console.file.getvalue()
    console.print(blame_table(replace(made, iterators=(*made.iterators, replace(twice, id="other"))), console))
    parent = next(it for it in made.iterators if it.id == twice.parent_id)
    assert f"(input 1 of {parent.name})" in console.file.getvalue()
    assert f"(input 2 of {parent.name})" in console.file.getvalue()


def test_two_datasets_of_a_helper_are_told_apart():
    """Their calls are two, but of the same text: `make(a)` and `make(b)`."""
    made = pipeline(source(), map_("decode", ms=5), batch(32), consumer_ms=5).analysis.main
    first = next(it for it in made.iterators if it.blame_share > 0.5)
    second = replace(first, id="other", calls=tuple(replace(call, id=f"{call.id}0") for call in first.calls))
    console = Console(width=160, file=io.StringIO(), force_terminal=False)
    console.print(blame_table(replace(made, iterators=(*made.iterators, second)), console))
    assert "(input 1 of " in console.file.getvalue()
    assert "(input 2 of " in console.file.getvalue()
