"""Scripts on which a rule must be silent although they resemble its problem: each differs from a bad script in one detail.

In: nothing.  Out: `NEAR_MISSES`; `script_of` turns one into a training script.
"""

from __future__ import annotations

from near_misses.caches import CACHES
from near_misses.parallelism import PARALLELISM
from near_misses.reading import READING
from near_misses.script import NearMiss, script_of
from near_misses.training_steps import TRAINING_STEPS

NEAR_MISSES: tuple[NearMiss, ...] = (*CACHES, *PARALLELISM, *READING, *TRAINING_STEPS)

__all__ = ["NEAR_MISSES", "NearMiss", "script_of"]
