"""tf.data's models of iterators that end and begin again, as in short epochs."""

from __future__ import annotations

import weakref

import pytest

from advisor.capture.instrument.consumers import Consumers
from advisor.capture.instrument.iterator_model import model_deltas, model_nodes, note_end

pytestmark = pytest.mark.tensorflow
SECOND = 1_000_000_000


@pytest.fixture
def tf():
    return pytest.importorskip("tensorflow")


def begin(consumer, dataset):
    """Begin to read as the hook on `iter` does."""
    iterator = iter(dataset)
    consumer.reads("c1")
    consumer.iterator = weakref.ref(iterator)
    return iterator


def root_elements(consumers, start) -> int:
    (model,) = model_deltas(consumers, start)
    return next(node.num_elements for node in model.nodes if node.id == model.output)


def test_an_iterator_that_has_just_begun_is_replaced_by_the_last_one_that_ended(tf):
    consumers = Consumers()
    consumer = consumers.at("for", None, None)
    dataset = tf.data.Dataset.range(30).batch(3).prefetch(2)
    first = begin(consumer, dataset)
    start = model_nodes(consumers)
    list(first)
    assert root_elements(consumers, start) == 10
    note_end(consumer, first, 2 * SECOND)
    second = begin(consumer, dataset)
    assert root_elements(consumers, start) == 10, "of the first one, as the second has produced nothing"
    next(second)
    assert 1 <= root_elements(consumers, start) < 10


def test_the_model_of_a_pipeline_that_is_gone_is_kept(tf):
    consumers = Consumers()
    consumer = consumers.at("for", None, None)
    iterator = begin(consumer, tf.data.Dataset.range(6).batch(3).prefetch(2))
    list(iterator)
    note_end(consumer, iterator, 2 * SECOND)
    del iterator
    assert root_elements(consumers, {}) == 2
    assert not model_deltas(consumers, {}, since_ns=3 * SECOND), "it ended before the stretch"


def test_ends_within_a_second_are_not_read(tf):
    consumer = Consumers().at("for", None, None)
    iterator = begin(consumer, tf.data.Dataset.range(6).batch(3).prefetch(2))
    note_end(consumer, iterator, 2 * SECOND)
    kept = consumer.ended_model
    assert kept is not None
    note_end(consumer, iterator, 2 * SECOND + SECOND // 2)
    assert consumer.ended_model is kept
    note_end(consumer, iterator, 3 * SECOND)
    assert consumer.ended_model is not kept


def test_a_later_iterator_at_the_same_address_is_another_one(tf):
    """CPython reuses the memory of an object; then the numbers of two epochs must not be subtracted."""
    consumers = Consumers()
    consumer = consumers.at("for", None, None)
    dataset = tf.data.Dataset.range(30).batch(3).prefetch(2)
    first = begin(consumer, dataset)
    list(first)
    start = model_nodes(consumers)
    second = begin(consumer, dataset)
    list(second)
    (((_, address), proto),) = model_nodes(consumers).values()
    ((number, _), _) = start[consumer.id]
    assert root_elements(consumers, {consumer.id: ((number, address), proto)}) == 10
