"""What a consumer counts."""

from __future__ import annotations

from advisor.capture.instrument.consumers import ConsumerSteps


def test_iterators_over_one_dataset_are_told_from_datasets():
    consumer = ConsumerSteps("c0", "for", None, None)
    for call_id in ("tfadv_3", "tfadv_3", "tfadv_6", None, "tfadv_9"):
        consumer.reads(call_id)
    recorded = consumer.recorded(is_main=True)
    assert (recorded.iterators, recorded.datasets, recorded.call_id) == (5, 3, "tfadv_9")
