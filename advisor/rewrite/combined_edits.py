"""Combines the edits of several fixes.

In: fixes that do not conflict.  Out: their edits, in an order in which they can be applied together.

Edits are applied one after the other, and each new link is inserted directly after its call. So of two links after the same call,
the one that is *later* in the list ends up *closer* to the call: `cache` comes last in a list of edits, `prefetch` first.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.edits import Edit, InsertAfter, MoveAfter, SetArgument, SetFunction, SetOption, Vectorize
from advisor.model.finding import Fix
from advisor.rewrite.conflicts import clash_of, is_insertion


def combine(fixes: Sequence[Fix], calls: Mapping[str, Call] | None = None) -> tuple[Edit, ...]:
    """Combine the edits of several fixes in an order in which they can be applied together.

    Of the links after one call, those that fill a `cache` end up closest to it, then the `cache`, links that work on elements,
    `prefetch`, and options. A `prefetch` after a call that another fix moves follows it, and so does a `cache` after a call that
    an earlier fix has moved: it was proposed for the place where that call then is.

    Args:
        fixes: Fixes that do not conflict, in the order in which they were kept.
        calls: The recorded calls by id, to recognise edits of the same text (a helper that is called twice).

    Returns:
        The edits, each once.

    Raises:
        ValueError: Two fixes conflict.
    """
    known = calls or {}
    for index, fix in enumerate(fixes):
        for other in fixes[:index]:
            clash = clash_of(fix, other, known, is_later=True)
            if clash is not None:
                raise ValueError(f"fixes that conflict cannot be combined: {clash}")
    edits: dict[Edit, None] = {}
    for fix in sorted(fixes, key=_distance, reverse=True):
        edits |= dict.fromkeys(fix.edits)
    return tuple(_behind_moved(edits))


def _behind_moved(edits: Collection[Edit]) -> Iterator[Edit]:
    """Yield the edits; a `prefetch` or `cache` after a call that another edit moves goes after the call that this one goes after.

    Of the links after one call, the later edit is closer to it: the cache comes directly before the edit that moves the call, the
    prefetch, which is among the first edits, remains where it is.
    """
    moved = {edit.call_id: edit.after_id for edit in edits if isinstance(edit, MoveAfter)}
    caches = [edit for edit in edits if is_insertion(edit, "cache") and edit.call_id in moved]
    for edit in edits:
        if edit in caches:
            continue
        if isinstance(edit, MoveAfter):
            yield from (replace(cache, call_id=edit.after_id) for cache in caches if cache.call_id == edit.call_id)
        is_behind = is_insertion(edit, "prefetch") and edit.call_id in moved
        yield replace(edit, call_id=moved[edit.call_id]) if is_behind else edit


def comparison_key(edits: tuple[Edit, ...]) -> frozenset[Edit] | tuple[Edit, ...]:
    """Return what is equal for two lists of edits that surely make the same dataset: a set if their order does not matter.

    It does not matter if no two of those that add, move or remove calls name the same call.
    """
    named: list[str] = []
    for edit in edits:
        if not isinstance(edit, SetArgument | SetFunction | SetOption | Vectorize):
            named += filter(None, (edit.call_id, getattr(edit, "after_id", None)))
    return frozenset(edits) if len(named) == len(set(named)) else edits


def _distance(fix: Fix) -> int:
    """Return the rank of a fix's links after the same call: 0 for a cache, 2 for a prefetch, 3 for options, 1 for others.

    What fills a cache comes before it.
    """
    if fix.fills_cache:
        return -1
    methods = [edit.method for edit in fix.edits if isinstance(edit, InsertAfter)]
    if "cache" in methods:
        return 0
    if any(isinstance(edit, SetOption) for edit in fix.edits):
        return 3
    return 2 if methods and all(method == "prefetch" for method in methods) else 1
