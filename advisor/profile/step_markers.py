"""Finds the steps that the user's program marked in the profile.

In: a `HostTrace`.  Out: `MarkedStep`s; none if the program marked none (Keras marks none by itself).

A step is marked by `tf.profiler.experimental.Trace(name, step_num=..., _r=1)`, `jax.profiler.StepTraceAnnotation` or a similar
function. Of nested marks, the outermost counts, as in TensorFlow's grouping of events.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from advisor.model.trace import EventKind, HostTrace


@dataclass(frozen=True, slots=True)
class MarkedStep:
    """One step. Times are nanoseconds on the profile's clock."""

    start_ns: int
    end_ns: int
    number: int
    """The marked number; counted from 0 if the marks have no distinct numbers."""


def marked_steps(host: HostTrace) -> tuple[MarkedStep, ...]:
    """Return the marked steps of all threads in chronological order."""
    steps: list[MarkedStep] = []
    for thread in host.threads:
        rows = np.flatnonzero(thread.kind == EventKind.STEP)
        last_end_ns = None
        for row in rows.tolist():  # a thread's events are sorted by start, longer first: the outer one comes first
            start_ns, end_ns = int(thread.start_ns[row]), int(thread.end_ns[row])
            if last_end_ns is None or start_ns >= last_end_ns:
                steps.append(MarkedStep(start_ns, end_ns, int(thread.key[row])))
                last_end_ns = end_ns
    steps.sort(key=lambda step: (step.start_ns, step.end_ns))
    if len({step.number for step in steps}) < len(steps):
        return tuple(MarkedStep(step.start_ns, step.end_ns, order) for order, step in enumerate(steps))
    return tuple(steps)
