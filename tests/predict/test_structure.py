"""How calls hang together, and what keeps tf.data from its rewrites."""

from __future__ import annotations

import signal

import pytest

from advisor.model.calls import Call
from advisor.model.pipeline import Analysis, Verdict
from advisor.predict import (
    batch_after,
    downstream_calls,
    file_count,
    is_rewrite_forbidden,
    linear_chain,
    movable_shuffles,
    top_iterator,
)
from advisor.predict.structure import nested_calls, upstream_calls
from advisor.testing import batch, cache, filter_, map_, options, pipeline, prefetch, shuffle, source

VERDICT = Verdict(True, 0.5, 2.0, None, "pipeline", "")


def analysis_of(*calls: Call) -> Analysis:
    return Analysis("train.py", VERDICT, calls=calls)


@pytest.mark.parametrize(
    ("files", "count"),
    [
        ("a.tfrecord", 1), ("<list of 8>", 8), ("<tuple of 2>", 2), ("<tensor string (5,)>", 5), ("<array str32 (3,)>", 3),
        ("<tensor string ()>", None), ("<array string ()>", None), (None, None),
    ],
)  # fmt: skip
def test_file_count(files, count):
    call = Call("c", "TFRecordDataset", None, arguments={"filenames": files})
    assert file_count(analysis_of(call), call) == count


@pytest.mark.parametrize(("cardinality", "count"), [(7, 7), (-2, None), (None, None)])
def test_file_count_of_a_dataset_of_names(cardinality, count):
    names = Call("n", "list_files", None, cardinality=cardinality)
    call = Call("c", "TFRecordDataset", None, inputs=("n",), arguments={"filenames": "<dataset>"})
    assert file_count(analysis_of(names, call), call) == count


def test_a_chain_ends_where_inputs_join():
    a, b = Call("a", "range", None), Call("b", "range", None)
    both = Call("z", "zip", None, inputs=("a", "b"))
    end = Call("m", "map", None, inputs=("z",))
    analysis = analysis_of(a, b, both, end)
    assert [call.id for call in linear_chain(analysis, end)] == ["m", "z"]


@pytest.fixture
def alarm():
    """Ends a test that goes round in circles."""
    before = signal.signal(signal.SIGALRM, lambda *_: pytest.fail("it does not end"))
    signal.alarm(20)
    yield
    signal.alarm(0)
    signal.signal(signal.SIGALRM, before)


@pytest.mark.parametrize(
    ("links", "reached"),
    [
        (({"inputs": ("b",)}, {"inputs": ("a",)}), {"upstream": "ab", "chain": "ab", "nested": ""}),
        (({"inputs": ("a",)}, {}), {"upstream": "a", "chain": "a", "nested": ""}),
        (({"nested_in": "b"}, {"made_by": "a"}), {"upstream": "a", "chain": "a", "nested": "b"}),
    ],
)
@pytest.mark.usefixtures("alarm")
def test_walks_over_calls_in_a_cycle_end(links, reached):
    """A recording with a cycle is refused when it is read; an analysis made in another way is walked all the same."""
    calls = [Call(name, "map", None, **given) for name, given in zip("ab", links, strict=True)]
    analysis = analysis_of(*calls)
    walks = {"upstream": upstream_calls, "chain": linear_chain, "nested": nested_calls}
    for name, walk in walks.items():
        assert {call.id for call in walk(analysis, calls[0])} == set(reached[name]), name


@pytest.mark.parametrize(
    ("between", "is_found"),
    [((), True), ((shuffle(),), True), ((prefetch(),), True), ((cache(),), False), ((filter_("f", ms=0.01),), False)],
    ids=["nothing", "shuffle", "prefetch", "cache", "filter"],
)
def test_a_batch_is_behind_a_map_if_nothing_between_looks_at_elements(between, is_found):
    made = pipeline(source(), map_("scale", ms=1, random=True), *between, batch(8), consumer_ms=1).analysis
    iterator = next(it for it in made.main.iterators if any(call.method == "map" for call in it.calls))
    batch_call = batch_after(made.main, iterator)
    assert (batch_call is not None and batch_call.method == "batch") is is_found


def test_calls_behind_a_cache_are_those_between_it_and_the_consumer():
    made = pipeline(source(), cache(), shuffle(), batch(8), consumer_ms=1).analysis
    assert [call.method for call in downstream_calls(made, made.main, made.calls[1])] == ["batch", "shuffle"]


def test_a_forbidding_option_is_seen_and_the_top_iterator_is_not_the_root():
    made = pipeline(source(), batch(8), options(autotune__enabled=False), consumer_ms=1).analysis
    assert is_rewrite_forbidden(made, made.main)
    assert top_iterator(made.main).name == "BatchV2"
    other = pipeline(
        source(), batch(8), options(experimental_optimization__inject_prefetch=False), consumer_ms=1
    ).analysis
    assert not is_rewrite_forbidden(other, other.main)
    assert top_iterator(other.main).name == "BatchV2"


def test_shuffles_before_maps_are_movable_and_those_before_batches_are_not():
    made = pipeline(source(), shuffle(), map_("decode", ms=1), batch(8), consumer_ms=1).analysis
    assert [call.method for call in movable_shuffles(made, made.calls[2])] == ["shuffle"]
    assert movable_shuffles(made, made.calls[3]) == ()
