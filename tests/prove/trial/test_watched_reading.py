"""Reading that may never end."""

from __future__ import annotations

import threading
import time

import pytest

from advisor.prove.trial.watched_reading import Pulse, Stalled, watched


def test_results_and_errors_pass_through():
    pulse = Pulse()
    assert watched(lambda: 3, lambda: pulse.last, lambda: None, 5.0) == 3
    with pytest.raises(ValueError, match="no such file"):
        watched(lambda: int("no such file"), lambda: pulse.last, lambda: None, 5.0)


@pytest.mark.long
def test_silence_ends_the_wait_and_elements_prolong_it():
    never, pulse, reports = threading.Event(), Pulse(), []
    try:
        began = time.perf_counter()
        with pytest.raises(Stalled):
            watched(never.wait, lambda: pulse.last, lambda: reports.append(1), 0.4)
        assert time.perf_counter() - began < 3 and reports

        def slowly() -> str:
            for _ in range(8):
                time.sleep(0.2)
                pulse.beat()
            return "all"

        assert watched(slowly, lambda: pulse.last, lambda: None, 0.7) == "all"
    finally:
        never.set()
