"""Chooses among places for a cache that save about as much, and makes the edits that add the cache.

In: `CachePlace`s.  Out: the smallest of the best ones, the edits, and what they do to the data.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from advisor.model.edits import Edit, InsertAfter, MoveAfter, Remove, SetArgument
from advisor.model.finding import Safety
from advisor.model.pipeline import Analysis
from advisor.predict.caching import CachePlace
from advisor.predict.editable_calls import takes_link


def best_place(analysis: Analysis, candidates: Sequence[CachePlace], equal_gain: float) -> CachePlace | None:
    """The smallest of the places that save about as much as the best one, preferring places that can be edited.

    Of otherwise equal places the first is chosen, which leaves the least work after the cache: a difference within the noise must
    not decide which advice the user reads.

    Args:
        analysis: The analysis.
        candidates: The places, ordered from the consumer upstream.
        equal_gain: Fraction of the best predicted speedup from which a place saves about as much.
    """
    if not candidates:
        return None
    most = max(candidate.prediction.value for candidate in candidates)
    equal = [candidate for candidate in candidates if candidate.prediction.value >= equal_gain * most]
    equal = [candidate for candidate in equal if takes_link(analysis, candidate.call)] or equal
    shuffles = min(
        len(candidate.obstacles) for candidate in equal
    )  # prefer places that require moving the fewest shuffles
    equal = [candidate for candidate in equal if len(candidate.obstacles) == shuffles]
    fewest = min((candidate.bytes for candidate in equal if candidate.bytes is not None), default=None)
    small = [candidate for candidate in equal if fewest is None or (candidate.bytes or math.inf) * equal_gain <= fewest]
    return (small or equal)[0]


def larger_place(places: Sequence[CachePlace], chosen: CachePlace, equal_gain: float) -> CachePlace | None:
    """The place that would save most of those that save about as much as the chosen one and take more memory.

    Args:
        places: All places.
        chosen: One of them.
        equal_gain: See `best_place`.
    """
    if chosen.bytes is None:
        return None
    equal = [
        candidate
        for candidate in places
        if candidate.bytes is not None
        and (candidate.movable or not candidate.obstacles)
        and candidate.bytes * equal_gain > chosen.bytes
        and candidate.prediction.value >= equal_gain * chosen.prediction.value
        and candidate.assumptions == chosen.assumptions
    ]
    return max(equal, key=lambda candidate: candidate.prediction.value, default=None)


def smallest_place(places: Sequence[CachePlace], equal_gain: float) -> CachePlace | None:
    """The smallest of the places that save about as much as the best one; one of unknown size only if there is no other.

    Args:
        places: The places.
        equal_gain: See `best_place`.
    """
    most = max((candidate.prediction.value for candidate in places), default=0.0)
    equal = [candidate for candidate in places if candidate.prediction.value >= equal_gain * most]
    return min(equal, key=lambda candidate: (candidate.bytes is None, candidate.bytes or 0), default=None)


def cache_edits(chosen: CachePlace) -> tuple[Edit, ...]:
    """The edits that insert the cache directly after the call, followed by the shuffles that preceded it.

    A cache that would only feed it is removed, so that no elements are held twice.
    """
    moves: list[Edit] = []
    for call in chosen.movable:  # nearest first: each insertion directly after the call precedes the previous one
        if call.method != "list_files":
            moves.append(MoveAfter(call.id, chosen.call.id))
        else:
            moves.append(SetArgument(call.id, "shuffle", False))
            moves.append(InsertAfter(chosen.call.id, "shuffle", (("", call.cardinality),)))
    removed = (Remove(chosen.replaced.id),) if chosen.replaced is not None else ()
    return (*moves, InsertAfter(chosen.call.id, "cache"), *removed)


def cache_safety(chosen: CachePlace) -> Safety:
    """The safety level of moving the shuffles.

    A shuffle draws the same order after maps and a cache as before them (`tests/rules/test_claims.py`). The shuffle of
    `list_files` is replaced by a different one.
    """
    is_redrawn = any(call.method == "list_files" for call in chosen.movable)
    return Safety.RERANDOMIZED if is_redrawn else Safety.EXACT
