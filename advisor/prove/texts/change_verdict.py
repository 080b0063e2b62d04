"""The verdict on a change of a script, from what is known about its data and its speed.

In: the compared datasets, the measured speed.  Out: one of the verdicts of `advisor.model.change_proof`, with its reason. Nothing
is called equal that was not compared, or whose comparison could not have shown a difference.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from advisor.model.change_proof import (
    CANNOT_TELL,
    DIFFERENT,
    EQUAL,
    EQUAL_FASTER,
    OTHER_DATA,
    OTHER_FASTER,
    SAME,
    SLOWER,
    UNKNOWN,
    ComparedDataset,
)
from advisor.model.finding import Safety
from advisor.model.outcome import Interval
from advisor.model.units import format_range
from advisor.prove.measure.compare_runs import is_narrow
from advisor.prove.trial.trial_result import FASTER, as_sentence
from advisor.prove.trial.trial_result import SAME as NO_GAIN


@dataclass(frozen=True, slots=True)
class DataFacts:
    """What is known about the data of both texts."""

    state: str
    """`equal`, `different` or `unknown`."""
    reason: str
    """One sentence."""


@dataclass(frozen=True, slots=True)
class SpeedFacts:
    """What is known about the speed of both texts."""

    state: str
    """`faster`, `same`, `slower` or `unknown`."""
    speedup: Interval | None
    reason: str
    """One sentence."""


def permitted_effects(allowed: Collection[Safety], is_seeded: bool) -> frozenset[Safety]:
    """Return the effects that do not make the data different; for the arguments, see `judge_data`."""
    return frozenset({Safety.EXACT, *allowed} | (set() if is_seeded else {Safety.RERANDOMIZED}))


def judge_data(
    datasets: Sequence[ComparedDataset], allowed: Collection[Safety], is_seeded: bool, unknown: Sequence[str] = ()
) -> DataFacts:
    """Return what the comparison of the datasets says about the data as a whole.

    Args:
        datasets: The compared datasets; the first one is that of the training.
        allowed: Permitted effects beyond `exact`.
        is_seeded: Whether the unchanged script fixes its seeds. If not, two runs of it differ as much as `rerandomized` says.
        unknown: Sentences on data that were not compared.
    """
    permitted = permitted_effects(allowed, is_seeded)
    for dataset in datasets:
        if dataset.safety is not None and dataset.safety not in permitted:  # at least as much, if undecided
            note = f": {dataset.note.rstrip('.')}" if dataset.note else ""
            return DataFacts(DIFFERENT, f"The elements of {dataset.name} differ ({dataset.safety}){note}.")
    for dataset in datasets:
        if dataset.safety is None or dataset.is_undecided:
            note = f": {dataset.note.rstrip('.')}" if dataset.note else ""
            return DataFacts(UNKNOWN, f"It is not known whether the elements of {dataset.name} are the same{note}.")
    if unknown or not datasets:
        return DataFacts(UNKNOWN, unknown[0] if unknown else "No elements were compared.")
    how = sorted({str(dataset.safety) for dataset in datasets if dataset.safety is not Safety.EXACT})
    if not how:
        return DataFacts(EQUAL, "The elements are the same.")
    is_as_usual = how == [Safety.RERANDOMIZED] and not is_seeded
    why = "different in each run of the script, which sets no seed" if is_as_usual else "permitted"
    return DataFacts(EQUAL, f"The elements are the same, except for what is {why} ({', '.join(how)}).")


def judge_speed(verdict: str, speedup: Interval | None, note: str) -> SpeedFacts:
    """Return what a measurement says about the speed.

    Args:
        verdict: `faster`, `same`, `slower`, or anything else if nothing could be measured.
        speedup: The measured ratio with its interval; None if there is none.
        note: The reason for the verdict or for its absence; may be empty.
    """
    if speedup is None or verdict not in (FASTER, NO_GAIN, SLOWER):
        return SpeedFacts(UNKNOWN, speedup, note or "The speed was not measured.")
    measured = format_range(speedup.value, speedup.low, speedup.high)
    if verdict == NO_GAIN and not is_narrow(speedup):
        return SpeedFacts(UNKNOWN, speedup, f"The measurements vary too much to tell: {measured}.")
    if verdict == NO_GAIN:
        return SpeedFacts(verdict, speedup, f"It is neither faster nor slower: {measured}.")
    return SpeedFacts(verdict, speedup, f"It is {verdict}: {measured}.")


def verdict_of(data: DataFacts, speed: SpeedFacts) -> tuple[str, str]:
    """Return the verdict on the change, and its reasons in one or two sentences."""
    both = " ".join(as_sentence(reason) for reason in (data.reason, speed.reason))
    if speed.state == SLOWER:
        return SLOWER, " ".join(as_sentence(reason) for reason in (speed.reason, data.reason))
    if data.state == DIFFERENT:
        return (OTHER_FASTER if speed.state == FASTER else OTHER_DATA), both
    if data.state == UNKNOWN or speed.state == UNKNOWN:
        return CANNOT_TELL, both
    return (EQUAL_FASTER if speed.state == FASTER else SAME), both
