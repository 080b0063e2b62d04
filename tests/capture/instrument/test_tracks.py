"""What a consumer counts."""

from __future__ import annotations

from advisor.capture.instrument.consumers import Track


def test_iterators_over_one_dataset_are_told_from_datasets():
    track = Track("c0", "for", None, None)
    for call_id in ("tfadv_3", "tfadv_3", "tfadv_6", None, "tfadv_9"):
        track.reads(call_id)
    consumer = track.consumer(is_main=True)
    assert (consumer.iterators, consumer.datasets, consumer.call_id) == (5, 3, "tfadv_9")
