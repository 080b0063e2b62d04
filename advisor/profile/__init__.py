"""Reads profiles without TensorFlow.

In: a run folder, a logdir or a `.xplane.pb` file.  Out: `Trace` (columns of events, facts of iterators), marked steps.
"""

from advisor.profile.profile_files import ProfileFiles, find_profiles
from advisor.profile.reader import read_host, read_trace, told_choice
from advisor.profile.step_markers import MarkedStep, marked_steps

__all__ = ["MarkedStep", "ProfileFiles", "find_profiles", "marked_steps", "read_host", "read_trace", "told_choice"]
