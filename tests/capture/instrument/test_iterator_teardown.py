"""How long an iterator takes to go away is measured from outside: by a reference to it and its last attribute."""

from __future__ import annotations

import gc
import threading
import time
import weakref

from advisor.capture.instrument.consumers import MAX_RELEASES, ConsumerSteps
from advisor.capture.instrument.iterator_teardown import IteratorRelease, watch_release

SLOW_S = 0.05


class Resource:
    """What an iterator holds; it takes long to go."""

    def __del__(self):
        time.sleep(SLOW_S)


class Iterator:
    def __init__(self):
        self.resource = Resource()


def test_the_time_is_that_of_what_the_iterator_held():
    releases = []
    iterator = Iterator()
    watch_release(iterator, lambda now_ns, took_ns: releases.append((now_ns, took_ns)))
    assert not releases
    before = time.time_ns()
    del iterator
    ((now_ns, took_ns),) = releases
    assert SLOW_S * 1e9 <= took_ns <= now_ns - before + 1_000_000


def test_each_iterator_is_told_of_once():
    releases = []
    for _ in range(3):
        watch_release(Iterator(), lambda now_ns, took_ns: releases.append(took_ns))
    assert len(releases) == 3


def test_one_in_a_cycle_is_collected_all_the_same():
    releases = []
    iterator = Iterator()
    iterator.itself = iterator
    watch_release(iterator, lambda now_ns, took_ns: releases.append(took_ns))
    del iterator
    gc.collect()
    assert len(releases) <= 1
    assert not [item for item in gc.get_objects() if isinstance(item, Iterator)]


def test_two_iterators_between_two_steps_are_one_pause():
    consumer = ConsumerSteps("c0", "keras.fit", None, None)
    for step in range(3):
        consumer.begin(step * 10 + 1)
        consumer.end(step * 10 + 5)
        consumer.released(step * 10 + 6, 1)
        consumer.released(step * 10 + 9, 2)
    assert consumer.releases == [(9, 3), (19, 3), (29, 3)]


def test_values_over_the_limit_do_not_change_stored_ones():
    consumer = ConsumerSteps("c0", "for", None, None)
    for step in range(MAX_RELEASES + 5):
        consumer.begin(step * 10 + 1)
        consumer.end(step * 10 + 5)
        consumer.released(step * 10 + 6, 1)
        consumer.released(step * 10 + 9, 1)
    assert len(consumer.releases) == MAX_RELEASES
    assert consumer.releases[-1] == (MAX_RELEASES * 10 - 1, 2)


class Blocked:
    """Something that cannot go before it is told to."""

    def __init__(self):
        self.may_go, self.is_gone = threading.Event(), threading.Event()

    def __del__(self):
        self.may_go.wait()
        self.is_gone.set()


class OwnedIterator:
    """An iterator with TensorFlow's private attribute."""

    def __init__(self, resource):
        self._iterator_resource = resource


def test_iterators_are_destroyed_and_waited_for():
    iterators = [OwnedIterator(Resource()) for _ in range(3)]
    before = time.monotonic()
    IteratorRelease().release([weakref.ref(iterator) for iterator in iterators], patience_s=30.0)
    assert 3 * SLOW_S <= time.monotonic() - before < 30.0
    assert not any(vars(iterator) for iterator in iterators)


class SlottedIterator:
    """An iterator without `__dict__`."""

    __slots__ = ("__weakref__",)


def test_an_iterator_without_attributes_does_not_keep_the_others():
    slotted, iterator = SlottedIterator(), OwnedIterator(object())
    before = time.monotonic()
    IteratorRelease().release([weakref.ref(iterator), weakref.ref(slotted)], patience_s=30.0)
    assert not vars(iterator) and time.monotonic() - before < 30.0


def test_the_interpreter_ends_although_an_iterator_is_still_being_destroyed():
    blocked = Blocked()
    may_go, is_gone = blocked.may_go, blocked.is_gone
    iterator = OwnedIterator(blocked)
    del blocked
    IteratorRelease().release([weakref.ref(iterator), None], patience_s=0.1)
    assert not vars(iterator) and not is_gone.is_set()
    may_go.set()
    assert is_gone.wait(10.0)
