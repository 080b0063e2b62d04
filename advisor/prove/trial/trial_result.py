"""The result of one trial of edits: `Trial`, which the proof's child process sends to its parent."""

from __future__ import annotations

from dataclasses import dataclass

from advisor.host.calibration.proof import WORTHWHILE
from advisor.model.finding import Safety
from advisor.model.outcome import Interval, LossDeviation
from advisor.model.units import format_share

FASTER, SAME, SLOWER, BROKEN, REFUSED = "faster", "same", "slower", "broken", "refused"


@dataclass(frozen=True, slots=True)
class Trial:
    """Before and after, measured alternately on the user's own data."""

    verdict: str
    """`faster`, `same`, `slower`; `broken`: the elements violate the claimed safety level; `refused`: not tried or not judged,
    for the reason in `note`.
    """
    speedup: Interval | None = None
    """Ratio of rates, after to before, with its 95 % interval; None if nothing was measured."""
    rate_before: float | None = None
    """Elements per second at the root, median of the turns."""
    rate_after: float | None = None
    turns: int = 0
    """Pairs of turns (one of each side)."""
    safety_seen: Safety | None = None
    """The observed effect on the elements; None if they were not compared."""
    elements_compared: int = 0
    memory_before_bytes: int | None = None
    """Peak resident memory of the process while only this side ran."""
    memory_after_bytes: int | None = None
    note: str = ""
    """One sentence: the reason for the verdict, or its limits."""
    is_undecided: bool = False
    """The observed elements could not have refuted the claim, so `safety_seen` is no proof; `note` says why."""
    is_replayable: bool = True
    """False if refused because the dataset cannot be rebuilt with these edits (`CannotReplay`). Set by the session; the caller
    of the loop then measures the whole script.
    """
    original_s: float = 0.0
    """Seconds of the trial in which the unchanged pipeline was read for the comparison. Later trials of the same process need not
    read it again."""
    loss: LossDeviation | None = None
    """For a change of the training step; None if the loss is unknown."""


def as_sentence(text: str) -> str:
    """Return `text` with a capital letter and one full stop; empty text stays empty."""
    return text[:1].upper() + text[1:].rstrip(".") + "." if text else ""


def judge(speedup: Interval | None) -> tuple[str, str]:
    """Return the verdict on a speedup, and the reason if it needs one."""
    if speedup is None:
        return SAME, "The budget allowed too few turns for a verdict."
    if speedup.low > 1 and speedup.value >= WORTHWHILE.value:
        return FASTER, ""
    if speedup.high < 1 and speedup.value <= 1 / WORTHWHILE.value:
        return SLOWER, ""
    if speedup.low > 1:
        return SAME, f"Faster by less than {format_share(WORTHWHILE.value - 1)}, which is not worth a change."
    if speedup.high < 1:
        return SAME, f"Slower by less than {format_share(WORTHWHILE.value - 1)}."
    return SAME, ""
