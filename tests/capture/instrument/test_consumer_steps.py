"""What a consumer counts."""

from __future__ import annotations

import pytest

from advisor.capture.instrument.consumers import Consumers, ConsumerSteps
from advisor.model.recording import Loop


def test_iterators_over_one_dataset_are_told_from_datasets():
    consumer = ConsumerSteps("c0", "for", None, None)
    for call_id in ("tfadv_3", "tfadv_3", "tfadv_6", None, "tfadv_9"):
        consumer.reads(call_id)
    recorded = consumer.recorded(is_main=True)
    assert (recorded.iterators, recorded.datasets, recorded.call_id) == (5, 3, "tfadv_9")


@pytest.mark.parametrize(
    ("counts", "per_call", "passes", "expected"),
    [
        ((3,), 1, 3, 30),
        ((3,), 1, 2, None),  # one more pass follows
        ((3,), 1, 4, None),  # the loops did not tell
        ((2, 2), 1, 4, 40),
        ((), 3, 3, 30),  # `fit` with epochs=3
        ((2,), 3, 6, 60),  # in a loop
        ((None,), 1, 3, None),
        (None, 1, 3, None),
        ((3,), None, 3, None),
        ((1,), 1, 1, None),  # how long a pass is, is not known
    ],
)
def test_the_last_step_is_known_in_the_last_pass(counts, per_call, passes, expected):
    consumer = Consumers().at("for", None, None)
    assert consumer.passes_per_call == 1
    consumer.passes_per_call = per_call
    consumer.loops = None if counts is None else tuple(Loop(count) for count in counts)
    for number in range(passes):
        consumer.reads("d1")
        for step in range(10 if number < passes - 1 else 4):
            consumer.begin(1 + 10 * number + step)
            consumer.end(2 + 10 * number + step)
    assert consumer.last_step == expected


def test_passes_of_different_lengths_tell_nothing():
    consumer = Consumers().at("for", None, None)
    consumer.loops = (Loop(3),)
    for length in (10, 9, 4):
        consumer.reads("d1")
        for step in range(length):
            consumer.begin(step + 1)
            consumer.end(step + 2)
    assert consumer.last_step is None
