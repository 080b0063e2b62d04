"""How often a run of the script passes over its data.

`Horizon` is made by `advisor.predict.passes_over_data` from a recording.
"""

from __future__ import annotations

from dataclasses import dataclass

KNOWN = "known"
"""From arguments (`epochs=` of Keras' `fit`, `repeat(n)`) or from a run that was recorded to its end."""
ASSUMED = "assumed"
"""From a loop of the script, or an upper limit that the script may not reach."""
UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True)
class Horizon:
    """The passes over the data (epochs) that a run of the script makes."""

    basis: str
    """`known`, `assumed` or `unknown`."""
    why: str
    """Where the number comes from, or why it is unknown, as a clause without a period."""
    passes: float | None = None
    """Number of passes; of a run that goes on, those that are left. None if unknown."""
    steps_per_pass: float | None = None
    """Steps (elements at the root) of one pass; None if unknown."""
    steps_done: int = 0
    """Steps that the recorded run had made when the recording ended."""
    is_rest: bool = False
    """Whether the recorded run goes on, so that `passes` are those left of it."""
