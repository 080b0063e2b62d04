"""Finds recorded calls that share one call in the source: a loop, or a helper called for training and validation.

In: recorded calls.  Out: the ids that share a span of the user's file, and edits of one of them applied to all. As the text
creates all their datasets, a change affects all of them, and up to `MAX_JUDGED` of them are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.model.calls import Call
from advisor.model.edits import BuildOnce, Edit, MoveAfter
from advisor.model.finding import Fix
from advisor.model.shared_text import span_of

MAX_JUDGED = 4
"""A helper called a hundred times makes a hundred datasets of one kind: a few of them tell, and time is the user's."""


def edited_ids(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Return the ids of the calls to which the edits refer, in order."""
    ids: dict[str, None] = {}
    for edit in edits:
        ids[edit.call_id] = None
        if isinstance(edit, MoveAfter):
            ids[edit.after_id] = None
    return tuple(ids)


def spread(edits: Sequence[Edit], calls: Mapping[str, Call]) -> tuple[Edit, ...]:
    """Return the edits, followed by the same edits of all other calls made by the same text, in this and other datasets.

    Calls inside a library are excluded: a link after such a text follows only the last of them. `BuildOnce` changes no call.

    Args:
        edits: The edits, in order.
        calls: The recorded calls by id.
    """
    result = dict.fromkeys(edits)
    for edit in edits:
        if isinstance(edit, BuildOnce):
            continue
        peers = _peers(edit.call_id, calls)
        if isinstance(edit, MoveAfter):
            targets = _peers(edit.after_id, calls)
            if len(targets) != len(peers):
                continue
            more: list[Edit] = [
                replace(edit, call_id=one, after_id=two) for one, two in zip(peers, targets, strict=True)
            ]
        else:
            more = [replace(edit, call_id=peer) for peer in peers]
        result |= dict.fromkeys(more)
    return tuple(result)


def _peers(call_id: str, calls: Mapping[str, Call]) -> list[str]:
    """Ids of all calls of the user's own code made by the same text, in recording order."""
    call = calls.get(call_id)
    if call is None or call.library is not None or call.made_by is not None:
        return [call_id]
    span = span_of(call_id, calls)
    return [other for other in calls if span_of(other, calls) == span]


def sentence_of_sharing(fix: Fix, calls: Mapping[str, Call]) -> str | None:
    """Return a sentence for the user if a line changed by the fix creates several datasets, else None.

    Args:
        fix: The fix with its edits.
        calls: The recorded calls by id.
    """
    largest: tuple[int, Call] | None = None
    spans = {span_of(call_id, calls) for call_id in edited_ids(fix.edits)}
    for span in spans:
        shared = [c for call_id, c in calls.items() if span_of(call_id, calls) == span and c.nested_in is None]
        if len(shared) > 1 and (largest is None or len(shared) > largest[0]):
            largest = len(shared), shared[0]
    if largest is None or largest[1].site is None:
        return None
    count, call = largest
    site = largest[1].site
    name = site.file.replace("\\", "/").rpartition("/")[2]
    compared = "all" if count <= MAX_JUDGED else str(MAX_JUDGED)
    return (
        f"{name}:{site.line} {call.method} creates {count} datasets; the change is compared on {compared} of them, if they are "
        "created before the training starts."
    )
