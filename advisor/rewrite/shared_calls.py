"""Which recorded calls are one and the same call in the source: a loop, or a helper called for training and validation.

In: recorded calls.  Out: the ids that share a span of the user's file, and edits of one of them as edits of all: the text that
is changed makes all their datasets, so all of them change and all of them are to be judged, as far as `MAX_JUDGED` goes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from advisor.model.finding import Edit, Fix, MoveAfter
from advisor.model.recording import Call
from advisor.model.shared_text import span_of

MAX_JUDGED = 4
"""A helper called a hundred times makes a hundred datasets of one kind: a few of them tell, and time is the user's."""


def edited_ids(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Ids of the calls that the edits name, in their order."""
    found: dict[str, None] = {}
    for edit in edits:
        found[edit.call_id] = None
        if isinstance(edit, MoveAfter):
            found[edit.after_id] = None
    return tuple(found)


def spread(edits: Sequence[Edit], calls: Mapping[str, Call]) -> tuple[Edit, ...]:
    """The edits, and behind them the same of every other call that the same text makes, in this dataset and in others.

    Calls that a library makes are left alone: a link behind such a text stands behind the last of them only.
    """
    found = dict.fromkeys(edits)
    for edit in edits:
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
        found |= dict.fromkeys(more)
    return tuple(found)


def _peers(call_id: str, calls: Mapping[str, Call]) -> list[str]:
    """Ids of all calls of the user's own code that the same text makes, in the order of the recording."""
    call = calls.get(call_id)
    if call is None or call.library is not None or call.made_by is not None:
        return [call_id]
    span = span_of(call_id, calls)
    return [each for each in calls if span_of(each, calls) == span]


def sentence_of_sharing(fix: Fix, calls: Mapping[str, Call]) -> str | None:
    """One sentence for people where a line of the fix serves several datasets; None where each serves one."""
    worst: tuple[int, Call] | None = None
    named = {span_of(call_id, calls) for call_id in edited_ids(fix.edits)}
    for span in named:
        served = [c for call_id, c in calls.items() if span_of(call_id, calls) == span and c.nested_in is None]
        if len(served) > 1 and (worst is None or len(served) > worst[0]):
            worst = len(served), served[0]
    if worst is None or worst[1].site is None:
        return None
    count, call = worst
    site = worst[1].site
    name = site.file.replace("\\", "/").rpartition("/")[2]
    judged = "all" if count <= MAX_JUDGED else str(MAX_JUDGED)
    return (
        f"{name}:{site.line} {call.method} makes {count} datasets; the change is judged on {judged} of them, as far as they are "
        "made before the training begins."
    )
