"""Judges streams of elements that are random, or whose number is, by statistics: bit by bit they differ in any case.

In: streams of the original and of the changed dataset (`advisor.prove.trial.elements.compared_streams`).  Out: an `Observation`.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

from advisor.host.calibration.proof import VISIBLE_COMMON_LOSS, VISIBLE_LOSS
from advisor.model import units
from advisor.model.finding import Safety
from advisor.prove.trial.elements.compared_streams import ComparedStreams
from advisor.prove.trial.elements.distribution_tests import (
    P_VALUE,
    Agreement,
    common_share,
    compare_dependence,
    compare_distributions,
    loss_is_visible,
    probability_of_counts,
    smallest_visible_loss,
    smallest_visible_share,
    variation,
)
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.seedings import OTHER, TWIN

_MAX_PAIRED = 6
"""Maximum number of components whose pairs are compared."""


class Observation(NamedTuple):
    """The level that a comparison showed, with what a `Judgement` says about it."""

    seen: Safety
    note: str
    undecided: str = ""
    power: str = ""


def judge_counts(streams: ComparedStreams, before: Stream, after: Stream) -> Observation:
    """Judge different numbers of elements: a change, unless the number is random, as after a random filter.

    Args:
        streams: Both datasets; samples of the original with other seeds tell whether the number is random.
        before: Elements of the original, with the script's own seeds.
        after: Elements of the changed dataset, with the script's own seeds.
    """
    other = streams.original(OTHER)
    passes = streams.passes
    rates = [len(streams.original(TWIN).rows) / passes.count(TWIN), len(before.rows) / passes.epochs]
    rates.append(len(other.rows) / passes.count(OTHER))
    counts = [round(rate * passes.epochs) for rate in rates]
    total, share = sum(counts), 1 / (len(counts) + 1)
    if len(set(counts)) == 1:
        return Observation(
            Safety.CHANGES,
            f"there are {len(after.rows)} elements instead of {len(before.rows)} (in all sampled epochs)",
        )
    is_spread = probability_of_counts(min(counts), max(counts), 0.5) < P_VALUE
    if not is_spread and probability_of_counts(len(after.rows), total, share) < P_VALUE:
        return Observation(
            Safety.CHANGES, f"there are {len(after.rows)} elements instead of about {total / len(counts):.0f}"
        )
    undecided = "The number of elements varies too much between epochs to be compared." if is_spread else ""
    loss = smallest_visible_loss(total, share)
    if loss > VISIBLE_LOSS.value:
        undecided = undecided or (
            f"The number of elements is random, and so small that {units.format_share(loss)} of them could be missing without "
            "being noticed."
        )
    for component in range(len(before.rows[0]) if before.rows else 0):
        agreement = compare_distributions(before, other, after, component)
        if agreement is Agreement.DIFFERENT:
            return Observation(Safety.CHANGES, f"component {component + 1} has a different distribution")
        if agreement is Agreement.UNDECIDED:
            undecided = undecided or _too_few(component, len(after.rows))
    note = "The number of elements is random, so only statistics could be compared."
    return Observation(Safety.RERANDOMIZED, note, undecided, _power(len(before.rows), len(after.rows)))


def judge_components(
    streams: ComparedStreams, before: Stream, now: Stream, twin: Stream, after: Stream, other: Stream
) -> Observation:
    """Judge the components one by one.

    Args:
        streams: Both datasets, and how they are sampled.
        before: The original with the script's own seeds.
        now: The changed dataset with the script's own seeds.
        twin: The original with the seeds of a twin.
        after: The changed dataset with the seeds of a twin.
        other: The original with other seeds, which shows what is random.
    """
    epochs, new_epochs = streams.passes.epochs_of(before), streams.passes.epochs_of(now)
    undecided = ""
    for component in range(len(twin.rows[0]) if twin.rows else 0):
        old, new, drawn = twin.column(component), after.column(component), other.column(component)
        if old == new:
            continue
        is_steady = not variation([epoch.column(component) for epoch in epochs])
        if is_steady and variation([epoch.column(component) for epoch in new_epochs]):
            return Observation(
                Safety.CHANGES,
                f"component {component + 1} was the same every epoch before the change and no longer is",
            )
        if old == drawn and is_steady:
            return Observation(Safety.CHANGES, f"component {component + 1} differs, although it is not random")
        if streams.passes.is_complete and Counter(old) == Counter(drawn) != Counter(new) and old != drawn:
            return Observation(
                Safety.CHANGES, f"component {component + 1} has other values, although only their order is random"
            )
        agreement = compare_distributions(twin, other, after, component)
        if agreement is Agreement.DIFFERENT:
            return Observation(Safety.CHANGES, f"component {component + 1} has a different distribution")
        if agreement is Agreement.UNDECIDED:
            undecided = undecided or _too_few(component, len(after.rows))
    broken = broken_dependence(twin, other, after, streams.passes.is_complete)
    if broken:
        return Observation(Safety.CHANGES, broken)
    return Observation(Safety.RERANDOMIZED, "", undecided, _power(len(twin.rows), len(after.rows)))


def common_elements(one: Stream, two: Stream, drawn: Stream) -> Agreement:
    """Whether two parts of an epoch come from the same elements in another order.

    The first half of each must occur anywhere in the other. If the order is random, two parts must share as many elements as two
    draws of the original do.

    Args:
        one: A part of the original.
        two: A part of what is compared with it, of about the same length.
        drawn: A part of the original with other seeds.

    Returns:
        `UNDECIDED` if a loss of elements could remain unnoticed in parts of this length.
    """
    old, new = one.counted(), two.counted()
    if common_share(old, new) <= 0.5:
        return Agreement.DIFFERENT
    halves = [stream.rows[: len(stream.rows) // 2] for stream in (one, two)]
    if not Counter(halves[0]) - new and not Counter(halves[1]) - old:
        return Agreement.SAME if loss_is_visible(halves[0], old) else Agreement.UNDECIDED
    if one.rows == drawn.rows:
        return Agreement.UNDECIDED
    shared, usual = ((old & other.counted()).total() for other in (two, drawn))
    is_usual = probability_of_counts(shared, usual, 0.5) >= P_VALUE
    is_visible = smallest_visible_loss(usual, 0.5) <= VISIBLE_COMMON_LOSS.value and loss_is_visible(one.rows, old)
    return Agreement.SAME if is_usual and is_visible else Agreement.UNDECIDED


def broken_dependence(one: Stream, two: Stream, new: Stream, is_complete: bool) -> str:
    """Name two components that depend on each other in the original but not in `new`.

    Args:
        one: The original.
        two: The original with other seeds.
        new: The changed dataset.
        is_complete: Whether the streams are whole epochs, in which the original always has the same pairs of values.

    Returns:
        A clause that names both; empty if there are none.
    """
    count = len(one.rows[0]) if one.rows else 0
    for first in range(min(count, _MAX_PAIRED)):
        for second in range(first + 1, min(count, _MAX_PAIRED)):
            sides = [Counter((row[first], row[second]) for row in stream.rows) for stream in (one, two, new)]
            if sides[0] == sides[2]:
                continue
            is_other = is_complete and sides[0] == sides[1]
            if is_other or compare_dependence(one, two, new, first, second) is Agreement.DIFFERENT:
                return f"components {first + 1} and {second + 1} no longer depend on each other as before"
    return ""


def _too_few(component: int, elements: int) -> str:
    return (
        f"Component {component + 1} is random, and {units.format_many(elements, 'element')} were not enough to compare its "
        "distribution."
    )


def _power(before: int, after: int) -> str:
    """Return the smallest difference that the comparison by distribution could have shown, in a sentence."""
    share = smallest_visible_share(before, after)
    if share >= 1:
        return ""
    return (
        f"Random components were compared by distribution in {after} elements, enough to detect a difference of "
        f"{units.format_share(share)} of the values."
    )
