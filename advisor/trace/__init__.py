"""Reads profiles without TensorFlow.

In: a run folder, a logdir or a `.xplane.pb` file.  Out: `Trace` (columns of events, facts of iterators), marked steps.
"""

from advisor.trace.files import ProfileFiles, find_profiles
from advisor.trace.reader import read_host, read_trace, told_choice
from advisor.trace.steps import MarkedStep, marked_steps

__all__ = ["MarkedStep", "ProfileFiles", "find_profiles", "marked_steps", "read_host", "read_trace", "told_choice"]
