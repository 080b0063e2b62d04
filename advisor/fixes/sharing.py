"""Which recorded calls are one and the same call in the source: a loop, or a helper called for training and validation.

In: recorded calls.  Out: the ids that share a span of the user's file. An edit of that span changes all their datasets, so all
of them are to be judged.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from advisor.model.finding import Edit, Fix, MoveAfter
from advisor.model.recording import Call, Site

Span = tuple[Site, str, bool] | str
"""A call in the source: its site, its method and whether a library made it; or the id of a call that has no site."""


def span_of(call_id: str, calls: Mapping[str, Call]) -> Span:
    """What identifies the call in the source: equal for all datasets that the same text makes."""
    call = calls.get(call_id)
    if call is None or call.site is None:
        return call_id
    return call.site, call.method, call.library is not None


def edited_ids(edits: Iterable[Edit]) -> tuple[str, ...]:
    """Ids of the calls that the edits name, in their order."""
    found: dict[str, None] = {}
    for edit in edits:
        found[edit.call_id] = None
        if isinstance(edit, MoveAfter):
            found[edit.after_id] = None
    return tuple(found)


def shared_calls(fix: Fix, calls: Mapping[str, Call]) -> tuple[str, ...]:
    """Ids of all calls whose datasets change when the fix is written: those it names and those made by the same text.

    In the order of the recording; the ids that the fix itself names are among them. More ids than the fix names means that
    one line serves several datasets.
    """
    spans = {span_of(call_id, calls) for call_id in edited_ids(fix.edits)}
    return tuple(call_id for call_id in calls if span_of(call_id, calls) in spans)


def sentence_of_sharing(fix: Fix, calls: Mapping[str, Call]) -> str | None:
    """One sentence for people where a line of the fix serves several datasets; None where each serves one."""
    worst: tuple[int, Call] | None = None
    named = {span_of(call_id, calls) for call_id in edited_ids(fix.edits)}
    for span in named:
        served = [call for call_id, call in calls.items() if span_of(call_id, calls) == span]
        if len(served) > 1 and (worst is None or len(served) > worst[0]):
            worst = len(served), served[0]
    if worst is None or worst[1].site is None:
        return None
    count, call = worst
    site = worst[1].site
    name = site.file.replace("\\", "/").rpartition("/")[2]
    return f"{name}:{site.line} {call.method} makes {count} datasets; the change is judged on all of them."
