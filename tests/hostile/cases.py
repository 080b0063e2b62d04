"""All bad inputs, by name: each is made in an empty folder, and says how the command must end on it.

In: nothing.  Out: `CASES`. Files are small on disk wherever the harm allows; what they unfold to is not. One room for each kind
of badness; importing a room adds its cases.
"""

from __future__ import annotations

from tests.hostile import amounts, events, file_system, names, no_profiles, run_folders  # noqa: F401
from tests.hostile.case import CASES

__all__ = ["CASES"]
