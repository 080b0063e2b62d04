"""Whether elements that differ between two texts differ only in the random numbers that were drawn.

In: the streams of both texts, whose random components have similar distributions.  Out: what else differs, or why that is
unknown.

For a fix of the advisor, similar distributions are enough, because it is known what the fix does. Any change may do anything, and
a distribution shows little: images resized in another way have almost the same mean. So more is asked for here. Either

* the elements are equal if random functions run one after the other (parallel calls draw their numbers in no fixed order), or
* in whole epochs, what is not random occurs as often as before, and of what is random most values occur in the original too, with
  the same or with other seeds: of an image that is flipped at random there are two.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from advisor.host.calibration.proof import RECURRING_SHARE, USUALLY_RECURRING
from advisor.model.errors import AdvisorError
from advisor.prove.texts.text_streams import TextStreams
from advisor.prove.trial.elements.streams import Stream
from advisor.replay.seedings import OTHER, TWIN


class RandomChange(NamedTuple):
    """What a closer look at random elements shows; both empty: nothing but other random numbers."""

    difference: str = ""
    """What else differs, as the end of a sentence."""
    unknown: str = ""
    """Why that is unknown, in one sentence."""


def look_closer(streams: TextStreams) -> RandomChange:
    """Judge elements that differ and are random.

    Raises:
        AdvisorError: The elements cannot be sampled.
    """
    try:
        one, two = streams.sequential()
    except AdvisorError:  # a call cannot be rebuilt without its parallelism
        one = two = Stream()
    if one.rows and one.rows == two.rows:
        return RandomChange()
    if not streams.passes.is_complete:
        return RandomChange(unknown="Random elements were compared in part of an epoch, where values need not recur.")
    old, new, drawn = _rows(streams)
    if not old.rows or not new.rows:
        return RandomChange(unknown="There were no elements to compare.")
    unknown = ""
    for component in range(len(old.rows[0])):
        columns = old.column(component), new.column(component), drawn.column(component)
        seen = _compare(*columns, name=f"component {component + 1}")
        if seen.difference:
            return seen
        unknown = unknown or seen.unknown
    together = _compare(old.rows, new.rows, drawn.rows, "the combination of all components")
    return together if together.difference else RandomChange(unknown=unknown or together.unknown)


def _rows(streams: TextStreams) -> tuple[Stream, Stream, Stream]:
    """Return the rows of batches, or else the elements: original, changed text, original with other seeds."""
    if streams.is_batched:
        rows = streams.rows(TWIN, False), streams.rows(TWIN, True), streams.rows(OTHER, False)
        if rows[0] is not None and rows[1] is not None and rows[2] is not None:
            return rows[0], rows[1], rows[2]
    return streams.original(TWIN), streams.changed(TWIN), streams.original(OTHER)


def _compare(old: Sequence[Hashable], new: Sequence[Hashable], drawn: Sequence[Hashable], name: str) -> RandomChange:
    if Counter(old) == Counter(drawn):
        is_same = Counter(new) == Counter(old)
        return RandomChange("" if is_same else f"{name} has other values, although only their order is random")
    values, known = set(new), set(old) | set(drawn)
    usual = len(set(old) & set(drawn)) / max(1, len(set(drawn)))
    if usual < RECURRING_SHARE.value:
        return RandomChange(
            unknown=f"The values of {name} are random and do not recur, so only their distribution was compared."
        )
    share = len(values & known) / max(1, len(values))
    if not share:
        return RandomChange(f"{name} has values that the original does not have with any seed")
    if share < USUALLY_RECURRING.value * usual:
        return RandomChange(unknown=f"Some values of {name} are not in the original, which may be chance.")
    return RandomChange()
