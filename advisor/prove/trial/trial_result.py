"""What one trial of edits showed.

In: nothing.  Out: `Trial`, which crosses from the proof's child process to its parent and into `FixOutcome`.
"""

from __future__ import annotations

from dataclasses import dataclass

from advisor.model.finding import Safety
from advisor.model.outcome import Interval

FASTER, SAME, SLOWER, BROKEN, REFUSED = "faster", "same", "slower", "broken", "refused"

WORTHWHILE = 1.05
"""A smaller gain is called `same`: every change of a script costs its reader, and two runs of one and the same pipeline came out
as 1.04x (1.02 to 1.09) once [seen, on a busy machine]."""


@dataclass(frozen=True, slots=True)
class Trial:
    """Before and after, measured by turns on the user's own data."""

    verdict: str
    """`faster`, `same`, `slower`; `broken`: the elements belie the claimed safety; `refused`: not tried or not judged,
    `note` says why.
    """
    speedup: Interval | None = None
    """Ratio of rates, after to before, with its 95 % interval; None where nothing was measured."""
    rate_before: float | None = None
    """Elements per second at the root, median of the turns."""
    rate_after: float | None = None
    turns: int = 0
    """Pairs of turns (one of each side)."""
    safety_seen: Safety | None = None
    """What the elements show; None: they were not compared."""
    elements_compared: int = 0
    memory_before_bytes: int | None = None
    """Peak resident memory of the process while only that side ran."""
    memory_after_bytes: int | None = None
    note: str = ""
    """One sentence: why, or what limits the statement."""
    is_undecided: bool = False
    """The elements seen could not have refuted the claim, so `safety_seen` is no proof; `note` says why."""
    is_replayable: bool = True
    """False: refused because the dataset cannot be rebuilt with these edits (`CannotReplay`); the whole script can still prove
    them. Set by the session; the loop's caller then measures end to end.
    """


def judge(speedup: Interval | None) -> tuple[str, str]:
    """(verdict, why) of a speedup."""
    if speedup is None:
        return SAME, "Too few turns fitted into the budget to tell."
    if speedup.low > 1 and speedup.value >= WORTHWHILE:
        return FASTER, ""
    if speedup.high < 1:
        return SLOWER, ""
    if speedup.low > 1:
        return SAME, f"Faster by less than {WORTHWHILE - 1:.0%}, which is not worth a change."
    return SAME, ""
