"""Which of a script's consumers the window follows: the one that is most likely the training loop.

In: the steps of two consumers.  Out: whether the one takes the lead from the other.
"""

from __future__ import annotations

import threading

from advisor.capture.instrument.consumers import ConsumerSteps
from advisor.host.calibration.window import LOOK_STEPS, NEW_LEADER_STEPS


def takes_the_lead(consumer: ConsumerSteps, leader: ConsumerSteps) -> bool:
    """Whether `consumer` is more likely the training loop than the present leader."""
    if consumer.rank != leader.rank:
        return consumer.rank > leader.rank
    return (
        consumer.count >= NEW_LEADER_STEPS.value
        and consumer.total_ns > leader.total_ns
        and not _may_be_inside(consumer, leader)
    )


def _may_be_inside(consumer: ConsumerSteps, leader: ConsumerSteps) -> bool:
    """Whether the steps of `consumer` may be part of one step of `leader`, in whose loop it is.

    They are not if the leader's iterator is gone. A script that keeps the iterator of which it has taken a single element never
    ends that step, so the first step of a leader does not count forever.
    """
    if not leader.open_since_ns or not leader.has_iterator:
        return False
    return leader.count > 0 or consumer.count < LOOK_STEPS.value


def is_foreign_thread() -> bool:
    """Return whether Python did not start this thread, as when TensorFlow calls a generator that reads another dataset.

    Such a consumer feeds a pipeline. It must not lead: an exception that ends it there would be an error of the pipeline.
    """
    return isinstance(threading.current_thread(), threading._DummyThread)
