"""Which of a script's consumers the window follows: the one that is most likely the training loop.

In: two `Track`s.  Out: whether the one takes the lead from the other.
"""

from __future__ import annotations

import threading

from advisor.capture.instrument.consumers import Track
from advisor.host.calibration.window import LOOK_STEPS, NEW_LEADER_STEPS


def takes_the_lead(track: Track, leader: Track) -> bool:
    """Whether `track` is more likely the training loop than the present leader."""
    if track.rank != leader.rank:
        return track.rank > leader.rank
    return (
        track.count >= NEW_LEADER_STEPS.value and track.total_ns > leader.total_ns and not _may_be_inside(track, leader)
    )


def _may_be_inside(track: Track, leader: Track) -> bool:
    """Whether the steps of `track` may be part of one step of `leader`, in whose loop it is.

    They are not if the leader's iterator is gone. A script that keeps the iterator of which it has taken a single element never
    ends that step, so the first step of a leader does not count forever.
    """
    if not leader.open_since_ns or not leader.has_iterator:
        return False
    return leader.count > 0 or track.count < LOOK_STEPS.value


def is_foreign_thread() -> bool:
    """Return whether Python did not start this thread, as when TensorFlow calls a generator that reads another dataset.

    Such a consumer feeds a pipeline. It must not lead: an exception that ends it there would be an error of the pipeline.
    """
    return isinstance(threading.current_thread(), threading._DummyThread)
