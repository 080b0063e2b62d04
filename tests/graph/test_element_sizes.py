"""Sizes of elements that are known only for what is made of them, as at the end of an epoch."""

from __future__ import annotations

from dataclasses import replace

import pytest

from advisor.graph.element_sizes import with_inferred_sizes
from advisor.model.pipeline import Iterator
from advisor.testing import batch, map_, pipeline, prefetch, shuffle, source

MADE = pipeline(source(), map_("decode", ms=0.1), shuffle(100), batch(64), prefetch(2), consumer_ms=1)


def iterators() -> tuple[Iterator, ...]:
    assert MADE.analysis.main is not None
    return MADE.analysis.main.iterators


def chain(sizes: dict[str, int], rows: int | None = 64) -> dict[str, int | None]:
    """Element bytes by type, of a pipeline in which only the given ones are known."""
    parameters = {} if rows is None else {"batch_size": rows}
    made = [replace(it, element_bytes=sizes.get(it.name), parameters=parameters) for it in iterators()]
    return {it.name: it.element_bytes for it in with_inferred_sizes(made)}


def named(kind: str) -> str:
    (name,) = (it.name for it in iterators() if it.name.startswith(kind))
    return name


def test_an_element_has_its_share_of_the_batch():
    sizes = chain({named("Prefetch"): 6400})
    assert (sizes[named("Batch")], sizes[named("Shuffle")], sizes[named("ParallelMap")]) == (6400, 100, 100)
    assert sizes[named("TFRecord")] is None, "a function may change the size"


def test_a_known_size_is_kept():
    sizes = chain({named("Prefetch"): 6400, named("ParallelMap"): 7})
    assert (sizes[named("Shuffle")], sizes[named("ParallelMap")]) == (100, 7)


@pytest.mark.parametrize("rows", [None, 0])
def test_a_batch_of_unknown_size_tells_nothing(rows):
    assert chain({named("Batch"): 6400}, rows)[named("Shuffle")] is None


def test_order_and_everything_else_stay():
    after = with_inferred_sizes(iterators())
    assert [replace(it, element_bytes=None) for it in after] == [replace(it, element_bytes=None) for it in iterators()]
