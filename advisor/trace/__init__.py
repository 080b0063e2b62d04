"""Reads profiles without TensorFlow.

In: a run folder, a logdir or a `.xplane.pb` file.  Out: `Trace` (columns of events, facts of iterators), marked steps.
"""

from advisor.trace.reader import read_trace

__all__ = ["read_trace"]
