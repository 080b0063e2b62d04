"""The sentence about workers of another TensorFlow. Real workers: `test_served_trial.py`."""

from __future__ import annotations

import pytest

from advisor.prove.trial.service.service_versions import difference


def test_equal_versions_need_no_words():
    assert difference([2345, 2345], 2345, "2.21.0") == ""
    assert difference([], 2345, "2.21.0") == ""


@pytest.mark.parametrize(
    ("workers", "words"),
    [
        ([2100, 2345], "1 of 2 workers runs an older TensorFlow than the training (2.21.0)"),
        ([2400, 2400, 2345], "2 of 3 workers run a newer TensorFlow than the training (2.21.0)"),
        ([2100, 2400], "2 of 2 workers run another TensorFlow than the training (2.21.0)"),
    ],
)
def test_others_are_counted(workers, words):
    sentence = difference(workers, 2345, "2.21.0")
    assert words in sentence and "start all workers with 2.21.0" in sentence
