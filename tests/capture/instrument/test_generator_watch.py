"""Which elements of a Python generator count as the same in two passes, and that nothing else happens to it."""

from __future__ import annotations

import random

import numpy as np
import pytest

from advisor.capture.instrument.generator_watch import (
    FIRST_ELEMENTS,
    MAX_FOLLOWED,
    STRIDE,
    GeneratorWatch,
    element_digest,
)


def passes_over(generator, count=2):
    """What is seen in that many passes of the script."""
    watch = GeneratorWatch(lambda: True)
    followed = watch.followed("c1", generator)
    for _ in range(count):
        for _ in iter(followed()):
            pass
    return watch.observed()


def test_the_same_elements_are_the_same():
    (seen,) = passes_over(lambda: (np.full(3, i) for i in range(200)), 3)
    assert (seen.call_id, seen.passes, seen.elements, seen.is_same) == ("c1", 3, 200, True)
    assert seen.compared == FIRST_ELEMENTS + 2  # the 97th and the 194th


def test_of_many_generators_the_first_are_followed():
    watch = GeneratorWatch(lambda: True)

    def rows():
        yield 1

    followed = [watch.followed(f"c{number}", rows) for number in range(MAX_FOLLOWED + 1)]
    assert followed[-2] is not rows and followed[-1] is rows
    assert watch.followed("c0", rows) is not rows


def test_one_pass_says_nothing():
    assert passes_over(lambda: iter(range(5)), 0) == ()
    assert passes_over(lambda: iter(range(5)), 1)[0].passes == 1


def test_a_generator_that_grows():
    rows = [1, 2, 3]

    def grow():
        yield from list(rows)
        rows.append(4)

    assert not passes_over(grow)[0].is_same


def test_a_generator_that_shuffles():
    rows, numbers = np.arange(50), np.random.default_rng(3)

    def shuffled():
        yield from numbers.permutation(rows)

    assert not passes_over(shuffled)[0].is_same


def test_a_generator_that_draws_the_same_numbers_again_is_the_same():
    assert passes_over(lambda: iter(random.Random(3).sample(range(50), 50)))[0].is_same


def test_a_list_that_the_loop_changes():
    rows = [np.zeros(4) for _ in range(5)]
    watch = GeneratorWatch(lambda: True)
    followed = watch.followed("c1", lambda: iter(rows))
    list(followed())
    rows[3][1] = 1  # in place: neither the list nor its length changes
    list(followed())
    assert not watch.observed()[0].is_same


def test_a_change_after_the_first_elements_is_seen_in_the_sample():
    passes = iter([0, 1])

    def late():
        number = next(passes)
        for index in range(3 * STRIDE):
            yield index + number * (index >= STRIDE)

    assert not passes_over(late)[0].is_same


def test_passes_that_overlap_are_compared_too():
    numbers = iter(range(100))
    watch = GeneratorWatch(lambda: True)
    followed = watch.followed("c1", lambda: (next(numbers) for _ in range(5)))
    one, two = iter(followed()), iter(followed())
    for _ in range(5):
        next(one), next(two)
    assert (next(one, None), next(two, None)) == (None, None)
    (seen,) = watch.observed()
    assert seen.passes == 2 and not seen.is_same


def test_a_pass_that_the_script_left_is_not_counted():
    watch = GeneratorWatch(lambda: True)
    followed = watch.followed("c1", lambda: iter(range(5)))
    next(iter(followed()))
    list(followed())
    assert [seen.passes for seen in watch.observed()] == [1]


def test_generators_with_arguments_are_not_compared():
    watch = GeneratorWatch(lambda: True)
    followed = watch.followed("c1", lambda count: iter(range(count)))
    assert list(followed(3)) == [0, 1, 2] and watch.observed() == ()


def test_nothing_is_followed_after_the_recording():
    watch, elements = GeneratorWatch(lambda: False), iter(range(3))
    assert watch.followed("c1", lambda: elements)() is elements


def test_the_generator_is_run_as_often_as_by_the_script_and_closed():
    events = []

    def rows():
        events.append("begin")
        try:
            yield 1
            yield 2
        finally:
            events.append("end")

    watch = GeneratorWatch(lambda: True)
    followed = watch.followed("c1", rows)
    assert list(followed()) == [1, 2]
    left = iter(followed())
    next(left)
    del left
    assert events == ["begin", "end", "begin", "end"]


def test_errors_of_the_generator_are_its_own():
    def broken():
        yield 1
        raise KeyError("row")

    elements = iter(GeneratorWatch(lambda: True).followed("c1", broken)())
    assert next(elements) == 1
    with pytest.raises(KeyError, match="row"):
        next(elements)


class Own:
    """An object of the script, none of whose methods may be called."""

    def __repr__(self):
        raise AssertionError

    def __iter__(self):
        raise AssertionError


@pytest.mark.parametrize(
    "element", [Own(), [Own()], {"a": Own()}, np.array([Own()], dtype=object), [*range(2000), Own()]]
)
def test_objects_of_the_script_are_not_read(element):
    assert element_digest(element) is None


@pytest.mark.parametrize(
    ("one", "two"),
    [
        (1, 1.0), (1, True), ("a", b"a"), ((1, 2), [1, 2]), ({"a": 1}, {"a": 2}), ({"a": 1}, {"b": 1}), (None, 0),
        (np.float32(0.1), np.float64(0.1)), (np.zeros(2), np.zeros((2, 1))), (np.array(["a"]), np.array(["b"])),
        (np.array(["a"], dtype=object), np.array(["b"], dtype=object)), ([[1], 2], [[1, 2]]),
    ],
)  # fmt: skip
def test_different_elements_have_different_digests(one, two):
    assert element_digest(one) is not None and element_digest(two) is not None
    assert element_digest(one) != element_digest(two)
    assert element_digest(one) == element_digest(one)


def test_large_arrays_are_sampled():
    one = np.zeros(10_000_000, np.uint8)
    two = one.copy()
    two[-1] = 1
    half = one.copy()
    half[: len(half) // 2] = 1
    assert element_digest(one) == element_digest(one.copy()) != element_digest(half)
    assert element_digest(one[::2]) is not None
