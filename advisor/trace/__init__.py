"""Reads profiles without TensorFlow.

In: a run folder, a logdir or a `.xplane.pb` file.  Out: `Trace` (columns of events, facts of iterators), marked steps.
"""

from advisor.trace.reader import read_trace
from advisor.trace.steps import MarkedStep, marked_steps

__all__ = ["MarkedStep", "marked_steps", "read_trace"]
