"""Reads profiles without TensorFlow.

In: a run folder, a logdir or a `.xplane.pb` file.  Out: `Trace` (columns of events, facts about iterators), marked steps.
"""

from advisor.profile.profile_files import ProfileFiles, find_profiles
from advisor.profile.reader import choice_notes, read_host, read_trace
from advisor.profile.step_markers import MarkedStep, marked_steps

__all__ = ["MarkedStep", "ProfileFiles", "choice_notes", "find_profiles", "marked_steps", "read_host", "read_trace"]
