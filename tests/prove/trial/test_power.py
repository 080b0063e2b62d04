"""What comparisons of few elements can show at all: where that is nothing, they are undecided."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from advisor.capture.instrument.dataset_ids import call_id_of
from advisor.model.edits import Edit, InsertAfter, MoveAfter, Remove, SetArgument
from advisor.model.finding import Safety
from advisor.prove.trial.elements.distribution_tests import (
    P_VALUE,
    SMALLEST_ORDER,
    SMALLEST_SAMPLE,
    Agreement,
    compare_dependence,
    compare_distributions,
    kolmogorov_smirnov,
    probability_of_counts,
    smallest_p,
    smallest_visible_loss,
    smallest_visible_share,
)
from advisor.prove.trial.elements.element_digests import Bounds
from advisor.prove.trial.elements.equivalence import Equivalence
from advisor.prove.trial.elements.judgement import Judgement
from advisor.prove.trial.elements.random_streams import common_elements
from advisor.prove.trial.elements.streams import OPAQUE, Stream


def numbers(*columns):
    rows = [tuple(str(value).encode() for value in row) for row in zip(*columns, strict=True)]
    figures = [
        tuple((float(value), 0.0, float(value), float(value), 1.0, 1.0) for value in row)
        for row in zip(*columns, strict=True)
    ]
    return Stream(rows, figures, ("numbers",) * len(columns))


def texts(values):
    return Stream([(value.encode(),) for value in values], [((5.0,),) for _ in values], ("text",))


def gauss(count, seed):
    draw = random.Random(seed)
    return [draw.gauss(0, 1) for _ in range(count)]


@pytest.mark.parametrize("count", [1, 2, 10, 14])
def test_too_few_figures_are_undecided_even_if_they_have_nothing_in_common(count):
    """A constant 1000 was once of the same distribution as N(0, 1) from 10 and from 14 elements."""
    samples = numbers(gauss(count, 1)), numbers(gauss(count, 2)), numbers([1000.0] * count)
    assert compare_distributions(*samples, 0) is Agreement.UNDECIDED


def test_samples_of_the_minimum_size_are_distinguished():
    assert (
        smallest_p(SMALLEST_SAMPLE - 1, SMALLEST_SAMPLE - 1) >= P_VALUE > smallest_p(SMALLEST_SAMPLE, SMALLEST_SAMPLE)
    )
    count = SMALLEST_SAMPLE
    one, two = numbers(gauss(count, 1)), numbers(gauss(count, 2))
    assert compare_distributions(one, two, numbers([1000.0] * count), 0) is Agreement.DIFFERENT
    assert compare_distributions(one, two, numbers(gauss(count, 3)), 0) is Agreement.SAME
    assert SMALLEST_ORDER == 10  # 10! > a million > 9!


@pytest.mark.parametrize("count", [15, 40, 200])
def test_the_power_stated_is_what_the_test_can_show(count):
    """Moving that share of the values out of the sample's range is just seen."""
    one = gauss(count, 1)
    share = smallest_visible_share(count, count)
    moved = round(share * count + 0.5)
    assert moved <= count
    assert kolmogorov_smirnov(one, [*sorted(one)[moved:], *[100.0] * moved]) < P_VALUE
    assert kolmogorov_smirnov(one, [*sorted(one)[moved - 2 :], *[100.0] * (moved - 2)]) >= P_VALUE


def test_texts_of_equal_length_are_compared_by_their_values():
    draw = random.Random(1)
    one, two, three = ([draw.choice(["bread", "water"]) for _ in range(100)] for _ in range(3))
    assert compare_distributions(texts(one), texts(two), texts(three), 0) is Agreement.SAME
    assert compare_distributions(texts(one), texts(two), texts(["stone"] * 100), 0) is Agreement.DIFFERENT
    assert (
        compare_distributions(
            texts([str(n) for n in range(100)]), texts([str(n) for n in range(200, 300)]), texts(three), 0
        )
        is Agreement.UNDECIDED
    )


def test_values_that_are_not_finite_show():
    good = numbers(gauss(100, 1))
    bad = numbers(gauss(100, 2))
    bad.figures[::2] = [((0.0, 0.0, 0.0, 0.0, 0.0, 1.0),)] * 50
    assert compare_distributions(good, numbers(gauss(100, 3)), bad, 0) is Agreement.DIFFERENT


def test_components_that_no_longer_belong_together_are_seen():
    def sample(seed, is_paired):
        first = gauss(200, seed)
        noise = gauss(200, seed + 10)
        second = [value + 0.1 * other for value, other in zip(first, noise, strict=True)]
        return numbers(first, second if is_paired else random.Random(seed).sample(second, 200))

    assert compare_dependence(sample(1, True), sample(2, True), sample(3, True), 0, 1) is Agreement.SAME
    assert compare_dependence(sample(1, True), sample(2, True), sample(3, False), 0, 1) is Agreement.DIFFERENT
    assert compare_dependence(sample(1, False), sample(2, False), sample(3, True), 0, 1) is Agreement.DIFFERENT


def test_counts_of_a_random_filter():
    assert probability_of_counts(40, 300, 0.25) < P_VALUE  # 60 of 100 missing
    assert probability_of_counts(100, 300, 0.25) > 0.5
    assert probability_of_counts(0, 0, 0.25) == 1.0
    for usual in (300, 3000, 30000):
        loss = smallest_visible_loss(usual, 0.25)
        assert probability_of_counts(int((1 - loss) * usual / 3), usual, 0.25) < P_VALUE
        assert probability_of_counts(int((1 - loss) * usual / 3) + 2, usual, 0.25) >= P_VALUE
    assert smallest_visible_loss(300, 0.25) > 0.5
    assert smallest_visible_loss(30000, 0.25) < 0.06
    assert smallest_visible_loss(6, 0.25) == 1.0


def test_a_count_that_is_random_is_refused_once_in_a_million_at_most():
    """The exact probability that the test refuses two counts of one rate, for all counts that can come."""
    refused = [k for k in range(401) if probability_of_counts(k, 400 - k, 0.25) < P_VALUE]
    total = sum(_binomial(400, k, 0.25) for k in refused)
    assert 0 < total < P_VALUE


def _binomial(n, k, p):
    from math import comb

    return comb(n, k) * p**k * (1 - p) ** (n - k)


def test_a_part_of_an_epoch_without_every_third_element_is_not_another_order():
    def part(values):
        return numbers(list(values))

    whole = range(300)
    third = [n for n in range(600) if n % 3][:300]
    assert common_elements(part(whole), part(third), part(whole)) is not Agreement.SAME
    swapped = [n ^ 1 for n in whole]
    assert common_elements(part(whole), part(swapped), part(whole)) is Agreement.SAME
    same = [n % 2 for n in whole]
    assert common_elements(part(same), part([*same[1:], 0]), part(same)) is Agreement.UNDECIDED


def test_opaque_components_are_known():
    assert Stream([(b"",)], [((),)], (OPAQUE,)).opaque == (0,)


# -- on real datasets


@pytest.fixture
def judge(recorded, tmp_path: Path):
    def judge(dataset, *edits: Edit, elements: int = 400, least: int = 0) -> Judgement:
        recorded.recorder.is_open = False
        bounds = Bounds(elements, 5.0, least=least)
        return Equivalence(recorded.recorder, call_id_of(dataset), bounds, tmp_path).judge(edits)

    return judge


@pytest.mark.tensorflow
def test_no_element_decides_nothing(recorded, judge):
    import tensorflow as tf

    dataset = tf.data.Dataset.range(40).filter(lambda x: x > 100).map(lambda x: x + 1)
    seen = judge(dataset, InsertAfter(recorded.call("map").id, "cache"))
    assert seen.holds(Safety.EXACT)
    assert "no comparable element" in seen.undecided


@pytest.mark.tensorflow
def test_components_without_values_are_not_compared(recorded, judge):
    import tensorflow as tf

    def wrap(x):
        return x, tf.raw_ops.OptionalFromValue(components=[x])

    dataset = tf.data.Dataset.range(40).map(wrap)
    seen = judge(dataset, InsertAfter(recorded.call("map").id, "prefetch", (("", 1),)))
    assert "component 2 of the elements" in seen.undecided


@pytest.mark.long
@pytest.mark.tensorflow
def test_the_first_few_elements_do_not_tell_the_order(recorded, judge):
    import tensorflow as tf

    dataset = tf.data.Dataset.range(1000).map(lambda x: x + 1)
    edit = SetArgument(recorded.call("map").id, "num_parallel_calls", 2)
    assert "Only the first element was compared" in judge(dataset, edit, elements=1).undecided
    assert "Only the first 9 elements were compared" in judge(dataset, edit, elements=9).undecided
    seen = judge(dataset, edit, elements=10)
    assert (seen.seen, seen.undecided) == (Safety.EXACT, "")
    assert judge(dataset.take(1), edit).undecided == ""  # that is all there is


@pytest.mark.long
@pytest.mark.tensorflow
def test_a_random_component_of_few_elements_is_undecided(recorded, judge):
    import tensorflow as tf

    def noise(x):
        return tf.random.uniform([3])

    dataset = tf.data.Dataset.range(10_000).map(noise).map(lambda x: x * 1000.0 + 500.0)
    seen = judge(dataset, Remove(recorded.call("map").id), elements=12)
    assert seen.seen is not Safety.EXACT
    assert seen.seen is Safety.CHANGES or "Component 1 is random" in seen.undecided
    assert judge(dataset, Remove(recorded.call("map").id), elements=16).seen is Safety.CHANGES


@pytest.mark.tensorflow
def test_pairs_that_are_parted_are_seen(recorded, judge):
    import tensorflow as tf

    def shuffled():
        return tf.data.Dataset.range(100).shuffle(100, seed=5)

    dataset = tf.data.Dataset.zip((shuffled(), shuffled()))
    seen = judge(dataset, SetArgument(recorded.call("shuffle").id, "buffer_size", 50))
    assert seen.seen is Safety.CHANGES


@pytest.mark.long
@pytest.mark.tensorflow
def test_elements_lost_behind_a_random_filter_are_not_called_random(recorded, judge):
    import tensorflow as tf

    def now_and_then(x):
        return tf.random.uniform([]) < 0.5

    dataset = tf.data.Dataset.range(200).filter(now_and_then).map(lambda x: x)
    moved = judge(dataset, MoveAfter(recorded.call("map").id, recorded.call("range").id))
    assert moved.seen is Safety.EXACT or moved.undecided
    third = judge(dataset, InsertAfter(recorded.call("map").id, "shard", (("", 3), ("", 0))))
    assert third.seen is Safety.CHANGES
